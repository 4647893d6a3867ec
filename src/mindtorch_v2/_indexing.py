"""`x[key]` and `x[key] = value`: a key becomes a chain of select, slice and unsqueeze, then one index with tensors."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import _device, _dtype
from ._creation import tensor
from ._dispatch import keys
from ._dispatch.keys import SUBCLASS
from ._dispatch.quiet import call_traced
from ._dispatch.tls import state
from ._ops.indexing import index as index_ops
from ._ops.machinery.lookup import aten
from ._ops.shapes.reshaping import alias, unsqueeze, view
from ._ops.shapes.slicing import select, slice_, unbind
from ._tensor import Tensor, wrap
from .overrides import handle_torch_function

__all__: list[str] = []

_select_table = select.op.table
_slice_table = slice_.op.table
_unsqueeze_table = unsqueeze.op.table
_index_table = index_ops.index.op.table
_WHOLE = slice(None)
_END = 9223372036854775807  # of a slice that goes on to the end
_MASKS = frozenset({_dtype.bool_, _dtype.uint8})
_INDICES = _MASKS | {_dtype.int32, _dtype.int64}
_ARRAYS = (Tensor, np.ndarray)
_REAL = frozenset({bool, int, float})
_CPU = _device.cpu


def getitem(self: Tensor, key: Any) -> Tensor:
    """The part of the tensor that a key names: a view unless the key holds lists, masks or tensors."""
    kind = key.__class__
    if kind is int:
        try:
            return _select_table[self._keys](self, 0, key)
        except IndexError:
            raise _out_of_bounds(self, 0, key) from None
    if kind is slice:
        return _sliced(self, 0, key)
    if kind is tuple:
        try:
            viewed, indices = _apply(self, key)
        except _OverridingIndexError as found:
            return found.call(Tensor.__getitem__, self, key)
        return viewed if indices is None and viewed is not self else _finished(self, viewed, indices)
    if key is None:
        return _unsqueeze_table[self._keys](self, 0)
    if kind is Tensor and key.dtype is _dtype.int64 and key._array.ndim and self._array.ndim:
        return _index_table[self._keys | key._keys](self, [key])
    if key is Ellipsis:
        return alias(self)
    if isinstance(key, np.integer):
        return getitem(self, int(key))
    try:
        return _finished(self, *_apply(self, _as_tuple(key)))
    except _OverridingIndexError as found:
        return found.call(Tensor.__getitem__, self, key)


def _overrides(item: object) -> bool:
    """Whether an index decides itself what is meant."""
    if isinstance(item, Tensor):
        return item._keys & SUBCLASS != 0 and not state.subclass_override_off
    return hasattr(type(item), "__torch_function__")


class _OverridingIndexError(Exception):
    """An index is no tensor, and overrides torch functions: it decides what is meant."""

    def __init__(self, index: Any) -> None:
        self.index = index

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return handle_torch_function(function, (self.index,), *args)


def _finished(self: Tensor, viewed: Tensor, indices: list[Tensor | None] | None) -> Tensor:
    """What a key names: a view that was made for it, or the elements that tensors in the key name."""
    if indices is not None:
        return index_ops.index(viewed, indices)
    return alias(viewed) if viewed is self else viewed


def _as_tuple(key: Any) -> tuple[Any, ...]:
    """The key as a tuple of one index for each dimension."""
    if key.__class__ is list and len(key) < 32:
        for item in key:
            if item is None or item is Ellipsis or isinstance(item, Tensor | slice | list | tuple | np.ndarray):
                warnings.warn(
                    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
                    "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
                    "x[torch.tensor(seq)], which will result either in an error or a different result",
                    UserWarning,
                    stacklevel=4,
                )
                return tuple(key)
    return tuple(key) if isinstance(key, tuple) else (key,)


def _apply(self: Tensor, key: tuple[Any, ...]) -> tuple[Tensor, list[Tensor | None] | None]:
    """The views that a key's ints, slices and Nones make, and the tensor indices for what is left (None for none)."""
    result, dim, covered = self, 0, 0
    indices: list[Tensor | None] | None = None
    at = -1
    for item in key:
        at += 1
        kind = item.__class__
        if kind is int:
            try:
                result = _select_table[result._keys](result, dim, item)
            except IndexError:
                raise _out_of_bounds(result, dim, item, self, key, at) from None
        elif kind is slice:
            shape = result._array.shape
            if dim >= len(shape):
                raise _too_many(self)
            start, stop = item.start, item.stop
            # written out: a call of `_sliced` would take 0.4 µs
            if item.step is None and (start.__class__ is int or start is None) and (stop.__class__ is int or stop is None):
                n = shape[dim]
                if start is None:
                    start = 0
                if stop is None:
                    stop = _END
                if stop < n or (start and start > -n):  # torch: a slice that takes everything is skipped
                    result = _slice_table[result._keys](result, dim, start, stop, 1)
            else:
                result = _sliced(result, dim, item, whole=True)
            dim += 1
        elif item is None:
            result = unsqueeze(result, dim)
            dim += 1
        elif item is Ellipsis:
            after = key[at + 1 :]
            dim = max(dim, result._array.ndim - (1 if len(after) == 1 and after[0].__class__ is int else _dims_of(after)))
        else:
            result, dim, index = _apply_other(self, key, at, result, dim, item)
            if index is not None:
                if indices is None:
                    indices = []
                indices += [None] * (dim - index[1] - covered)
                indices.append(index[0])
                covered = dim
    return result, indices


def _dims_of(items: tuple[Any, ...]) -> int:
    """Count the dimensions that the items after an Ellipsis take up."""
    n = 0
    for item in items:
        if item is None or item is True or item is False or item is Ellipsis:
            continue
        if isinstance(item, Tensor):
            n += item.dim() if item.dtype in _MASKS else 1
        elif isinstance(item, np.ndarray | list | tuple):
            array = np.asarray(item)
            n += array.ndim if array.dtype == bool else 1
        else:
            n += 1
    return n


def _apply_other(
    self: Tensor, key: tuple[Any, ...], at: int, result: Tensor, dim: int, item: Any
) -> tuple[Tensor, int, tuple[Tensor, int] | None]:
    """An index that is neither int, slice, None nor Ellipsis: the new view and dimension, and a tensor index with its extent."""
    if item is True or item is False:
        return unsqueeze(result, dim), dim + 1, (wrap(np.zeros(int(item), np.int64)), 1)
    if isinstance(item, np.bool_):
        return _apply_other(self, key, at, result, dim, bool(item))
    if isinstance(item, int | np.integer) or (not isinstance(item, _ARRAYS) and hasattr(type(item), "__index__")):
        return _selected(self, key, at, result, dim, operator.index(item)), dim, None
    if _overrides(item):
        raise _OverridingIndexError(item)
    if not isinstance(item, Tensor):
        item = _index_tensor(item)
    if item.dim() == 0 and not item.dtype.inexact:
        if item.dtype in _MASKS:
            return unsqueeze(result, dim), dim + 1, (wrap(np.zeros(int(bool(item.item())), np.int64)), 1)
        return _selected(self, key, at, result, dim, int(item.item())), dim, None
    if item.dtype not in _INDICES:
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    extent = item.dim() if item.dtype in _MASKS else 1
    if dim + extent > result.dim():
        raise _too_many(self)
    return result, dim + extent, (item, extent)


def _selected(self: Tensor, key: tuple[Any, ...], at: int, result: Tensor, dim: int, i: int) -> Tensor:
    try:
        return select(result, dim, i)
    except IndexError:
        raise _out_of_bounds(result, dim, i, self, key, at) from None


def _index_tensor(item: Any) -> Tensor:
    """A list, range or array as an index tensor."""
    if isinstance(item, np.ndarray):
        return call_traced(tensor, item)  # which is shown in profiles
    if isinstance(item, Sequence) and not isinstance(item, str | bytes):
        if not len(item):
            return wrap(np.empty(0, np.int64))
        return call_traced(tensor, list(item))
    if isinstance(item, str):
        raise TypeError("new(): invalid data type 'str'")
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(item).__name__})"
    )


def _sliced(self: Tensor, dim: int, key: slice, *, whole: bool = False) -> Tensor:
    start, stop, step = key.start, key.stop, key.step
    if start is None:
        start = 0
    elif start.__class__ is not int:
        start = _slice_index(start)
    if stop is None:
        stop = _END
    elif stop.__class__ is not int:
        stop = _slice_index(stop)
    if step is None:
        step = 1
    elif step.__class__ is not int:
        step = _slice_index(step)
    if step <= 0:
        raise ValueError("step must be greater than zero")
    if whole and step == 1 and self._array.ndim:
        n = self._array.shape[dim]
        if stop >= n and (start == 0 or start <= -n):
            return self  # torch: a slice that takes everything is skipped inside of a tuple
    return _slice_table[self._keys](self, dim, start, stop, step)


def _slice_index(x: Any) -> int:
    try:
        return operator.index(x)
    except TypeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None


def _too_many(self: Tensor) -> IndexError:
    return IndexError(f"too many indices for tensor of dimension {self.dim()}")


def _specified(key: tuple[Any, ...]) -> int:
    """Count the dimensions that the key's items refer to."""
    n = 0
    for item in key:
        if item is None or item is Ellipsis or item is True or item is False:
            continue
        n += item.dim() if isinstance(item, Tensor) and item.dtype in _MASKS else 1
    return n


def _out_of_bounds(
    viewed: Tensor, dim: int, i: int, self: Tensor | None = None, key: tuple[Any, ...] = (), at: int = 0
) -> IndexError:
    for item in key:
        if _overrides(item):
            raise _OverridingIndexError(item)
    shape = viewed._array.shape
    if self is not None and _specified(key) > self._array.ndim:
        return _too_many(self)
    if not shape:
        return IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a "
            "number"
        )
    # torch: names the item's position in the key, whatever the items before it stand for
    return IndexError(f"index {i} is out of bounds for dimension {at} with size {shape[dim]}")


# --- assignment -----------------------------------------------------------------------------------------------------


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """Write to the part of the tensor that a key names."""
    kind = value.__class__
    if kind is not Tensor and not isinstance(value, Tensor):
        if hasattr(kind, "__torch_function__"):
            handle_torch_function(Tensor.__setitem__, (value,), self, key, value)
            return
        value = _value_tensor(self, value)
    kind = key.__class__
    if isinstance(key, np.integer):
        key, kind = int(key), int
    if kind is int:
        try:
            target = _select_table[self._keys](self, 0, key)
        except IndexError:
            raise _out_of_bounds(self, 0, key) from None
    elif key is Ellipsis or (kind is slice and key == _WHOLE and self._array.ndim):
        target = self
    elif kind is slice:
        target = _sliced(self, 0, key, whole=True)
    else:
        try:
            target, indices = _apply(self, key if kind is tuple else _as_tuple(key))
        except _OverridingIndexError as found:
            found.call(Tensor.__setitem__, self, key, value)
            return
        if indices is not None and key is not True:
            _put(target, indices, value)
            return
    _copy_to(target, value)


def _copy_to(target: Tensor, value: Tensor) -> None:
    """Broadcast the value over the target."""
    shape, to = value._array.shape, target._array.shape
    if not shape and to and not value._keys & keys.TRACKED and value.device.type == "cpu":
        aten.fill_(target, value)
        return
    if len(shape) > len(to):
        value = _without_leading_ones(value, to)
    target.copy_(value)


def _without_leading_ones(value: Tensor, to: tuple[int, ...]) -> Tensor:
    shape = value._array.shape
    lead = 0
    while lead < len(shape) and len(shape) - lead > len(to) and shape[lead] == 1:
        lead += 1
    return view(value, shape[lead:]) if lead else value


def _put(target: Tensor, indices: list[Tensor | None], value: Tensor) -> None:
    shape = value._array.shape
    lead = 0
    # torch: leading ones of the value are dropped before it is broadcast
    while lead < len(shape) - 1 and shape[lead] == 1:
        lead += 1
    if lead:
        value = view(value, shape[lead:])
    index_ops.index_put_(target, indices, value)


def _value_tensor(self: Tensor, value: Any) -> Tensor:
    """A number as a zero-dim tensor of the target's dtype."""
    if value.__class__ in _REAL and self.dtype.inexact and self.device is _CPU:
        return wrap(np.array(value, self.dtype.np), self.dtype)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, bool | int | float | complex):
        raise TypeError(f"can't assign a {_type_name(value)} to a {_class_name(self)}")
    if isinstance(value, complex) and not self.dtype.is_complex:
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {_c_name(self.dtype)} without overflow")
        value = value.real
    if self.dtype is _dtype.bool_:
        value = value != 0
    elif not self.dtype.inexact and isinstance(value, float):
        value = int(value)
    made = wrap(np.asarray(value).astype(self.dtype.np), self.dtype)
    return made if self.device.type == "cpu" else made.to(self.device)


def _c_name(dtype: _dtype.dtype) -> str:
    return {"Float": "float", "Double": "double", "Long": "int64_t", "Int": "int"}.get(dtype.scalar_name, dtype.scalar_name)


def _type_name(value: object) -> str:
    return "numpy.ndarray" if isinstance(value, np.ndarray) else type(value).__name__


def _class_name(t: Tensor) -> str:
    return f"torch.{t.dtype.scalar_name}Tensor"


# --- containers -----------------------------------------------------------------------------------------------------


def length(self: Tensor) -> int:
    if not self._array.ndim:
        raise TypeError("len() of a 0-d tensor")
    return self._array.shape[0]


def iterate(self: Tensor) -> Iterator[Tensor]:
    if not self._array.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self, 0))


def contains(self: Tensor, item: object) -> bool:
    if isinstance(item, Tensor | int | float | complex | bool):
        return bool(aten.any(self == item).item())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(item)}.")


def delitem(self: Tensor, key: Any) -> None:
    raise TypeError("Tensor does not support deleting items")


getitem.__name__, setitem.__name__ = "__getitem__", "__setitem__"  # as handlers of overrides know them
Tensor.__getitem__ = getitem  # type: ignore[method-assign]
Tensor.__setitem__ = setitem  # type: ignore[method-assign]
Tensor.__delitem__ = delitem  # type: ignore[attr-defined]
Tensor.__len__ = length  # type: ignore[method-assign]
Tensor.__iter__ = iterate
Tensor.__contains__ = contains  # type: ignore[method-assign]
