"""Several tensors made into one: cat, stack and their relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _promotion
from .._checks import wrap_dim
from .._tensor import Tensor
from .declare import op
from .selecting import narrow, select
from .shape import view

Array = np.ndarray[Any, Any]


def _is_skipped(shape: Sequence[int]) -> bool:
    """torch: one-dimensional tensors without elements join with anything."""
    return len(shape) == 1 and shape[0] == 0


def _cat(tensors: list[Array], dim: int) -> Array:
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    try:
        if dim < 0:
            dim = wrap_dim(dim, _cat_ndim(tensors))
        first = tensors[0].dtype
        for a in tensors:
            if a.dtype is not first:
                dtype = _common_dtype(tensors)
                tensors = [a if a.dtype == dtype else a.astype(dtype) for a in tensors]
                break
        return np.concatenate(tensors, dim)
    except (ValueError, TypeError, IndexError):
        return _cat_carefully(tensors, dim)


def _common_dtype(tensors: list[Array]) -> Any:
    from .._dtype import FROM_NUMPY

    found = FROM_NUMPY[tensors[0].dtype]
    for a in tensors[1:]:
        found = _promotion.promote_types(found, FROM_NUMPY[a.dtype])
    return found.np


def _cat_ndim(tensors: list[Array]) -> int:
    return next((a.ndim for a in tensors if not _is_skipped(a.shape)), 1)


def _cat_carefully(tensors: list[Array], dim: int) -> Array:
    for i, a in enumerate(tensors):
        if not a.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    kept = [a for a in tensors if not _is_skipped(a.shape)]
    if not kept:
        wrap_dim(dim, 1)
        return np.empty(0, tensors[0].dtype)
    first = kept[0].shape
    d = wrap_dim(dim, len(first))
    for i, a in enumerate(tensors):
        if _is_skipped(a.shape):
            continue
        if a.ndim != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {a.ndim}")
        for j, (n, m) in enumerate(zip(first, a.shape, strict=True)):
            if j != d and n != m:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {n} but got size {m} for tensor number {i} "
                    "in the list."
                )
    return np.concatenate(kept, d)


def _cat_shape(tensors: list[Tensor], dim: int) -> tuple[int, ...]:
    kept = [t._array.shape for t in tensors if not _is_skipped(t._array.shape)]
    if not kept:
        return (0,)
    d = wrap_dim(dim, len(kept[0]))
    return (*kept[0][:d], sum(s[d] for s in kept), *kept[0][d + 1 :])


def _cat_grads(grad: Tensor, shapes: list[tuple[int, ...]], dtypes: list[Any], dim: int) -> list[Tensor]:
    d = wrap_dim(dim, grad.dim())
    parts, at = [], 0
    for shape, dtype in zip(shapes, dtypes, strict=True):
        if _is_skipped(shape) and grad.dim() != 1:
            parts.append(grad.new_zeros(shape))
            continue
        part = narrow(grad, d, at, shape[d])
        # torch: a real tensor joined with complex ones gets the real part
        parts.append(part.real if part.dtype.is_complex and not dtype.is_complex else part)
        at += shape[d]
    return parts


cat = op(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    cpu=_cat,
    grad={"tensors": lambda grad, tensors_shape, tensors_dtype, dim: _cat_grads(grad, tensors_shape, tensors_dtype, dim)},
    variants="function",
)
for _name in ("concat", "concatenate"):
    op(f"{_name}(Tensor[] tensors, int dim=0) -> Tensor", composite=lambda tensors, dim: cat(tensors, dim), variants="function")


def _stack(tensors: Sequence[Tensor], dim: int) -> Tensor:
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = tensors[0]._array.shape
    d = wrap_dim(dim, len(shape) + 1)
    for i, t in enumerate(tensors):
        if t._array.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(t._array.shape)} at entry {i}"
            )
    if d == len(shape):
        return cat([t.unsqueeze(d) for t in tensors], d)  # type: ignore[no-any-return]
    joined = cat(list(tensors), d)
    return view(joined, (*shape[:d], len(tensors), *shape[d:]))  # type: ignore[no-any-return]


stack = op(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    composite=_stack,
    grad={"tensors": lambda grad, dim, tensors_shape: _stack_grads(grad, dim, len(tensors_shape))},
    variants="function",
)


def _stack_grads(grad: Tensor, dim: int, count: int) -> list[Tensor]:
    d = wrap_dim(dim, grad.dim())
    return [select(grad, d, i) for i in range(count)]
