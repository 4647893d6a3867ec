"""That recording adds its events to an operator and nothing else: the table of `docs/recording.md`.

    python -m benchmarks.one_path [--write docs/recording.md]

Of each call: its time unrecorded, its time recorded without what its events cost, and the difference. What an event costs is measured by kind: an operator
is what recording adds to `x + y`, a scope what it adds to an empty one, a leaf what it adds to a backward pass of nothing else, and a node what it adds to each
of twenty `neg`s in a backward pass, without the operators inside.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import mindtorch_v2 as torch

from .recorded_steps import profile

CALLS_AT_ONCE, CHUNKS, ROUNDS = 100, 12, 12
NODES = 20  # of the backward pass by which the cost of one is measured
BEGIN, END = "<!-- one path -->", "<!-- end of one path -->"


def calls() -> dict[str, Callable[[], object]]:
    """Operators that ATen makes of others, on 8×8 unless a size is named."""
    x, big, mask, one = torch.randn(8, 8), torch.randn(256, 256), torch.randn(8, 8) > 0, torch.tensor([2.0])
    weight, out = torch.randn(8, 8, requires_grad=True), torch.empty(8, 8)
    image, kernel = torch.randn(1, 8, 8, 8), torch.randn(8, 1, 3, 3)
    target = torch.arange(8)
    step = torch.optim.SGD([weight], 1e-3).step
    weight.grad = torch.zeros(8, 8)
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
        "a step of SGD": step,
        "record_function": lambda: scope(x.abs),
    }


def measure(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a call, unrecorded and recorded: of short chunks in turn, the time that a fifth of them takes at most.

    The least time is worse here: now and then the clock of a busy machine leaves out a part of a chunk.
    """
    off: list[float] = []
    on: list[float] = []
    gc.disable()
    try:
        for _ in range(ROUNDS):
            off += chunks(call)
            with profile(torch):
                on += chunks(call)
    finally:
        gc.enable()
    return sorted(off)[len(off) // 5], sorted(on)[len(on) // 5]


def chunks(call: Callable[[], object]) -> list[float]:
    """Seconds of a call in each of some chunks, on this thread's clock; the first chunk does not count."""
    taken = []
    for _ in range(CHUNKS + 1):
        began = time.thread_time()
        for _ in range(CALLS_AT_ONCE):
            call()
        taken.append((time.thread_time() - began) / CALLS_AT_ONCE)
    return taken[1:]


def scope(call: Callable[[], object]) -> None:
    with torch.profiler.record_function("scope"):
        call()


OPERATOR, SCOPE, NODE, LEAF = "operator", "scope", "backward node", "leaf"
EVALUATION = "autograd::engine::evaluate_function: "


def count_events(call: Callable[[], object]) -> Counter[str]:
    """The number of events of a call by kind. A node and a leaf are two events each, of which the outer one counts."""
    with profile(torch) as prof:
        call()
    names = [event.name for event in prof.events()]
    evaluated = {name.removeprefix(EVALUATION) for name in names if name.startswith(EVALUATION)}
    found: Counter[str] = Counter()
    for event in prof.events():
        if event.name.startswith(EVALUATION):
            found[LEAF if event.name.endswith("AccumulateGrad") else NODE] += 1
        elif event.name not in evaluated:
            found[SCOPE if event.is_user_annotation else OPERATOR] += 1
    return found


def cost_of(events: Counter[str], costs: dict[str, float]) -> float:
    return sum(number * costs.get(kind, 0.0) for kind, number in events.items())


def measure_costs() -> dict[str, float]:
    """Seconds that recording adds to one of each kind."""
    x, y, leaf = torch.randn(8, 8), torch.randn(8, 8), torch.randn(8, 8, requires_grad=True)
    chain = leaf
    for _ in range(NODES):
        chain = -chain
    costs: dict[str, float] = {}
    for kind, call in {
        OPERATOR: lambda: x + y,
        SCOPE: lambda: scope(int),
        LEAF: lambda: leaf.backward(y),
        NODE: lambda: chain.backward(y),
    }.items():
        off, on = measure(call)
        events = count_events(call)
        costs[kind] = (on - off - cost_of(events, costs)) / events[kind]
    return costs


def table() -> str:
    lines = ["| | events | unrecorded, µs | recorded, without its events, µs | difference, µs |", "|---|--:|--:|--:|--:|"]
    costs = measure_costs()
    for name, call in calls().items():
        off, on = measure(call)
        events = count_events(call)  # after that: what is compiled inside a recording is an event, too
        rest = on - cost_of(events, costs)
        number = events.total() + events[NODE] + events[LEAF]
        lines.append(f"| {name} | {number} | {off * 1e6:.2f} | {rest * 1e6:.2f} | {(rest - off) * 1e6:+.2f} |")
    told = ", ".join(f"{kind} {seconds * 1e6:.2f}" for kind, seconds in costs.items())
    return "\n".join([*lines, "", f"Here an event costs, in µs: {told}. A node and a leaf are two events each."])


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
