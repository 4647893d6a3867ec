"""The profiler against torch's: what recording adds to an operator, and how long answers take."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from . import training
from .recorded_steps import profile, quiet
from .timing import Comparison

__all__ = ["answers", "execution_traces", "memory", "modules", "overhead"]

OPERATORS = 100_000
Work = Callable[[], float]


def _adder(library: Any, count: int) -> Work:
    """Times `x + y` on 8×8: seconds of one of `count` calls, on this thread's clock."""
    x, y = library.randn(8, 8), library.randn(8, 8)

    def work() -> float:
        began = time.thread_time()
        for _ in range(count):
            x + y
        return (time.thread_time() - began) / count

    return work


def overhead(ours: Any, torch: Any) -> list[Comparison]:
    """What recording adds. Sessions of both in turn, because each would trace the other's Python functions too."""
    libraries = (ours, torch)
    works = [_adder(library, 1000) for library in libraries]
    off = [float("inf"), float("inf")]
    on = {name: [float("inf"), float("inf")] for name in OPTIONS}
    for name, (options, _) in OPTIONS.items():
        for _ in range(6):
            for i, library in enumerate(libraries):
                off[i] = min(off[i], *(works[i]() for _ in range(5)))
                with quiet(), profile(library, **options):
                    on[name][i] = min(on[name][i], *(works[i]() for _ in range(15)))
    again = [min(work() for _ in range(60)) for work in works]
    rows = [Comparison("x + y, not recorded", off[0] * 1e6, off[1] * 1e6)]
    rows += [
        Comparison(f"added {name}", *((on[name][i] - off[i]) * 1e6 for i in (0, 1)), aim) for name, (_, aim) in OPTIONS.items()
    ]
    return [*rows, Comparison("x + y, not recorded, after all that", again[0] * 1e6, again[1] * 1e6)]


OPTIONS: dict[str, tuple[dict[str, bool], float | None]] = {
    "by recording": ({}, 0.7),
    "with shapes": ({"record_shapes": True}, 0.7),
    "with memory": ({"profile_memory": True}, 1.0),
    "with stacks": ({"with_stack": True}, 1.0),
    "with both": ({"record_shapes": True, "with_stack": True}, None),
}


def modules(ours: Any, torch: Any) -> list[Comparison]:
    """What recording adds to the call of a module that does nothing.

    torch's `with_modules` tells of scripted modules only. What it has of others comes with stacks, so our `with_modules` is set against those.
    """
    libraries = (ours, torch)
    works = [_caller(library, 200) for library in libraries]
    off = [min(work() for _ in range(100)) for work in works]
    rows = [Comparison("an Identity, not recorded", off[0] * 1e6, off[1] * 1e6)]
    for name, mine, theirs, aim in (
        ("added with modules; torch: with stacks", {"with_modules": True}, {"with_stack": True}, 1.0),
        ("added with stacks", {"with_stack": True}, {"with_stack": True}, None),
    ):
        best = [float("inf"), float("inf")]
        for _ in range(8):
            for i, (library, options) in enumerate(zip(libraries, (mine, theirs), strict=True)):
                with quiet(), profile(library, **options):
                    best[i] = min(best[i], *(works[i]() for _ in range(15)))
        rows.append(Comparison(name, (best[0] - off[0]) * 1e6, (best[1] - off[1]) * 1e6, aim))
    return [*rows, *_steps_of_gpt(libraries)]


def execution_traces(ours: Any, torch: Any) -> list[Comparison]:
    """What an observer adds to operators and to a training step, writing included."""
    libraries = (ours, torch)
    rows = []
    for name, make, aim in (("added to x + y, 8×8", _adder, 1.0), ("added to a step of a linear layer, 8×8", _linear_step, 1.0)):
        works = [make(library, 20) for library in libraries]
        off = [min(work() for _ in range(100)) for work in works]
        on = [float("inf"), float("inf")]
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(6):
                for i, library in enumerate(libraries):
                    with quiet():
                        observer = library.profiler.ExecutionTraceObserver().register_callback(os.path.join(folder, "et.json"))
                        observer.start()
                        works[i]()
                        # the mean, because most of the writing is in few of the calls
                        on[i] = min(on[i], sum(works[i]() for _ in range(50)) / 50)
                        observer.unregister_callback()
        rows.append(Comparison(name, (on[0] - off[0]) * 1e6, (on[1] - off[1]) * 1e6, aim))
    return rows


def _linear_step(library: Any, count: int) -> Work:
    """Times forward and backward of a linear layer: seconds of one."""
    layer, x = library.nn.Linear(8, 8), library.randn(8, 8)

    def work() -> float:
        began = time.thread_time()
        for _ in range(count):
            layer(x).sum().backward()
        return (time.thread_time() - began) / count

    return work


def _caller(library: Any, count: int) -> Work:
    """Times modules in a row that do nothing: seconds of one call."""
    network, x = library.nn.Sequential(*[library.nn.Identity() for _ in range(count)]), library.ones(2)

    def work() -> float:
        began = time.thread_time()
        for _ in range(5):
            network(x)
        return (time.thread_time() - began) / (5 * count)

    return work


def _steps_of_gpt(libraries: tuple[Any, Any]) -> list[Comparison]:
    """A training step of 25 modules and about 1,200 events on a single line, recorded with the same flags by both."""
    steps = [training.gpt(library, count=1) for library in libraries]
    wishes: dict[str, dict[str, bool]] = {"a step of GPT, recorded": {}, "the same with modules": {"with_modules": True}}
    best = {name: [float("inf"), float("inf")] for name in wishes}
    for _ in range(30):
        for name, options in wishes.items():
            for i, library in enumerate(libraries):
                with quiet(), profile(library, **options):
                    for _ in range(3):
                        began = time.thread_time()
                        steps[i]()
                        best[name][i] = min(best[name][i], time.thread_time() - began)
    return [Comparison(name, mine * 1e6, theirs * 1e6) for name, (mine, theirs) in best.items()]


def answers(ours: Any, torch: Any) -> list[Comparison]:
    """The time to each answer about 100,000 operators, and the size of the trace."""
    found = [_best_answers(library) for library in (ours, torch)]
    aims = {
        "events()": 0.1,
        "key_averages()": 0.1,
        "key_averages() after that": 0.1,
        "export_chrome_trace": 1.0,
        "export_chrome_trace, .gz": 1.0,
    }
    rows = []
    for name, mine in found[0].items():
        scale, unit = (1e-6, "MB") if name.startswith("size") else (1e3, "ms")
        rows.append(Comparison(name, mine * scale, found[1][name] * scale, aims.get(name), unit))
    return rows


def _best_answers(library: Any, rounds: int = 3) -> dict[str, float]:
    work = _adder(library, OPERATORS)
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for suffix in ("", ".gz"):
                with quiet(), profile(library) as prof:
                    work()
                taken = _ask(prof, os.path.join(folder, "trace.json" + suffix), suffix)
                best = {name: min(value, best.get(name, value)) for name, value in {**best, **taken}.items()}
    return best


def _ask(prof: Any, path: str, suffix: str) -> dict[str, float]:
    taken: dict[str, float] = {}

    def timed(name: str, question: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        answer = question()
        taken[name] = time.perf_counter() - began
        return answer

    gz = ", .gz" if suffix else ""
    timed("export_chrome_trace" + gz, lambda: prof.export_chrome_trace(path))
    taken["size of the trace" + gz] = os.path.getsize(path)
    if not suffix:
        events = timed("events()", prof.events)
        averages = timed("key_averages()", prof.key_averages)
        timed("table()", averages.table)
        timed("seven attributes of all events", lambda: _read(events))
        timed("key_averages() after that", events.key_averages)
    return taken


READ = ("name", "cpu_time_total", "cpu_parent", "cpu_children", "self_cpu_time_total", "input_shapes", "stack")


def _read(events: Any) -> None:
    for name in READ:
        for event in events:
            getattr(event, name)


def memory(ours: Any, torch: Any) -> list[Comparison]:
    """Bytes for each of a million events, in processes of their own: when all are recorded, and after."""
    found = [
        [
            float(n)
            for n in subprocess.check_output([sys.executable, "-m", "benchmarks.profiling", library.__name__], text=True).split()[
                -2:
            ]
        ]
        for library in (ours, torch)
    ]
    names = ("while recording", "at rest")
    return [Comparison(name, found[0][i], found[1][i], unit="bytes") for i, name in enumerate(names)]


def _measure_memory(name: str, count: int = 1_000_000) -> None:
    import importlib

    library = importlib.import_module(name)
    x = library.ones(2, 2)
    with profile(library):
        x + x
    before = _resident_bytes()
    prof = profile(library)
    prof.start()
    for _ in range(count):
        x + x
    recorded = _resident_bytes()
    prof.stop()
    print((recorded - before) / count, (_resident_bytes() - before) / count)


def _resident_bytes() -> int:
    """The memory of this process, without what the allocator keeps for later."""
    import ctypes
    import gc

    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    _measure_memory(sys.argv[1])
