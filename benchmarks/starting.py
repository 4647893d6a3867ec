"""What it takes to start: the import of both libraries, and the first step of each example beside its second, each in processes of their own.

Processor time throughout, so that other programs add little to it; of several processes the shortest.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from .examples import NAMES, run_example
from .timing import Comparison

__all__ = ["first_steps", "imports"]

ROUNDS = 5
AIM = 3.0


def imports(ours: Any, torch: Any) -> list[Comparison]:
    """Processes that import a library and end, with bytecode cached."""
    programs = [f"import {lib.__name__}" for lib in (ours, torch)]
    best = [float("inf"), float("inf")]
    for _ in range(2 * ROUNDS):
        for i, program in enumerate(programs):
            best[i] = min(best[i], _processor_seconds(program))
    return [Comparison("import", best[0] * 1e3, best[1] * 1e3, 0.5, "ms")]


def _processor_seconds(program: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True, env=_environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _environment() -> dict[str, str]:
    """Bytecode is cached, as it is for users."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True)
class FirstStep:
    """The first and the second step of an example, in milliseconds, and the functions that a process compiles which finds no code of earlier ones."""

    name: str
    ours: tuple[float, float]
    theirs: tuple[float, float]
    anew: float
    compiled: list[float]

    def cells(self) -> dict[str, str]:
        ratio = self.ours[0] / self.ours[1]
        return {
            "": self.name,
            "first, ms": f"{self.ours[0]:.1f}",
            "second, ms": f"{self.ours[1]:.1f}",
            "ratio (aim 3)": f"**{ratio:.1f}**" if ratio > AIM else f"{ratio:.1f}",
            "torch: first, ms": f"{self.theirs[0]:.1f}",
            "second, ms ": f"{self.theirs[1]:.1f}",
            "ratio": f"{self.theirs[0] / self.theirs[1]:.1f}",
            "compiled anew: first, ms": f"{self.anew:.1f}",
            "functions": str(len(self.compiled)),
            "median, ms": f"{statistics.median(self.compiled):.2f}" if self.compiled else "",
            "total, ms": f"{sum(self.compiled):.1f}",
        }


def first_steps(ours: Any, torch: Any) -> list[FirstStep]:
    return [_first_step(name, ours.__name__, torch.__name__) for name in NAMES]


def _first_step(name: str, ours: str, theirs: str) -> FirstStep:
    _run(ours, name)  # compiles what is not known yet
    runs: dict[str, list[dict[str, list[float]]]] = {ours: [], theirs: [], "anew": []}
    for _ in range(ROUNDS):
        runs[ours].append(_run(ours, name))
        runs[theirs].append(_run(theirs, name))
        runs["anew"].append(_run(ours, name, "anew"))
    first, second = ({lib: min(run["steps"][i] for run in runs[lib]) for lib in runs} for i in (0, 1))
    anew = min(runs["anew"], key=lambda run: run["steps"][0])
    return FirstStep(name, (first[ours], second[ours]), (first[theirs], second[theirs]), anew["steps"][0], anew["compiled"])


def _run(lib: str, name: str, *options: str) -> dict[str, list[float]]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.starting", lib, name, *options], check=True, env=_environment(), capture_output=True
    )
    return json.loads(done.stdout)


def _measure(library: str, name: str, *options: str) -> dict[str, list[float]]:
    """The first steps of an example in this process, and what compiling took in the first of them; in milliseconds."""
    lib = __import__(library)
    lib.set_num_threads(1)
    compiled: list[float] = []
    if options:
        from mindtorch_v2._dispatch import code_cache, compiling

        code_cache._known = {}

        def timed(_: str, compile_one: Any) -> Any:
            began = time.process_time()
            made = compile_one()
            compiled.append((time.process_time() - began) * 1e3)
            return made

        compiling.observe(timed)
    began: list[tuple[float, int]] = []
    run_example(lib, name, 4, lambda: began.append((time.process_time(), len(compiled))))
    steps = [(end - begin) * 1e3 for (begin, _), (end, _) in itertools.pairwise(began)]
    return {"steps": steps, "compiled": compiled[began[0][1] : began[1][1]]}


if __name__ == "__main__":
    print(json.dumps(_measure(*sys.argv[1:])))
