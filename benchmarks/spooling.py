"""What bounds and spools cost: `python -m benchmarks.spooling [events]`. With a number, so many events are recorded to a spool instead.

A training step is timed recorded, recorded to a spool, and at a bound that was reached, in turn; the least of each counts.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

SECONDS = 2.0  # of each kind in a round: the thread comes four times a second
ROUNDS = 5


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


def step_us(step: Any, **options: Any) -> float:
    """Microseconds of processor time that a step takes, the recorder's thread included."""
    prof = profile(**options)
    prof.start()
    step()
    count, began, until = 0, time.process_time(), time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        step()
        count += 1
    took = time.process_time() - began
    prof.stop()
    return took / count * 1e6


def compare(folder: str) -> None:
    step = training()
    kinds: dict[str, dict[str, Any]] = {
        "recorded": {},
        "recorded to a spool": {"spool": os.path.join(folder, "run.spool")},
        "recorded, at a bound": {"max_events": 1000},
        "recorded, the last 1,000": {"max_events": 1000, "keep": "last"},
    }
    least = dict.fromkeys(kinds, float("inf"))
    for _ in range(ROUNDS):
        for name, options in kinds.items():
            least[name] = min(least[name], step_us(step, **options))
    for name, took in least.items():
        print(f"{name:28s} {took:9.1f} us a step   {took / least['recorded'] - 1:+.1%}", flush=True)


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
