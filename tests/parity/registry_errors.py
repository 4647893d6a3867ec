"""Bad arguments made from good samples: where torch refuses them, so must this package, with an error of the same type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from registry_arguments import Sample, both, call_ours, call_theirs
from samples import INVARIANTS, SPARSE, UNDEFINED

import mindtorch_v2 as mt
from mindtorch_v2._dispatch.op import Op

__all__ = ["checks", "compare", "mutations"]

# Operators on which torch itself crashes when an argument is bad, with what it does.
TORCH_CRASHES = {
    "slow_conv_transpose3d": "reads beyond the weight",
    "lu_unpack": "follows pivots out of the matrix",
    "lstm": "reads beyond a list of weights that is too short",
}


def checks(op: Op) -> bool:
    """Whether torch checks the arguments: not those of operators that only formulas and its own functions call.

    Bad arguments to the latter make torch read and write beyond its memory: of 300, twenty crashed.
    """
    internal = (op.name.startswith("_") and not op.name.startswith("_foreach")) or "_backward" in op.name
    return not internal and op.name not in TORCH_CRASHES and op.name not in SPARSE


# What torch does with bad arguments by accident: operators, changes (both as regular expressions), what it does.
# None of these covers what both refuse with errors of other types. A test fails when one covers nothing.
EMPTY = "empty"  # in place of a change: any, of a sample with a tensor that has no elements
Accident = tuple[str, str, str]
ACCIDENTAL_ANSWERS: list[Accident] = [
    (".*_loss(_forward)?|.*cross_entropy.*|kl_div|nll_.*", "reduction .*", "takes numbers that mean no reduction for one of them"),
    (
        "bmm|matmul|addmm|cholesky|linalg_.*|adaptive_avg_pool.d|softmax|mv|cdist|fractional_max_pool.d|index_(copy|fill)_?|"
        "repeat|cum(max|min)|batch_norm|instance_norm|polygamma|bernoulli_?|mm|linear|mode|diff|new_empty_strided|embedding",
        EMPTY,
        "answers before it looks at dtypes and sizes, because there is nothing to compute",
    ),
    (
        "binary_cross_entropy",
        "(self|target) .*",
        "writes one element and drops the others, where one of the shapes is of one element",
    ),
    (
        "special_bessel_..|special_airy_ai",
        "self float64|x float64",
        "is less precise than float64 for some arguments; SciPy agrees with the values here",
    ),
    (
        "(native_)?batch_norm",
        "(weight|bias|running_mean|running_var) .*",
        "reads as many elements as there are channels, without asking how many there are",
    ),
    ("thnn_conv2d|slow_conv.*", "weight .*|kernel_size .*", "reads the weight as if it were of the kernel's size"),
    ("topk|kthvalue", "self (longer|int64)|all int64", "may give the position of another one of equal elements"),
    ("grid_sampler.*", "(interpolation|padding)_mode .*", "leaves the result uninitialised"),
]
ACCIDENTAL_REFUSALS: list[Accident] = [
    (
        "thnn_conv2d|slow_conv.*|convolution",
        ".*complex64",
        "leaves complex numbers to the callers of its kernels, which make real ones of them; these kernels take both",
    ),
    ("(i?stft|fft_.*)", EMPTY, "fails inside MKL"),
    ("resize_.*", "self .*", "cannot resize memory that NumPy owns, as that of the comparison's samples is"),
]

FAR = 99  # no dimension, and no position in a dimension, of any sample


def compare(op: Op, theirs: Any, sample: Sample, report: Any) -> None:
    """Each mutation: the same exception type as torch's, or the same result."""
    from registry_compare import describe, first_words

    for change, mutated in mutations(op, sample):
        ours_in, theirs_in = both(op, mutated)
        expected = _outcome(lambda theirs_in=theirs_in: call_theirs(theirs, theirs_in))
        ours = _outcome(lambda ours_in=ours_in: call_ours(op, ours_in))
        try:
            _compare_outcomes(op, [ours, ours_in.written], [expected, theirs_in.written], _precision(mutated))
        except AssertionError as difference:
            both_refuse = isinstance(ours, Exception) and isinstance(expected, Exception)
            accident = None if both_refuse else _accident(op, change, mutated, expected)
            report.counts["error"] += 1
            if accident is None:
                report.differs("error", f"{describe(mutated)}, {change}: {first_words(difference)}")
            else:
                report.counts[accident] += 1
        else:
            report.counts["error"] += 1


def _compare_outcomes(op: Op, ours: list[Any], expected: list[Any], precision: float) -> None:
    """The same type of error, or the same results and the same values written."""
    from registry_compare import assert_close, first_words

    if isinstance(ours[0], Exception):
        assert type(ours[0]) is type(expected[0]), f"{first_words(ours[0])} instead of {_short(expected[0])}"
        return
    assert not isinstance(expected[0], Exception), f"no error instead of {first_words(expected[0])}"
    if not op.name.strip("_").startswith(UNDEFINED):
        compared = INVARIANTS.get(op.name, lambda results: results)
        assert_close(compared(ours), compared(expected), precision)


def _precision(sample: Any) -> float:
    """Roundings of float64 in one of the least precise tensor: what is computed of a float32 alone is rounded as one."""
    kinds = {d for d in _dtypes(sample) if d.kind in "fc"}
    return float(np.finfo(np.float32).eps / np.finfo(np.float64).eps) if {"float32", "float64"} <= {d.name for d in kinds} else 1.0


def _dtypes(x: Any) -> Iterator[np.dtype[Any]]:
    if isinstance(x, mt.Tensor):
        yield x._array.dtype
    elif isinstance(x, list | tuple):
        for v in x:
            yield from _dtypes(v)


def _has_empty(x: Any) -> bool:
    if isinstance(x, mt.Tensor):
        return not x._array.size
    return isinstance(x, list | tuple) and any(_has_empty(v) for v in x)


def _accident(op: Op, change: str, sample: Sample, expected: Any) -> str | None:
    """What torch does with this call by accident, if it is one of those."""
    for names, changes, what in ACCIDENTAL_REFUSALS if isinstance(expected, Exception) else ACCIDENTAL_ANSWERS:
        if re.fullmatch(names, op.name) and (_has_empty(sample) if changes == EMPTY else re.fullmatch(changes, change)):
            return f"torch {what}"
    return None


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return error


def _short(x: Any) -> str:
    from registry_compare import first_words

    return first_words(x) if isinstance(x, Exception) else f"a {type(x).__name__}"


Change = Callable[[Any], Any]


def _changes(kind: str) -> dict[str, Change]:
    """Name → change of an argument of this type."""
    base = kind.rstrip("?")
    if base == "Tensor":
        return _TENSOR
    if base == "Tensor[]":
        return {name: lambda ts, f=f: _first_tensor(ts, f) for name, f in _TENSOR.items()} | {"none left": lambda ts: []}
    if base == "int":
        return {"far": lambda x: FAR, "far below": lambda x: -FAR}
    if base.startswith("int["):
        return {
            "far": lambda x: _first(x, FAR),
            "far below": lambda x: _first(x, -FAR),
            "longer": lambda x: [*x, 1] if isinstance(x, list | tuple) else None,
        }
    return {}


def _first_tensor(tensors: Any, change: Change) -> Any:
    changed = change(tensors[0]) if tensors else None
    return None if changed is None else [changed, *tensors[1:]]


def _first(x: Any, value: int) -> Any:
    return [value, *x[1:]] if isinstance(x, list | tuple) and x else None


def _tensor(change: Callable[[np.ndarray[Any, Any]], Any]) -> Change:
    def apply(t: Any) -> Any:
        array = change(t._array) if isinstance(t, mt.Tensor) else None  # a number in place of a tensor stays
        return None if array is None else mt.from_numpy(np.array(array))

    return apply


def _longer(a: np.ndarray[Any, Any]) -> Any:
    """Three more elements along the last dimension: broadcast with no other size."""
    return np.concatenate([a, a[..., :1], a[..., :1], a[..., :1]], axis=-1) if a.ndim and a.shape[-1] else None


_TENSOR: dict[str, Change] = {
    "longer": _tensor(_longer),
    "one dimension more": _tensor(lambda a: a[None]),
    "no dimensions": _tensor(lambda a: a.reshape(-1)[0] if a.ndim and a.size else None),
    "no elements": _tensor(lambda a: a[:0] if a.ndim and a.size else None),
    "bool": _tensor(lambda a: None if a.dtype == bool else a != 0),
    "int64": _tensor(lambda a: None if a.dtype == np.int64 else a.astype(np.int64)),
    "float64": _tensor(lambda a: None if a.dtype == np.float64 else a.astype(np.float64)),
    "complex64": _tensor(lambda a: None if a.dtype.kind == "c" else a.astype(np.complex64)),
}


def mutations(op: Op, sample: Sample) -> Iterator[tuple[str, Sample]]:
    """What was changed, and the sample with it: one argument at a time, and the dtype of all tensors."""
    for i, a in enumerate(op.schema.arguments):
        if sample[i] is None:
            continue
        for name, change in _changes(a.type).items():
            changed = change(sample[i])
            if changed is not None:
                yield f"{a.name} {name}", (*sample[:i], changed, *sample[i + 1 :])
    for name in ("bool", "int64", "complex64"):
        yield f"all {name}", tuple(_all(x, name) for x in sample)


def _all(x: Any, name: str) -> Any:
    """Floating tensors in another dtype."""
    if isinstance(x, mt.Tensor):
        return _TENSOR[name](x) if x.dtype.is_floating_point and name != x.dtype.name else x
    return [_all(v, name) for v in x] if isinstance(x, list | tuple) else x
