"""Parts of a tensor as views: select, slice, narrow, split, unbind, diagonal, unfold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..._backends.cpu.shapes import repeating, views
from ..._checks import dimension_error, wrap_dim
from ..._tensor import Tensor, wrap_view
from ..machinery.declare import op, public
from .reshaping import zeros

if TYPE_CHECKING:
    from ..._types import Ints

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


def _slice_backward(
    grad_output: Tensor, input_sizes: Sequence[int], dim: int, start: int | None, end: int | None, step: int
) -> Tensor:
    whole = zeros(input_sizes, grad_output)
    slice_(whole, dim, start, end, step).copy_(grad_output)
    return whole


select_backward = op(
    "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
    composite=_select_backward,
    grad={"grad_output": lambda grad, dim, index: select(grad, dim, index)},
    node="SelectBackwardBackward0",
    variants="",
)
slice_backward = op(
    "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt? start, SymInt? end, SymInt step) -> Tensor",
    composite=_slice_backward,
    grad={"grad_output": lambda grad, dim, start, end, step: slice_(grad, dim, start, end, step)},
    node="SliceBackwardBackward0",
    variants="",
)


def narrow_start(shape: tuple[int, ...], dim: int, start: int, length: int) -> int:
    """Return the begin of a part of a dimension, counted from its front; raise where there is no such part."""
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = shape[wrap_dim(dim, len(shape))]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [-{size}, {size}], but got {start})")
    if start < 0:
        start += size
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return start


def _narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    start = narrow_start(self._array.shape, dim, start, length)
    return slice_.op.table[self._keys](self, dim, start, start + length, 1)


def _narrow_tensor(self: Tensor, dim: int, start: Tensor, length: int) -> Tensor:
    if start.dim() or start.dtype.inexact or start.dtype.scalar_name == "Bool":
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    return narrow(self, dim, int(start.item()), length)


# before the overload with numbers, which takes tensors of one element too
narrow_tensor = op("narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)", composite=_narrow_tensor)
narrow = op("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", composite=_narrow)

# --- all parts of a dimension ---------------------------------------------------------------------------------------


def _joined_grads(grads: list[Tensor | None], sizes: Sequence[int], dim: int, shape: Sequence[int]) -> Tensor | None:
    """The gradients of consecutive parts put together; a part without one counts as zeros."""
    from .joining import cat  # cycle with _ops.shapes.joining

    some = next((g for g in grads if g is not None), None)
    if some is None:
        return None
    d = wrap_dim(dim, len(shape))
    parts = [zeros((*shape[:d], n, *shape[d + 1 :]), some) if g is None else g for g, n in zip(grads, sizes, strict=True)]
    return cat(parts, d)


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
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")
    parts, at = [], 0
    part = narrow.op.table[self._keys]
    for n in _split_sizes(length, split_size):
        parts.append(part(self, dim, at, n))
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


def _chunk_size(self: Tensor, chunks: int, dim: int) -> int:
    """The size of all chunks but the last, which may be smaller."""
    if not self.dim():
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    return (self._array.shape[wrap_dim(dim, self.dim())] + chunks - 1) // chunks


def _chunk(self: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    size = _chunk_size(self, chunks, dim)
    if size == 0:
        return split_with_sizes(self, [0] * chunks, dim)
    return split.op.table[self._keys](self, size, dim)


chunk = op("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", composite=_chunk)


def _unbind(self: Tensor, dim: int) -> tuple[Tensor, ...]:
    ndim = self.dim()
    if not ndim:
        raise (
            dimension_error(dim, 0)
            if dim not in (0, -1)
            else IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        )
    d = wrap_dim(dim, ndim)
    part = select.op.table[self._keys]
    return tuple([part(self, d, i) for i in range(self._array.shape[d])])


def _unbind_grad(grads: list[Tensor | None], dim: int, shape: Sequence[int]) -> Tensor | None:
    from .joining import stack  # cycle with _ops.shapes.joining

    some = next((g for g in grads if g is not None), None)
    if some is None:
        return None
    return stack([zeros((), some).expand(some._array.shape) if g is None else g for g in grads], wrap_dim(dim, len(shape)))


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
    variants="",
)
unfold = op(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    cpu=views.unfold,
    grad={"self": lambda grad, self_shape, dimension, size, step: unfold_backward(grad, self_shape, dimension, size, step)},
    variants="method",
)
unfold_backward = op(
    "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
    cpu=repeating.unfold_backward,
    shape=lambda input_sizes: input_sizes,
    grad={"grad_in": lambda grad, dim, size, step: unfold(grad, dim, size, step)},
    node="UnfoldBackwardBackward0",
    variants="",
)

# --- parts given by sections or cuts --------------------------------------------------------------------------------


def _tensor_split_sections(self: Tensor, sections: int, dim: int) -> tuple[Tensor, ...]:
    if not self.dim():
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = wrap_dim(dim, self.dim())
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    length = self._array.shape[d]
    small, longer = divmod(length, sections)
    parts, at = [], 0
    for i in range(sections):
        n = small + (i < longer)
        parts.append(slice_(self, d, at, at + n, 1))
        at += n
    return tuple(parts)


def _tensor_split_indices(self: Tensor, indices: Sequence[int], dim: int) -> tuple[Tensor, ...]:
    if not self.dim():
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = wrap_dim(dim, self.dim())
    parts, at = [], 0
    for cut in indices:
        parts.append(slice_(self, d, at, cut, 1))
        at = cut
    parts.append(slice_(self, d, at, self._array.shape[d], 1))
    return tuple(parts)


def _tensor_split_tensor(self: Tensor, tensor_indices_or_sections: Tensor, dim: int) -> tuple[Tensor, ...]:
    given = tensor_indices_or_sections
    if not self.dim():
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    if given.dtype.scalar_name != "Long":
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {given.dtype.scalar_name}"
        )
    if given.dim() > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor "
            f"with {given.dim()} dims"
        )
    if not given.dim():
        return _tensor_split_sections(self, int(given.item()), dim)
    return _tensor_split_indices(self, given.tolist(), dim)


tensor_split_sections = op(
    "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]", composite=_tensor_split_sections
)
tensor_split_indices = op(
    "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]", composite=_tensor_split_indices
)
tensor_split_tensor = op(
    "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
    composite=_tensor_split_tensor,
)


@public("function method")
def tensor_split(
    input: Tensor, indices_or_sections: Tensor | Ints | None = None, dim: int = 0, **aliases: Any
) -> tuple[Tensor, ...]:
    """Parts of nearly equal size, or cut at the given positions."""
    for name in ("sections", "indices", "tensor_indices_or_sections"):
        if name in aliases:
            indices_or_sections = aliases.pop(name)
    if isinstance(indices_or_sections, Tensor):
        return tensor_split_tensor(input, indices_or_sections, dim)
    if isinstance(indices_or_sections, list | tuple):
        return tensor_split_indices(input, indices_or_sections, dim)
    return tensor_split_sections(input, indices_or_sections, dim)


def _check_even(name: str, self: Tensor, sections: int, dim: int) -> None:
    n = self._array.shape[dim]
    if sections == 0 or n % sections:
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {n} is not divisible by the "
            f"split_size {sections}!"
        )


def _declare_axis_split(name: str, least: int, axis: Callable[..., Any]) -> None:
    def check(self: Tensor) -> None:
        if self.dim() < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {self.dim()} dimensions!"
            )

    def by_sections(self: Tensor, sections: int) -> Sequence[Tensor]:
        check(self)
        _check_even(name, self, sections, axis(self))
        return tensor_split_sections(self, sections, axis(self))

    def by_indices(self: Tensor, indices: Sequence[int]) -> Sequence[Tensor]:
        check(self)
        return tensor_split_indices(self, indices, axis(self))

    op(f"{name}.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", composite=by_sections)
    op(f"{name}.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", composite=by_indices)


_declare_axis_split("hsplit", 1, lambda t: 0 if t.dim() == 1 else 1)
_declare_axis_split("vsplit", 2, lambda t: 0)
_declare_axis_split("dsplit", 3, lambda t: 2)

# --- parts that autograd treats as independent tensors --------------------------------------------------------------


def _detached_parts(parts: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The parts over the same memory, each with a version count of its own: writing to one leaves the others valid."""
    for t in parts:
        t._base = None
        t._storage = t._storage.alias()
    return tuple(parts)


unsafe_split = op(
    "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
    composite=lambda self, split_size, dim: _detached_parts(_split(self, split_size, dim)),
    grad={
        "self": lambda grads, split_size, dim, self_shape: _joined_grads(
            grads, _split_sizes(self_shape[wrap_dim(dim, len(self_shape))], split_size), dim, self_shape
        )
    },
)
unsafe_split_with_sizes = op(
    "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
    composite=lambda self, split_sizes, dim: _detached_parts(
        [wrap_view(a, self) for a in views.split_with_sizes(self._array, split_sizes, dim)]
    ),
    grad={"self": lambda grads, split_sizes, dim, self_shape: _joined_grads(grads, split_sizes, dim, self_shape)},
)


def _unsafe_chunk(self: Tensor, chunks: int, dim: int) -> Sequence[Tensor]:
    size = _chunk_size(self, chunks, dim)
    return unsafe_split_with_sizes(self, [0] * chunks, dim) if size == 0 else unsafe_split(self, size, dim)


unsafe_chunk = op("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", composite=_unsafe_chunk)


def _split_any(tensor: Tensor, split_size_or_sections: Ints | None = None, dim: int = 0, **aliases: Any) -> Any:
    """Consecutive parts of one size, or of the sizes in a list."""
    if split_size_or_sections is None:
        split_size_or_sections = aliases.pop("split_size")
    if isinstance(split_size_or_sections, list | tuple):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    return split(tensor, split_size_or_sections, dim)


public("function method", name="split")(_split_any)
