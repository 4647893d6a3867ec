"""Thousands of recordings and steps in one process: `python -m benchmarks.soak [recordings] [steps]`. Prints its memory as it goes."""

from __future__ import annotations

import gc
import itertools
import sys
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function, schedule

MODES: list[dict[str, Any]] = [
    {},
    {"record_shapes": True},
    {"with_stack": True},
    {"profile_memory": True},
    {"with_modules": True},
    {"record_shapes": True, "with_stack": True, "profile_memory": True, "with_modules": True},
]
REPORTS = 10


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


def report(what: str, done: int, of: int) -> None:
    if done % max(1, of // REPORTS) == 0:
        gc.collect()
        print(f"{what} {done:8,d}   {resident_mb():8.1f} MB   {len(gc.get_objects()):9,d} objects", flush=True)


def main(recordings: int, steps: int) -> None:
    training = Training()
    for i in range(recordings + 1):
        with profile(**MODES[i % len(MODES)]) as prof:
            training.step()
        prof.key_averages()
        report("recordings", i, recordings)
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=lambda p: p.key_averages(), record_shapes=True
    ) as prof:
        for i in range(steps + 1):
            training.step()
            prof.step()
            report("steps     ", i, steps)


if __name__ == "__main__":
    counts = [int(argument) for argument in sys.argv[1:]]
    main(*(counts + [20_000, 10_000][len(counts) :]))
