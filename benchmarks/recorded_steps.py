"""Training steps, recorded and not: what recording adds, and that it adds nothing but the cost of its events."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from . import training
from .networks import NETWORKS
from .timing import Comparison

__all__ = ["OPTIONS", "count_events", "event_cost", "profile", "quiet", "steps"]

Step = Callable[[], object]
PROGRAMS: dict[str, Callable[[Any], Step]] = {"MLP": training.mlp, "CNN": training.cnn, "GPT": training.gpt, **NETWORKS}
OPTIONS: dict[str, tuple[dict[str, bool], float | None]] = {
    "by recording": ({}, 0.7),
    "with shapes": ({"record_shapes": True}, 1.0),
    "with memory": ({"profile_memory": True}, 1.0),
    "with stacks": ({"with_stack": True}, 1.0),
}


def profile(library: Any, **options: bool) -> Any:
    return library.profiler.profile(activities=[library.profiler.ProfilerActivity.CPU], **options)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """torch's profiler writes lines to the standard error that nobody asked for."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def count_events(library: Any, step: Step, **options: bool) -> int:
    with quiet(), profile(library, **options) as prof:
        step()
    return len(prof.events())


def steps(ours: Any, torch: Any) -> list[Comparison]:
    """What recording adds to a training step, with its backward pass and optimizer."""
    return [row for title, make in PROGRAMS.items() for row in _rows(title, make, (ours, torch))]


def _rows(title: str, make: Callable[[Any], Step], libraries: tuple[Any, Any]) -> list[Comparison]:
    works = [make(library) for library in libraries]
    off, on = _best_times(works, libraries)
    events = [count_events(library, work) for library, work in zip(libraries, works, strict=True)]
    costs = [event_cost(library) for library in libraries]
    rows = [Comparison(f"{title} step, not recorded", off[0] * 1e6, off[1] * 1e6)]
    for name, (_, aim) in OPTIONS.items():
        added = [(on[name][i] - off[i]) * 1e6 for i in (0, 1)]
        rows.append(Comparison(f"{title} step, added {name}", *added, aim))
    rows.append(Comparison(f"{title} step, events", *events, unit=""))
    rest = [100 * ((on["by recording"][i] - events[i] * costs[i]) / off[i] - 1) for i in (0, 1)]
    rows.append(Comparison(f"{title} step, recorded, without its events' cost: more", *rest, unit="%"))
    return rows


def _best_times(works: list[Step], libraries: tuple[Any, Any], rounds: int = 10) -> tuple[list[float], dict[str, list[float]]]:
    """Seconds of a step of each library: not recorded, and with each of the options."""
    off = [float("inf"), float("inf")]
    on = {name: [float("inf"), float("inf")] for name in OPTIONS}
    for _ in range(rounds):  # in turn, so that a busy moment of the machine meets all
        for i, library in enumerate(libraries):
            off[i] = min(off[i], best_time(works[i]))
            for name, (options, _) in OPTIONS.items():
                with quiet(), profile(library, **options):
                    on[name][i] = min(on[name][i], best_time(works[i]))
    return off, on


def best_time(step: Step, seconds: float = 0.06) -> float:
    """The least time of a few steps, on this thread's clock."""
    step()
    best, spent = float("inf"), 0.0
    gc.disable()
    try:
        while spent < seconds:
            began = time.thread_time()
            step()
            taken = time.thread_time() - began
            best, spent = min(best, taken), spent + taken
    finally:
        gc.enable()
    return best


def event_cost(library: Any, **options: bool) -> float:
    """Seconds that the event of an operator takes: what recording adds to `x + y`."""
    x, y = library.randn(8, 8), library.randn(8, 8)

    def work() -> None:
        for _ in range(500):
            x + y

    off = on = float("inf")
    for _ in range(6):
        off = min(off, best_time(work, 0.01))
        with quiet(), profile(library, **options):
            on = min(on, best_time(work, 0.01))
    return (on - off) / 500
