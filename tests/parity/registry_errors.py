"""Bad arguments made from good samples: where torch refuses them, so must this package, with an error of the same type."""

from __future__ import annotations

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


FAR = 99  # no dimension, and no position in a dimension, of any sample


def compare(op: Op, theirs: Any, sample: Sample, report: Any) -> None:
    """Each mutation: the same exception type as torch's, or the same result."""
    from registry_compare import assert_close, describe, first_words

    compared = INVARIANTS.get(op.name, lambda results: results)
    for change, mutated in mutations(op, sample):
        ours_in, theirs_in = both(op, mutated)
        expected = _outcome(lambda theirs_in=theirs_in: call_theirs(theirs, theirs_in))
        with report.checking("error", f"{describe(mutated)}, {change}"):
            ours = _outcome(lambda ours_in=ours_in: call_ours(op, ours_in))
            if isinstance(ours, Exception):
                assert type(ours) is type(expected), f"{first_words(ours)} instead of {_short(expected)}"
                continue
            assert not isinstance(expected, Exception), f"no error instead of {first_words(expected)}"
            if not op.name.strip("_").startswith(UNDEFINED):
                assert_close(compared([ours, ours_in.written]), compared([expected, theirs_in.written]))


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
        return {name: lambda ts, f=f: [f(ts[0]), *ts[1:]] if ts else None for name, f in _TENSOR.items()} | {
            "none left": lambda ts: []
        }
    if base == "int":
        return {"far": lambda x: FAR, "far below": lambda x: -FAR}
    if base.startswith("int["):
        return {
            "far": lambda x: _first(x, FAR),
            "far below": lambda x: _first(x, -FAR),
            "longer": lambda x: [*x, 1] if isinstance(x, list | tuple) else None,
        }
    return {}


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
