"""Memory by category, ours and torch's, at the moment when a program uses most.

python tests/parity/memory_comparison.py [PROGRAM …]
"""

from __future__ import annotations

import contextlib
import gc
import gzip
import io
import json
import runpy
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from profile_programs import PROGRAMS

import mindtorch_v2

__all__ = ["NAMES", "PROGRAMS_AND_EXAMPLES", "peak", "profile_of", "read"]

# in the order of torch's files
NAMES = ("parameter", "optimizer state", "input", "temporary", "activation", "gradient", "autograd detail", "unknown")
EXAMPLES = {f"examples/{name}.py": Path(__file__).parents[2] / "examples" / f"{name}.py" for name in ("mlp", "cnn", "gpt")}
PROGRAMS_AND_EXAMPLES = [*EXAMPLES, *PROGRAMS]


def profile_of(library: Any, program: str) -> Any:
    """A profile of three steps of an example, from its first line to its last, or of two steps of a program after another."""
    lived = _living(library)
    prof = _profiler(library)
    prof.lived_before = lived
    # torch's flash attention is one operator without an equal
    with warnings.catch_warnings(action="ignore"), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        if program in EXAMPLES:
            _run_example(library, EXAMPLES[program], prof)
        else:
            library.manual_seed(0)
            step = PROGRAMS[program](library)
            step()
            with prof:
                step()
                step()
    return prof


def _profiler(library: Any) -> Any:
    return library.profiler.profile(
        activities=[library.profiler.ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=True
    )


def _living(library: Any) -> list[int]:
    """What lives that is no part of the program, as a row of a timeline; torch's knows nothing of it."""
    if library is torch:
        return [0] * (1 + len(NAMES))
    gc.collect()
    with _profiler(library) as prof:
        library.ones(1)  # and gone again
    return read(prof, ".json")[1][-1]  # type: ignore[no-any-return]


def _run_example(library: Any, path: Path, prof: Any) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(sys, "argv", [path.name, "--steps", "3"]),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        script = Path(folder) / path.name
        script.write_text(path.read_text().replace("mindtorch_v2", library.__name__))
        main = runpy.run_path(str(script))["main"]
        with prof:
            main()


def read(prof: Any, suffix: str) -> Any:
    """What the file of a timeline holds."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore", category=FutureWarning):
        path = Path(folder) / f"timeline{suffix}"
        prof.export_memory_timeline(str(path), device="cpu")
        content = path.read_bytes()
        return json.loads(gzip.decompress(content) if suffix.endswith(".gz") else content)


def peak(prof: Any) -> dict[str, int]:
    """Bytes of the program by category when their sum is greatest."""
    _, sizes = read(prof, ".json")
    largest = max(sizes, key=sum)
    return {name: size - lived for name, size, lived in zip(NAMES, largest[1:], prof.lived_before[1:], strict=True)}


def main() -> None:
    torch.set_num_threads(1)
    for program in sys.argv[1:] or PROGRAMS_AND_EXAMPLES:
        ours, theirs = (peak(profile_of(library, program)) for library in (mindtorch_v2, torch))
        print(f"{program:40s} {'ours':>10s} {'torch':>10s}")
        for name in NAMES:
            if ours[name] or theirs[name]:
                print(f"  {name:38s} {ours[name]:10,d} {theirs[name]:10,d}")
        print(f"  {'total':38s} {sum(ours.values()):10,d} {sum(theirs.values()):10,d}")


if __name__ == "__main__":
    main()
