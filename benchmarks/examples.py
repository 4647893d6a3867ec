"""A step of each example under both libraries, with its data: from one call of `zero_grad` to the next."""

from __future__ import annotations

import contextlib
import gc
import io
import itertools
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

from .timing import Comparison
from .training import EXAMPLES, load_example

__all__ = ["NAMES", "on_one_thread", "on_two_threads", "run_example", "shortest_step"]

RECORDED = {"loader", "profile_training"}  # these are profiled, by themselves
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in RECORDED)
STEPS, ROUNDS = 12, 4


def run_example(lib: Any, name: str, steps: int, begin_step: Callable[[], None]) -> None:
    """Run an example for so many steps, calling back where each begins."""
    zero_grad, first = lib.optim.Optimizer.zero_grad, None

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal first
        first = first or self  # of several optimizers, the one that begins a step
        if self is first:
            begin_step()
        return zero_grad(self, *args, **kwargs)

    example = load_example(name, lib)
    with (
        mock.patch.object(lib.optim.Optimizer, "zero_grad", called),
        mock.patch.object(sys, "argv", [name, "--steps", str(steps)]),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        example.main()


def shortest_step(lib: Any, name: str, clock: Callable[[], float]) -> float:
    """Run an example for a few steps; how many microseconds the shortest took by this clock."""
    began: list[float] = []
    run_example(lib, name, STEPS, lambda: began.append(clock()))
    return min(end - begin for begin, end in itertools.pairwise(began)) * 1e6


def _compare(name: str, ours: Any, torch: Any, clock: Callable[[], float]) -> Comparison:
    """The shortest steps of several runs of both, in turn."""
    best = [float("inf"), float("inf")]
    gc.collect()
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for i, lib in enumerate((ours, torch)):
                best[i] = min(best[i], shortest_step(lib, name, clock))
    finally:
        gc.enable()
    return Comparison(name, *best)


def _steps(threads: int, clock: Callable[[], float], ours: Any, torch: Any) -> list[Comparison]:
    before = ours.get_num_threads(), torch.get_num_threads()
    ours.set_num_threads(threads)
    torch.set_num_threads(threads)
    try:
        return [_compare(name, ours, torch, clock) for name in NAMES]
    finally:
        ours.set_num_threads(before[0])
        torch.set_num_threads(before[1])


# On one thread the time on the processor is what a step takes, and other programs do not add to it.
on_one_thread, on_two_threads = partial(_steps, 1, time.process_time), partial(_steps, 2, time.perf_counter)
