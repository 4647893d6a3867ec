"""Recordings and cycles of a schedule in one process, for as long as is asked: `python -m benchmarks.soak [seconds]`.

Prints the memory of the process as it goes. Ends with an error if the process has grown since its first fifth, in which tables and caches fill.
"""

from __future__ import annotations

import gc
import itertools
import sys
import time
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function, schedule

SECONDS = 600.0
REPORTS = 10
WARM = REPORTS // 5  # reports after which nothing may grow
MOST_MB = 4.0  # by which the memory may differ: the allocator's, of some 100
MOST_OBJECTS = 1_000  # of some 200,000

MODES: list[dict[str, Any]] = [
    {},
    {"record_shapes": True},
    {"with_stack": True},
    {"profile_memory": True},
    {"with_modules": True},
    {"record_shapes": True, "with_stack": True, "profile_memory": True, "with_modules": True},
]


def resident_mb() -> float:
    """Return the memory of this process that is in RAM."""
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1]) / 1024


class Training:
    """A model that learns, with names that are new at each step."""

    def __init__(self) -> None:
        self._model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01)
        self._count = itertools.count()

    def step(self) -> None:
        number = next(self._count)
        with record_function(f"request {number}", f"customer {number}"):
            self._model(torch.randn(1 + number % 32, 8)).square().mean().backward()
            self._optimizer.step()
            self._optimizer.zero_grad()


def record_some(training: Training) -> int:
    """One recording of each kind."""
    for mode in MODES:
        with profile(**mode) as prof:
            training.step()
        prof.key_averages()
    return len(MODES)


def cycle_some(training: Training) -> int:
    """Cycles of a schedule, the handler beside the program."""
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2),
        on_trace_ready=lambda finished: finished.key_averages(),
        record_shapes=True,
        background=True,
    ) as prof:
        for _ in range(40):
            training.step()
            prof.step()
    return 10


def main(seconds: float) -> None:
    training, began, counts = Training(), time.monotonic(), [0, 0]
    found: list[tuple[float, int]] = []
    for number in range(1, REPORTS + 1):
        while time.monotonic() - began < seconds * number / REPORTS:
            counts[0] += record_some(training)
            counts[1] += cycle_some(training)
        gc.collect()
        found.append((resident_mb(), len(gc.get_objects())))
        print(
            f"{time.monotonic() - began:6.0f} s   {counts[0]:8,d} recordings   {counts[1]:8,d} cycles   {found[-1][0]:8.1f} MB"
            f"   {found[-1][1]:9,d} objects",
            flush=True,
        )
    grown_mb, grown = found[-1][0] - found[WARM - 1][0], found[-1][1] - found[WARM - 1][1]
    print(f"grown by {grown_mb:.1f} MB and {grown:,} objects since the first {seconds * WARM / REPORTS:.0f} s")
    if grown_mb > MOST_MB or grown > MOST_OBJECTS:
        sys.exit("the process grows")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)
