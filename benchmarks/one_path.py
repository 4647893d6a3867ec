"""That recording adds its events to an operator and nothing else: the table of `docs/recording.md`.

    python -m benchmarks.one_path [--write docs/recording.md]

Of each call: its time unrecorded, its time recorded without what its events cost, and the difference. The cost of an event is what recording
adds to `x + y`.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import mindtorch_v2 as torch

from .recorded_steps import best_time, count_events, event_cost, profile

CALLS_AT_ONCE = 200
BEGIN, END = "<!-- one path -->", "<!-- end of one path -->"


def calls() -> dict[str, Callable[[], object]]:
    """Operators that ATen makes of others, on 8×8 unless a size is named."""
    x, big, mask, one = torch.randn(8, 8), torch.randn(256, 256), torch.randn(8, 8) > 0, torch.tensor([2.0])
    weight, out = torch.randn(8, 8, requires_grad=True), torch.empty(8, 8)
    image, kernel = torch.randn(1, 8, 8, 8), torch.randn(8, 1, 3, 3)
    target = torch.arange(8)
    functional = torch.nn.functional
    return {
        "abs": x.abs,
        "logical_and": lambda: torch.logical_and(x, x),
        "arange": lambda: torch.arange(8),
        "zeros": lambda: torch.zeros(8, 8),
        "zeros, 256×256": lambda: torch.zeros(256, 256),
        "ones_like": lambda: torch.ones_like(x),
        "randn": lambda: torch.randn(8, 8),
        "relu": x.relu,
        "relu, 256×256": big.relu,
        "mean": x.mean,
        "mean, 256×256": big.mean,
        "masked_fill": lambda: x.masked_fill(mask, 0.0),
        "repeat": lambda: x.repeat(2, 2),
        "item": one.item,
        "x[1, 2:5]": lambda: x[1, 2:5],
        "add with out=": lambda: torch.add(x, x, out=out),
        "linear": lambda: functional.linear(x, x),
        "cross_entropy": lambda: functional.cross_entropy(x, target),
        "depthwise convolution": lambda: functional.conv2d(image, kernel, groups=8),
        "sum and backward": lambda: weight.sum().backward(),
    }


def measure(call: Callable[[], object], cost: float) -> tuple[float, float, int]:
    """Seconds of a call unrecorded, and recorded without its events' cost; and how many events it has."""

    def work() -> None:
        for _ in range(CALLS_AT_ONCE):
            call()

    events = count_events(torch, call)
    off = on = float("inf")
    for _ in range(8):
        off = min(off, best_time(work, 0.01))
        with profile(torch):
            on = min(on, best_time(work, 0.01))
    return off / CALLS_AT_ONCE, on / CALLS_AT_ONCE - events * cost, events


def table() -> str:
    lines = ["| | events | unrecorded, µs | recorded, without its events, µs | difference, µs |", "|---|--:|--:|--:|--:|"]
    cost = min(event_cost(torch) for _ in range(3))
    for name, call in calls().items():
        off, on, events = measure(call, cost)
        lines.append(f"| {name} | {events} | {off * 1e6:.2f} | {on * 1e6:.2f} | {(on - off) * 1e6:+.2f} |")
    return "\n".join([*lines, "", f"An event of an operator costs {cost * 1e6:.2f} µs here."])


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.one_path", description=__doc__)
    parser.add_argument("--write", metavar="FILE", help="put the table into this page, between its markers")
    options = parser.parse_args()
    text = table()
    print(text)
    if options.write:
        page = Path(options.write)
        page.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n\n{text}\n\n{END}", page.read_text(), flags=re.S))


if __name__ == "__main__":
    main()
