"""Views that are copied (`*_copy`), and copies with a part replaced (`*_scatter`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._backends.cpu.shapes import views
from ..._memory_format import contiguous_format
from ..._tensor import Tensor
from ..machinery.declare import op
from . import reshaping, slicing
from .reshaping import as_strided, zeros
from .slicing import diagonal, select, slice_

if TYPE_CHECKING:
    from ..._dispatch.op import Entry

Array = np.ndarray[Any, Any]


def _copy_of(view: Entry) -> Callable[..., Any]:
    """A composite that takes the view and clones it, or each of its parts."""
    positional = sum(not a.keyword_only for a in view.op.schema.arguments)

    def copied(*arguments: Any) -> Sequence[Tensor] | Tensor:
        arguments = arguments[:positional]
        if view is reshaping.view and not _fits(*arguments):
            return reshaping.reshape(*arguments)  # torch: a shape that is no view of these strides is copied all the same
        result = view(*arguments)
        if isinstance(result, Tensor):
            return result.clone(memory_format=contiguous_format)
        return tuple([t.clone(memory_format=contiguous_format) for t in result])

    return copied


def _fits(self: Tensor, size: Sequence[int]) -> bool:
    """Whether a shape can be read off the memory as it lies."""
    return self._array.flags.c_contiguous or views.can_view(self._array, size)


def declare_copy(view: Entry) -> None:
    """`name_copy` for a view operator, with the view's own derivative."""
    declared = view.op
    schema = declared.schema
    text = str(schema).replace("aten::", "").replace("(a -> *)", "").replace("(a)", "")
    text = text.replace(schema.name, schema.name + "_copy", 1)
    grad = {f.targets[0]: f.function for f in declared.formulas}
    op(text, composite=_copy_of(view), grad=grad, node=declared.node_name + "_copy", variants="function")


for _view in (
    reshaping.alias, reshaping.as_strided, reshaping.expand, reshaping.permute, reshaping.squeeze, reshaping.squeeze_dim, reshaping.squeeze_dims, reshaping.t,
    reshaping.transpose, reshaping.unsqueeze, reshaping.view, slicing.diagonal, slicing.select, slicing.slice_, slicing.split,
    slicing.split_with_sizes, slicing.unbind, slicing.unfold,
):  # fmt: skip
    declare_copy(_view)
op(
    "view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor",
    composite=lambda self, dtype: reshaping.view_dtype(self, dtype).clone(memory_format=contiguous_format),
    variants="function",
)


def _narrow_copy(self: Array, dim: int, start: int, length: int) -> Array:
    if self.ndim and dim >= self.ndim:
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.")
    if length < 0:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({self.shape[dim]}).")
    first = slicing.narrow_start(self.shape, dim, start, length)
    d = dim % self.ndim
    return np.array(self[(slice(None),) * d + (slice(first, first + length),)], order="C")


narrow_copy = op(
    "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
    cpu=_narrow_copy,
    grad={"self": lambda grad, self_shape, dim, start, length: _narrow_copy_grad(grad, self_shape, dim, start, length)},
)


def _narrow_copy_grad(grad: Tensor, self_shape: Sequence[int], dim: int, start: int, length: int) -> Tensor:
    first = start if start >= 0 else start + self_shape[dim]
    return slicing.slice_backward(grad, self_shape, dim, first, first + length, 1)


# --- a part replaced ------------------------------------------------------------------------------------------------


def _replaced(self: Tensor, src: Tensor, part: Callable[..., Any], name: str) -> Tensor:
    """A clone of `self` whose part is `src`."""
    result = self.clone()
    target = part(result)
    if target._array.shape != src._array.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the {name} of self. src size = {list(src._array.shape)}, "
            f"{name} size = {list(target._array.shape)}"
        )
    target.copy_(src)
    return result


select_scatter = op(
    "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
    composite=lambda self, src, dim, index: _replaced(self, src, lambda x: select(x, dim, index), "slice"),
    grad={
        "self": lambda grad, src_shape, dim, index: select_scatter(grad, zeros(src_shape, grad), dim, index),
        "src": lambda grad, dim, index: select(grad, dim, index),
    },
)
slice_scatter = op(
    "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
    composite=lambda self, src, dim, start, end, step: _replaced(self, src, lambda x: slice_(x, dim, start, end, step), "slice"),
    grad={
        "self": lambda grad, src_shape, dim, start, end, step: slice_scatter(grad, zeros(src_shape, grad), dim, start, end, step),
        "src": lambda grad, dim, start, end, step: slice_(grad, dim, start, end, step),
    },
)
diagonal_scatter = op(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    composite=lambda self, src, offset, dim1, dim2: _replaced(self, src, lambda x: diagonal(x, offset, dim1, dim2), "slice"),
    grad={
        "self": lambda grad, src_shape, offset, dim1, dim2: diagonal_scatter(grad, zeros(src_shape, grad), offset, dim1, dim2),
        "src": lambda grad, offset, dim1, dim2: diagonal(grad, offset, dim1, dim2),
    },
)


def _as_strided_scatter(
    self: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None
) -> Tensor:
    """Positions count in the storage, so the clone must lie in memory as `self` does."""
    start = self.storage_offset()
    memory = self.new_empty((self._storage.bytes().nbytes // self.dtype.itemsize,))
    result = as_strided(memory, self._array.shape, self.stride(), start)
    result.copy_(self)
    target = as_strided(memory, size, stride, start if storage_offset is None else storage_offset)
    if target._array.shape != src._array.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src._array.shape)}, "
            f"slice size = {list(target._array.shape)}"
        )
    target.copy_(src)
    return result.clone()


def _only_strided(grad: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Tensor:
    """A strided part of a tensor, and zeros around it."""
    result = grad.new_zeros(grad._array.shape)
    as_strided(result, size, stride, storage_offset).copy_(as_strided(grad, size, stride, storage_offset))
    return result


as_strided_scatter = op(
    "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
    composite=_as_strided_scatter,
    grad={
        # torch: the gradient of `self` is that of the replaced part, and zero elsewhere
        "self": lambda grad, size, stride, storage_offset: _only_strided(grad.contiguous(), size, stride, storage_offset),
        "src": lambda grad, size, stride, storage_offset: as_strided(grad.contiguous(), size, stride, storage_offset),
    },
)
