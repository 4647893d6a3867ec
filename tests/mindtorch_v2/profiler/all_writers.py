"""Everything that writes a recording to a file, by the name of the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.comparison import compare
from mindtorch_v2.profiler.model.session import Session
from mindtorch_v2.profiler.output import flame, snapshot
from mindtorch_v2.profiler.output.event_list import EventList
from mindtorch_v2.profiler.query import Database
from mindtorch_v2.profiler.results import Results
from mindtorch_v2.profiler.whole_program.digest import Digest
from mindtorch_v2.profiler.writing.atomic_file import write_text

__all__ = ["WRITERS", "session"]


def session() -> Session:
    """A recording with all that a file can show."""
    options = dict.fromkeys(("record_shapes", "with_stack", "profile_memory", "with_modules"), True)
    with profile(**options) as prof, record_function("scope"):
        kept = [torch.nn.Linear(64, 64)(torch.ones(8, 64)).sum() for _ in range(5)]
    assert len(kept) == 5
    return prof.session


def _to_parquet(session: Session, path: Any) -> None:
    with Database([session]) as database:
        database.write_parquet("events", path)


WRITERS: dict[str, Callable[[Session, Any], object]] = {
    "run.session": lambda s, path: s.save(path),
    "trace.json": lambda s, path: Results(s).export_chrome_trace(str(path)),
    "trace.json.gz": lambda s, path: Results(s).export_chrome_trace(str(path)),
    "stacks.txt": lambda s, path: Results(s).export_stacks(str(path)),
    "report.html": lambda s, path: Results(s).export_report(path),
    "memory.html": lambda s, path: Results(s).export_memory_timeline(path),
    "memory.json": lambda s, path: Results(s).export_memory_timeline(path),
    "memory.raw.json.gz": lambda s, path: Results(s).export_memory_timeline(path),
    "events.json": lambda s, path: EventList.of(s).export_chrome_trace(str(path)),
    "events.parquet": lambda s, path: _to_parquet(s, path),
    "flame.svg": lambda s, path: write_text(path, flame.svg([flame.FlameTree.of(s)], "title")),
    "summary.json": lambda s, path: write_text(path, json.dumps(Digest.of([s], Results(s).advise()).as_dict())),
    "table.txt": lambda s, path: write_text(path, EventList.averages_of(s).table()),
    "snapshot.pickle": lambda s, path: snapshot.save({"segments": list(range(1000))}, path),
    "diff.html": lambda s, path: compare(s, s).export_page(path),
}
