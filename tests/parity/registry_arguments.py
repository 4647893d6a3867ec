"""The same arguments twice: a caught sample as tensors of this package and of torch, in one memory layout and precision."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import mindtorch_v2 as mt
from mindtorch_v2._dispatch.op import Op
from mindtorch_v2._ops.machinery.calling import call_op

__all__ = ["LAYOUTS", "Arguments", "both", "call_ours", "call_theirs", "layouts_for"]

Array = np.ndarray[Any, Any]
Sample = tuple[Any, ...]


def _permuted(array: Array, order: tuple[int, ...]) -> Array:
    """A copy whose dimension `order[0]` is outermost in memory, and `order[-1]` innermost."""
    back = np.argsort(order)
    return np.ascontiguousarray(array.transpose(order)).transpose(back)


def _stepped(array: Array) -> Array:
    """A copy that leaves out every other element of its memory."""
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def _channels_last(array: Array) -> Array:
    return _permuted(array, (0, *range(2, array.ndim), 1))


# Name → (least number of dimensions to differ from a contiguous copy, the copy)
LAYOUTS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "caught": (0, lambda a: a.copy(order="K")),
    "contiguous": (0, lambda a: a.copy(order="C")),
    "transposed": (2, lambda a: _permuted(a, tuple(reversed(range(a.ndim))))),
    "channels last": (4, _channels_last),
    "stepped": (1, _stepped),
}


def _lay_out(array: Array, layout: str) -> Array:
    least, copy = LAYOUTS[layout]
    return copy(array) if array.ndim >= least else array.copy(order="C")


def layouts_for(sample: Any) -> Iterator[str]:
    """The layouts that make a difference to some tensor of the sample."""
    most = _most_dimensions(sample)
    return (name for name, (least, _) in LAYOUTS.items() if most >= max(least, 1) or name == "caught")


def _most_dimensions(x: Any) -> int:
    if isinstance(x, mt.Tensor):
        return int(x._array.ndim)
    return max((_most_dimensions(v) for v in x), default=-1) if isinstance(x, list | tuple) else -1


_WIDE = {"float32": "float64", "complex64": "complex128"}


def _widened(x: Any) -> Any:
    """Single precision doubled, of arrays and of dtypes; everything else as it is."""
    if isinstance(x, mt.dtype):
        return getattr(mt, _WIDE.get(x.name, x.name))
    if isinstance(x, np.ndarray) and x.dtype.name in _WIDE:
        return x.astype(_WIDE[x.dtype.name], order="K")
    return x


@dataclasses.dataclass
class Arguments:
    """One library's arguments of a call, and those of them that require grad."""

    positional: list[Any]
    keywords: dict[str, Any]
    tensors: list[Any]  # all, in order
    leaves: list[Any]
    written: list[Any]  # those that the operator writes to


@dataclasses.dataclass
class _Library:
    tensor: Callable[[Array], Any]
    other: Callable[[Any], Any]  # dtypes, devices and the like


def both(op: Op, sample: Sample, *, layout: str = "caught", wide: bool = False, grad: Any = None) -> tuple[Arguments, Arguments]:
    """The sample for this package and for torch. `grad`: None for no graph, or says by argument's position and name what requires it."""
    return _arguments(op, sample, _OURS, layout, wide, grad), _arguments(op, sample, _THEIRS, layout, wide, grad)


def _arguments(op: Op, sample: Sample, library: _Library, layout: str, wide: bool, grad: Any) -> Arguments:
    made = Arguments([], {}, [], [], [])

    def convert(x: Any, wanted: bool, written: bool) -> Any:
        if isinstance(x, mt.Tensor):
            array = _widened(x._array) if wide else x._array
            t = library.tensor(_lay_out(array, layout))
            if wanted and array.dtype.kind in "fcV" and array.dtype.name != "bool":
                t.requires_grad_(True)
                made.leaves.append(t)
                t = t.clone() if written else t  # a leaf must not be written to
            made.tensors.append(t)
            if written:
                made.written.append(t)
            return t
        if isinstance(x, list | tuple):
            return [convert(v, wanted, written) for v in x]
        return library.other(_widened(x) if wide else x)

    for i, (a, value) in enumerate(zip(op.schema.arguments, sample, strict=True)):
        wanted = grad is not None and grad(i, a.name)
        converted = convert(_listed(a.type, value), wanted, "!" in (a.alias or ""))
        if library is _THEIRS and a.keyword_only:
            # None is left out: our factories take a generator in every overload, and torch's `randint` has a dtype by default
            if value is not None:
                made.keywords[a.name] = converted
        else:
            made.positional.append(converted)
    return made


def _listed(kind: str, value: Any) -> Any:
    """A number as the list it stands for: `int[2]` takes one number for both."""
    found = re.fullmatch(r"(?:int|SymInt|float)\[(\d*)\]\??", kind)
    return [value] * int(found[1] or 1) if found and isinstance(value, int | float) else value


def torch_tensor(array: Array) -> torch.Tensor:
    """The array's elements in the same layout: in memory of torch's own, which it can resize, where they are contiguous.

    NumPy has strides of zero for an array without elements, which is no layout of torch's.
    """
    if array.flags.c_contiguous:
        made = _torch_view(array)
        return made.clone() if array.size else torch.empty(made.shape, dtype=made.dtype)
    return _torch_view(array)


def _torch_view(array: Array) -> torch.Tensor:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)


def torch_value(x: Any) -> Any:
    """An argument that is no tensor, as torch's."""
    if isinstance(x, mt.dtype):
        return getattr(torch, x.name)
    if isinstance(x, mt.device):
        return torch.device(str(x))
    if type(x).__name__ in ("memory_format", "layout"):
        return getattr(torch, str(x).removeprefix("torch."))
    return x


def our_tensor(array: Array) -> Any:
    """The same here: memory that is NumPy's cannot be resized."""
    shared = mt.from_numpy(array)
    return shared.clone() if array.flags.c_contiguous else shared


_OURS = _Library(our_tensor, lambda x: x)
_THEIRS = _Library(torch_tensor, torch_value)


def call_ours(op: Op, arguments: Arguments) -> Any:
    mt.manual_seed(0)
    return call_op(op, tuple(arguments.positional))


def call_theirs(overload: Any, arguments: Arguments) -> Any:
    torch.manual_seed(0)
    return overload(*arguments.positional, **arguments.keywords)
