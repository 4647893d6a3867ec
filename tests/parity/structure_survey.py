"""Compares the operators inside calls with ATen's, over PyTorch's operator database: which parent-child pairs differ, and where.

    python tests/parity/structure_survey.py                      every operator: pairs that differ, most frequent first
    python tests/parity/structure_survey.py det linalg_* -v      some operators, with the differences of each

Forward and backward of each operator's first float32 samples. What `structure.py` leaves out is left out here too.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fnmatch
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import opinfo
import structure
import torch

import mindtorch_v2 as mt

# Rows of torch's that are left out, as no result here depends on their work: names of operators, direction, pairs, and how many
# of each in one call.
LEFT_OUT = [
    # the variance, found again from 1 / std, which nothing reads
    ("native_group_norm", "backward", ">mul >reciprocal_ >sub >clamp_min", 1),
    # that no deviation is negative is looked up once more by the variant with `out=`, which the functional one calls after it did
    ("normal", "forward", "normal>min normal>ge", 1),
    # the gradient and the norm in the shape of the argument, before it is seen that the slope of a count is zero
    ("norm", "backward", ">unsqueeze", 2),
    # the same steps selected anew for each term of the differences at both ends, along two dimensions
    ("gradient", "forward", "gradient>select", 44),
    # a copy of the mask before it is expanded, into which nothing is written
    ("masked_*", "forward", ">clone", 2),
]


def _left_out(name: str, direction: str) -> structure.Pairs:
    found: structure.Pairs = collections.Counter()
    for pattern, where, pairs, times in LEFT_OUT:
        if where == direction and fnmatch.fnmatch(name, pattern):
            for pair in pairs.split():
                parent, child = pair.split(">")
                found[parent and "aten::" + parent, "aten::" + child] += times
    return found


Differences = dict[str, tuple[structure.Pairs, structure.Pairs]]  # "forward" or "backward" → pairs only torch's, only ours


def survey(op: Any, limit: int) -> Differences | None:
    """The pairs that differ over some samples of an operator; None where it does not run."""
    try:
        ours = opinfo.our_function(op)
    except opinfo.MissingError:
        return None
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd))
    found: Differences = {"forward": (collections.Counter(), collections.Counter())}
    found["backward"] = (collections.Counter(), collections.Counter())
    ran = False
    for sample in samples[:limit]:
        with contextlib.suppress(Exception), _plain_kernels():
            for direction, (missing, extra) in _differences(op, ours, sample).items():
                found[direction][0].update(missing - _left_out(op.formatted_name, direction))
                found[direction][1].update(extra)
            ran = True
    return found if ran else None


def _differences(op: Any, ours: Any, sample: Any) -> Differences:
    args, kwargs, pairs = opinfo.convert_sample(sample)

    def call_theirs() -> Any:
        torch.manual_seed(0)
        return op.op(sample.input, *sample.args, **sample.kwargs)

    def call_ours() -> Any:
        mt.manual_seed(0)
        return ours(*args, **kwargs)

    found = {"forward": _compared(call_ours, call_theirs)}
    result, expected = call_ours(), call_theirs()
    if op.supports_autograd and pairs:
        back_ours, back_theirs = _backward(result, [p[1] for p in pairs], mt), _backward(expected, [p[0] for p in pairs], torch)
        if back_ours is not None and back_theirs is not None:
            found["backward"] = _compared(back_ours, back_theirs)
    return found


def _backward(result: Any, leaves: list[Any], library: Any) -> Any:
    outputs = [t for t in opinfo.flatten(result) if isinstance(t, library.Tensor) and t.requires_grad]
    if not outputs:
        return None
    weights = [library.ones(tuple(t.shape), dtype=t.dtype) for t in outputs]
    return lambda: library.autograd.grad(outputs, leaves, weights, allow_unused=True, retain_graph=True)


def _compared(ours: Any, theirs: Any) -> tuple[structure.Pairs, structure.Pairs]:
    b, a = structure.theirs(theirs), structure.ours(ours)
    return b - a, a - b


@contextlib.contextmanager
def _plain_kernels() -> Iterator[None]:
    """ATen's own operators, in place of those of one build, and attention by its mathematics."""
    with contextlib.ExitStack() as stack:
        for lib in (torch, mt):
            stack.enter_context(lib.backends.mkldnn.flags(enabled=False))
            stack.enter_context(lib.nn.attention.sdpa_kernel(lib.nn.attention.SDPBackend.MATH))
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=["*"])
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=60, help="how many of the most frequent pairs to print")
    parser.add_argument("-v", action="store_true", help="print the differences of each operator")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    frequent: collections.Counter[Any] = collections.Counter()
    where: dict[Any, list[str]] = collections.defaultdict(list)
    same = compared = 0
    for op in opinfo._database():
        name = op.formatted_name
        if not any(fnmatch.fnmatch(name, pattern) for pattern in options.names):
            continue
        found = survey(op, options.samples)
        if found is None:
            continue
        compared += 1
        differing = {
            (direction, side, pair): count
            for direction, sides in found.items()
            for side, pairs in zip(("only torch", "only ours"), sides, strict=True)
            for pair, count in pairs.items()
        }
        same += not differing
        for key, count in differing.items():
            frequent[key] += 1
            where[key].append(name)
            if options.v:
                direction, side, (parent, child) = key
                print(f"{name:40} {direction:8} {side:10} {parent or '-'} > {child} ({count})")
    for (direction, side, (parent, child)), count in frequent.most_common(options.pairs):
        names = where[direction, side, (parent, child)]
        print(f"{count:4} {direction:8} {side:10} {parent or '-'} > {child}   {' '.join(names[:6])}")
    print(f"{same} of {compared} operators run the same operators inside; {len(frequent)} pairs differ, {frequent.total()} times")


if __name__ == "__main__":
    main()
