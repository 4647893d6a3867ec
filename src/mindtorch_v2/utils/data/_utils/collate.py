"""Batches made of samples: tensors and numbers are stacked, collections are taken apart and put together again."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from .... import _creation, _dtype
from ...._functions import functions
from ...._memory_format import strided
from ...._tensor import Tensor

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

default_collate_err_msg_format = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
_NO_TENSORS = "SaUO"  # kinds of NumPy's strings and objects


def default_convert(data: Any) -> Any:
    """NumPy arrays and numbers as tensors, also inside of collections; everything else as it is."""
    if isinstance(data, Tensor):
        return data
    kind = type(data)
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_"):
        if kind.__name__ == "ndarray" and data.dtype.kind in _NO_TENSORS:
            return data
        return _creation.as_tensor(data)
    if isinstance(data, Mapping):
        return _as_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        converted = [default_convert(d) for d in data]
        return kind(*converted) if hasattr(data, "_fields") else converted  # torch: a plain tuple becomes a list
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _as_sequence(data, [default_convert(d) for d in data])
    return data


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """A batch of samples as one: by the function for their type, or part by part for collections."""
    sample = batch[0]
    kind = type(sample)
    for known, function in (collate_fn_map or {}).items():
        if kind is known:
            return function(batch, collate_fn_map=collate_fn_map)
    for known, function in (collate_fn_map or {}).items():
        if isinstance(sample, known):
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(sample, Mapping):
        parts = {key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map) for key in sample}
        return _as_mapping(sample, parts)
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return kind(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=False)))
    if isinstance(sample, Sequence):
        if any(len(other) != len(sample) for other in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)]
        return columns if isinstance(sample, tuple) else _as_sequence(sample, columns)  # torch: a plain tuple becomes a list
    raise TypeError(default_collate_err_msg_format.format(kind))


def _as_mapping(like: Any, parts: dict[Any, Any]) -> Any:
    """These parts in a mapping of the same type, with its other properties if it can be copied; a dict if neither works."""
    try:
        if not isinstance(like, MutableMapping):
            return type(like)(parts)
        new = copy.copy(like)
        new.update(parts)
        return new
    except TypeError:
        return parts


def _as_sequence(like: Any, parts: list[Any]) -> Any:
    """These parts in a sequence of the same type, with its other properties if it can be copied; a list if neither works."""
    try:
        if not isinstance(like, MutableSequence):
            return type(like)(parts)
        new = copy.copy(like)
        for i, part in enumerate(parts):
            new[i] = part
        return new
    except TypeError:
        return parts


def collate_tensor_fn(
    batch: Sequence[Tensor], *, collate_fn_map: dict[type | tuple[type, ...], Callable[..., Any]] | None = None
) -> Tensor:
    """Tensors stacked."""
    if batch[0].layout is not strided:
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn; please provide a custom collate_fn to "
            "handle them appropriately."
        )
    return functions["stack"](batch, 0)


def collate_numpy_array_fn(
    batch: Sequence[np.ndarray[Any, Any]], *, collate_fn_map: dict[type | tuple[type, ...], Callable[..., Any]] | None = None
) -> Tensor:
    """Arrays stacked as tensors."""
    if batch[0].dtype.kind in _NO_TENSORS:
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([_creation.as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(
    batch: Any, *, collate_fn_map: dict[type | tuple[type, ...], Callable[..., Any]] | None = None
) -> Tensor:
    """NumPy's numbers in a tensor of their dtype."""
    return _creation.as_tensor(batch)


def collate_float_fn(
    batch: Sequence[float], *, collate_fn_map: dict[type | tuple[type, ...], Callable[..., Any]] | None = None
) -> Tensor:
    """Numbers in a tensor of doubles."""
    return _creation.tensor(batch, dtype=_dtype.float64)


def collate_int_fn(
    batch: Sequence[int], *, collate_fn_map: dict[type | tuple[type, ...], Callable[..., Any]] | None = None
) -> Tensor:
    """Numbers in a tensor of integers."""
    return _creation.tensor(batch)


def collate_str_fn(
    batch: Sequence[str | bytes], *, collate_fn_map: dict[type | tuple[type, ...], Callable[..., Any]] | None = None
) -> Sequence[str | bytes]:
    """Texts as they are."""
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """A list of samples as one batch: tensors, arrays and numbers in tensors with a dimension more, in collections as the samples have.

    Types that are added to `default_collate_fn_map` are collated by their function.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
