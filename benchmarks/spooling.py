"""What bounds and spools cost: `python -m benchmarks.spooling [events]`. With a number, so many events are recorded to a spool instead.

A training step is timed recorded, recorded to a spool, and at a bound that was reached, in turn, by the processor time of the process, which has the recorder's thread in it; the least
of each counts. Percentages are of the same recording without.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import tempfile
import time
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.capture.draining import Draining

SECONDS = 0.6  # of each kind in a round: the thread comes four times a second
ROUNDS = 16


def training() -> Any:
    """A step of a small network: some 100 events in 2 ms."""
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch, target = torch.randn(256, 256), torch.randint(0, 10, (256,))

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch), target).backward()
        optimizer.step()

    return step


class RecorderTime:
    """The processor time that the recorder's thread takes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._work = Draining._work
        Draining._work = lambda draining: self._timed(draining)  # type: ignore[method-assign]

    def _timed(self, draining: Draining) -> float:
        began = time.thread_time()
        try:
            return self._work(draining)
        finally:
            self.seconds += time.thread_time() - began


def step_us(step: Any, recorder: RecorderTime, **options: Any) -> tuple[float, float]:
    """Microseconds of processor time that a step takes, the recorder's thread included, and those of that thread."""
    prof = profile(**options)
    prof.start()
    step()
    recorder.seconds = 0.0
    count, began, until = 0, time.process_time(), time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        step()
        count += 1
    took, of_recorder = time.process_time() - began, recorder.seconds
    prof.stop()
    return took / count * 1e6, of_recorder / count * 1e6


def compare(folder: str) -> None:
    step = training()
    spool, memory = {"spool": os.path.join(folder, "run.spool")}, {"profile_memory": True}
    kinds: dict[str, dict[str, Any]] = {
        "recorded": {},
        "recorded to a spool": spool,
        "recorded, at a bound": {"max_events": 1000},
        "recorded, the last 1,000": {"max_events": 1000, "keep": "last"},
        "with memory": memory,
        "with memory, to a spool": memory | spool,
    }
    recorder = RecorderTime()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    for _ in range(ROUNDS):
        for name, options in kinds.items():
            times[name].append(step_us(step, recorder, **options))
    least = {name: min(took for took, _ in found) for name, found in times.items()}
    for name, took in least.items():
        without = least["with memory" if name.startswith("with memory") else "recorded"]
        of_recorder = statistics.median(of_recorder for _, of_recorder in times[name])
        print(
            f"{name:26s} {took:8.1f} us of processor time a step {took / without - 1:+6.1%}, {of_recorder:5.1f} us of it the recorder's thread ({of_recorder / took:.1%})",
            flush=True,
        )


def record_many(count: int, folder: str) -> None:
    path, x = os.path.join(folder, "run.spool"), torch.ones(2, 2)
    began = time.perf_counter()
    with profile(spool=path, max_events=100_000, keep="last") as prof:
        for i in range(count):
            x + x
            if (i + 1) % (count // 4) == 0:
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                print(f"{i + 1:13,d} events   {time.perf_counter() - began:7.1f} s   largest memory {peak:7.1f} MB", flush=True)
    kept, dropped = len(prof.session), sum(number for _, number in prof.session.info.dropped)
    print(f"kept {kept:,}, dropped {dropped:,}, file {os.path.getsize(path) / 2**20:,.0f} MB")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        if len(sys.argv) > 1:
            record_many(int(sys.argv[1]), made)
        else:
            compare(made)
