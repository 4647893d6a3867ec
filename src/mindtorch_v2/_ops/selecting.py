"""Parts of a tensor as views: select, slice, narrow, split, unbind, diagonal, unfold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._backends.cpu import views
from .._checks import dimension_error, wrap_dim
from .._tensor import Tensor
from .declare import op
from .shape import zeros

# --- one position, a range of positions -----------------------------------------------------------------------------

select = op(
    "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    cpu=views.select,
    grad={"self": lambda grad, self_shape, dim, index: select_backward(grad, self_shape, dim, index)},
)
slice_ = op(
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
    cpu=views.slice_,
    grad={"self": lambda grad, self_shape, dim, start, end, step: slice_backward(grad, self_shape, dim, start, end, step)},
    variants="",
)


def _select_backward(grad_output: Tensor, input_sizes: Sequence[int], dim: int, index: int) -> Tensor:
    whole = zeros(input_sizes, grad_output)
    select(whole, dim, index).copy_(grad_output)
    return whole


def _slice_backward(grad_output: Tensor, input_sizes: Sequence[int], dim: int, start: Any, end: Any, step: int) -> Tensor:
    whole = zeros(input_sizes, grad_output)
    slice_(whole, dim, start, end, step).copy_(grad_output)
    return whole


select_backward = op(
    "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
    composite=_select_backward,
    grad={"grad_output": lambda grad, dim, index: select(grad, dim, index)},
    node="SelectBackwardBackward0",
    variants="function",
)
slice_backward = op(
    "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt? start, SymInt? end, SymInt step) -> Tensor",
    composite=_slice_backward,
    grad={"grad_output": lambda grad, dim, start, end, step: slice_(grad, dim, start, end, step)},
    node="SliceBackwardBackward0",
    variants="function",
)


def _narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    if not self.dim():
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = self._array.shape[wrap_dim(dim, self.dim())]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [-{size}, {size}], but got {start})")
    if start < 0:
        start += size
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_(self, dim, start, start + length, 1)  # type: ignore[no-any-return]


def _narrow_tensor(self: Tensor, dim: int, start: Tensor, length: int) -> Tensor:
    if start.dim() or start.dtype.inexact or start.dtype.scalar_name == "Bool":
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    return narrow(self, dim, int(start.item()), length)  # type: ignore[no-any-return]


narrow = op("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", composite=_narrow)
narrow_tensor = op("narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)", composite=_narrow_tensor)

# --- all parts of a dimension ---------------------------------------------------------------------------------------


def _joined_grads(grads: list[Tensor | None], sizes: Sequence[int], dim: int, shape: Sequence[int]) -> Tensor | None:
    """The gradients of consecutive parts put together; a part without one counts as zeros."""
    from .joining import cat

    some = next((g for g in grads if g is not None), None)
    if some is None:
        return None
    d = wrap_dim(dim, len(shape))
    parts = [zeros((*shape[:d], n, *shape[d + 1 :]), some) if g is None else g for g, n in zip(grads, sizes, strict=True)]
    return cat(parts, d)  # type: ignore[no-any-return]


def _split_sizes(length: int, size: int) -> list[int]:
    if size == 0:
        return [0]
    count = max((length + size - 1) // size, 1)
    return [size] * (count - 1) + [length - size * (count - 1)]


def _split(self: Tensor, split_size: int, dim: int) -> tuple[Tensor, ...]:
    if not self.dim():
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    length = self._array.shape[wrap_dim(dim, self.dim())]
    if split_size == 0 and length:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}"
        )
    parts, at = [], 0
    for n in _split_sizes(length, split_size):
        parts.append(narrow(self, dim, at, n))
        at += n
    return tuple(parts)


split = op(
    "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    composite=_split,
    grad={
        "self": lambda grads, split_size, dim, self_shape: _joined_grads(
            grads, _split_sizes(self_shape[wrap_dim(dim, len(self_shape))], split_size), dim, self_shape
        )
    },
)
split_sizes = op(
    "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
    composite=lambda self, split_size, dim: split_with_sizes(self, split_size, dim),
)
split_with_sizes = op(
    "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
    cpu=views.split_with_sizes,
    grad={"self": lambda grads, split_sizes, dim, self_shape: _joined_grads(grads, split_sizes, dim, self_shape)},
)


def _chunk(self: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    if not self.dim():
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    length = self._array.shape[wrap_dim(dim, self.dim())]
    size = (length + chunks - 1) // chunks
    if size == 0 and length == 0:
        return split_with_sizes(self, [0] * chunks, dim)  # type: ignore[no-any-return]
    return split(self, size, dim)  # type: ignore[no-any-return]


chunk = op("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", composite=_chunk)


def _unbind(self: Tensor, dim: int) -> tuple[Tensor, ...]:
    ndim = self.dim()
    if not ndim:
        raise dimension_error(dim, 0) if dim not in (0, -1) else RuntimeError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, ndim)
    return tuple([select(self, d, i) for i in range(self._array.shape[d])])


def _unbind_grad(grads: list[Tensor | None], dim: int, shape: Sequence[int]) -> Tensor | None:
    from .joining import stack

    some = next((g for g in grads if g is not None), None)
    if some is None:
        return None
    return stack([zeros((), some).expand(some._array.shape) if g is None else g for g in grads], wrap_dim(dim, len(shape)))  # type: ignore[no-any-return]


unbind = op(
    "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    composite=_unbind,
    grad={"self": lambda grads, dim, self_shape: _unbind_grad(grads, dim, self_shape)},
)

# --- diagonals and windows ------------------------------------------------------------------------------------------


def _diagonal_backward(grad_output: Tensor, input_sizes: Sequence[int], offset: int, dim1: int, dim2: int) -> Tensor:
    whole = zeros(input_sizes, grad_output)
    diagonal(whole, offset, dim1, dim2).copy_(grad_output)
    return whole


diagonal = op(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    cpu=views.diagonal,
    grad={"self": lambda grad, self_shape, offset, dim1, dim2: diagonal_backward(grad, self_shape, offset, dim1, dim2)},
)
diagonal_backward = op(
    "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
    composite=_diagonal_backward,
    grad={"grad_output": lambda grad, offset, dim1, dim2: diagonal(grad, offset, dim1, dim2)},
    node="DiagonalBackwardBackward0",
    variants="function",
)
