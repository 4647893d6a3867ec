"""Several tensors made into one: cat, stack and their relatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _promotion
from ..._backends.cpu.machinery.floating_errors import SILENT
from ..._checks import broadcast_shapes as broadcast_shapes_of
from ..._checks import wrap_dim
from ..._dispatch.entry import keys_of
from ..._dtype import FROM_NUMPY
from ..._tensor import Size, Tensor
from ..machinery.declare import op, public
from .reshaping import expand, reshape, unsqueeze, view, zeros
from .slicing import narrow, select

if TYPE_CHECKING:
    from ..._types import TensorOrTensors

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
        joined = np.concatenate(tensors, dim)
        return joined if joined.flags.c_contiguous else _row_by_row(joined)
    except (ValueError, TypeError, IndexError, AttributeError):
        return _cat_carefully(tensors, dim)


def _row_by_row(joined: Array) -> Array:
    """NumPy keeps an order of dimensions that all parts share; torch keeps only that of channels-last."""
    if joined.ndim in (4, 5) and np.moveaxis(joined, 1, -1).flags.c_contiguous:
        return joined
    return np.ascontiguousarray(joined)


def _common_dtype(tensors: list[Array]) -> Any:
    found = FROM_NUMPY[tensors[0].dtype]
    for a in tensors[1:]:
        found = _promotion.promote_types(found, FROM_NUMPY[a.dtype])
    return found.np


def _cat_ndim(tensors: list[Array]) -> int:
    return next((a.ndim for a in tensors if not _is_skipped(a.shape)), 1)


def _cat_carefully(tensors: list[Array], dim: int) -> Array:
    for i, a in enumerate(tensors):
        if a is None:
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got None")
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
    return _row_by_row(np.concatenate(kept, d))


def _cat_grads(grad: Tensor, shapes: list[tuple[int, ...]], dtypes: list[Any], dim: int) -> list[Tensor]:
    d = wrap_dim(dim, grad.dim())
    parts, at = [], 0
    for shape, dtype in zip(shapes, dtypes, strict=True):
        if _is_skipped(shape):
            parts.append(zeros(shape, grad))
            continue
        part = narrow(grad, d, at, shape[d])
        # torch: a real tensor joined with complex ones gets the real part
        parts.append(part.real if part.dtype.is_complex and not dtype.is_complex else part)
        at += shape[d]
    return parts


SILENT.add(_cat)  # it moves elements and computes nothing
cat = op(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    cpu=_cat,
    grad={"tensors": lambda grad, tensors_shape, tensors_dtype, dim: _cat_grads(grad, tensors_shape, tensors_dtype, dim)},
    variants="function",
    tags=("disjoint_out",),
)
for _name in ("concat", "concatenate"):
    op(f"{_name}(Tensor[] tensors, int dim=0) -> Tensor", composite=lambda tensors, dim: cat(tensors, dim), variants="function")


def _stack(tensors: Sequence[Tensor], dim: int) -> Tensor:
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = tensors[0]._array.shape
    d = dim if dim == 0 else wrap_dim(dim, len(shape) + 1)
    for i, t in enumerate(tensors):
        if t._array.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(t._array.shape)} at entry {i}"
            )
    if d == len(shape):
        return cat([t.unsqueeze(d) for t in tensors], d)
    together = cat.op.table[keys_of(tensors)](tensors, d)
    joined: Tensor = view.op.table[together._keys](together, (*shape[:d], len(tensors), *shape[d:]))
    joined._base = None  # nobody holds what it is a view of
    return joined


stack = op(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    composite=_stack,
    grad={"tensors": lambda grad, dim, tensors_shape: _stack_grads(grad, dim, len(tensors_shape))},
    variants="function",
)


def _stack_grads(grad: Tensor, dim: int, count: int) -> list[Tensor]:
    d = wrap_dim(dim, grad.dim())
    return [select(grad, d, i) for i in range(count)]


def _broadcast_tensors(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    shape = broadcast_shapes_of(*(t._array.shape for t in tensors))
    return tuple([t if t._array.shape == shape else expand(t, shape) for t in tensors])


_broadcast_tensors_op = op("broadcast_tensors(Tensor[] tensors) -> Tensor[]", composite=_broadcast_tensors, variants="function")


def _several(tensors: tuple[Any, ...]) -> list[Tensor]:
    """Tensors written out, or in one list."""
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else list(tensors)


@public("function")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape."""
    return _broadcast_tensors_op(_several(tensors))


@public("function")
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to."""
    sizes = [(s,) if isinstance(s, int) else s for s in shapes if s is not None]
    for shape in sizes:
        if not isinstance(shape, Sequence):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}")
    common = [1] * max(map(len, sizes), default=0)
    for argument, shape in enumerate(sizes):
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] == common[i] or shape[i] == 1:
                continue
            if common[i] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[i]} at {i}! Mismatching argument at index {argument} had {shape}; "
                    f"but expected shape should be broadcastable to {common}"
                )
            if shape[i] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            common[i] = shape[i]
    return Size(common)


# --- at least so many dimensions ------------------------------------------------------------------------------------


def _atleast_1d(self: Tensor) -> Tensor:
    return self if self.dim() else reshape(self, (1,))


def _atleast_2d(self: Tensor) -> Tensor:
    if not self.dim():
        return reshape(self, (1, 1))
    return unsqueeze(self, 0) if self.dim() == 1 else self


def _atleast_3d(self: Tensor) -> Tensor:
    if not self.dim():
        return reshape(self, (1, 1, 1))
    if self.dim() == 1:
        return unsqueeze(unsqueeze(self, 0), -1)
    return unsqueeze(self, -1) if self.dim() == 2 else self


def _declare_atleast(name: str, one: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    single = op(f"{name}(Tensor self) -> Tensor", composite=one, variants="function")
    sequence = op(
        f"{name}.Sequence(Tensor[] tensors) -> Tensor[]",
        composite=lambda tensors: tuple([one(t) for t in tensors]),
        variants="function",
    )

    def atleast(*tensors: Any) -> TensorOrTensors:
        if len(tensors) == 1:
            only = tensors[0]
            return sequence(list(only)) if isinstance(only, list | tuple) else single(only)
        return sequence(list(tensors))

    atleast.__name__ = name
    atleast.__doc__ = f"The tensors with at least {name[8]} dimensions, as views."
    public("function")(atleast)
    return sequence


_many_1d = _declare_atleast("atleast_1d", _atleast_1d)
_many_2d = _declare_atleast("atleast_2d", _atleast_2d)
_many_3d = _declare_atleast("atleast_3d", _atleast_3d)

# --- stacks along rows, columns and depth ---------------------------------------------------------------------------


def _check_some(name: str, tensors: Sequence[Tensor]) -> None:
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")


def _hstack(tensors: Sequence[Tensor]) -> Tensor:
    _check_some("hstack", tensors)
    raised = _many_1d(list(tensors))
    return cat(list(raised), 0 if raised[0].dim() == 1 else 1)


def _vstack(tensors: Sequence[Tensor]) -> Tensor:
    _check_some("vstack", tensors)
    return cat(list(_many_2d(list(tensors))), 0)


def _dstack(tensors: Sequence[Tensor]) -> Tensor:
    _check_some("dstack", tensors)
    return cat(list(_many_3d(list(tensors))), 2)


def _column_stack(tensors: Sequence[Tensor]) -> Tensor:
    _check_some("column_stack", tensors)
    return hstack([reshape(t, (t.numel(), 1)) if t.dim() <= 1 else t for t in tensors])


hstack = op("hstack(Tensor[] tensors) -> Tensor", composite=_hstack, variants="function")
vstack = op("vstack(Tensor[] tensors) -> Tensor", composite=_vstack, variants="function")
row_stack = op("row_stack(Tensor[] tensors) -> Tensor", composite=lambda tensors: vstack(tensors), variants="function")
dstack = op("dstack(Tensor[] tensors) -> Tensor", composite=_dstack, variants="function")
column_stack = op("column_stack(Tensor[] tensors) -> Tensor", composite=_column_stack, variants="function")


def _chunk_cat_composite(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Every tensor cut into `num_chunks` (padded to a multiple of it) and the i-th chunks joined side by side."""
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    lead = tensors[0]._array.shape
    if dim < 0 and any(t.dim() != len(lead) for t in tensors):
        raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
    d = dim + len(lead) if dim < 0 else dim
    for t in tensors:
        if t.numel() == 0:
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if d >= t.dim():
            raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
        if t._array.shape[:d] != lead[:d]:
            raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    rows = []
    for t in tensors:
        shape = t._array.shape
        size = -(-shape[d] // num_chunks) * num_chunks
        if size != shape[d]:
            padded = t.new_zeros((*shape[:d], size, *shape[d + 1 :]))
            padded.narrow(d, 0, shape[d]).copy_(t)
            t = padded
        rows.append(reshape(t, (*shape[:d], num_chunks, -1)))
    return cat(rows, d + 1)


_chunk_cat = op(
    "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
    composite=_chunk_cat_composite,
    variants="function",
    tags=("no_derivative",),
)
_stack_op = op("_stack(Tensor[] tensors, int dim=0) -> Tensor", composite=_stack, variants="function", tags=("no_derivative",))
