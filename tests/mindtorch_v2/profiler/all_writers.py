"""Everything that writes a recording to a file, by the name of the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.comparison import compare
from mindtorch_v2.profiler.model.session import Session
from mindtorch_v2.profiler.results import Results

__all__ = ["WRITERS", "session"]


def session() -> Session:
    """A recording with all that a file can show."""
    options = dict.fromkeys(("record_shapes", "with_stack", "profile_memory", "with_modules"), True)
    with profile(**options) as prof, record_function("scope"):
        kept = [torch.nn.Linear(64, 64)(torch.ones(8, 64)).sum() for _ in range(5)]
    assert len(kept) == 5
    return prof.session


WRITERS: dict[str, Callable[[Session, Any], object]] = {
    "run.session": lambda s, path: s.save(path),
    "trace.json": lambda s, path: Results(s).export_chrome_trace(str(path)),
    "trace.json.gz": lambda s, path: Results(s).export_chrome_trace(str(path)),
    "stacks.txt": lambda s, path: Results(s).export_stacks(str(path)),
    "report.html": lambda s, path: Results(s).export_report(path),
    "memory.html": lambda s, path: Results(s).export_memory_timeline(path),
    "memory.json": lambda s, path: Results(s).export_memory_timeline(path),
    "memory.raw.json.gz": lambda s, path: Results(s).export_memory_timeline(path),
    "diff.html": lambda s, path: compare(s, s).export_page(path),
}
