"""Indexing with tensors: the operators behind `x[mask]`, `x[positions]` and their assignments."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._backends.cpu.indexing import index as kernels
from ..._backends.cpu.machinery.gathering import split_index
from ..._backends.cpu.shapes import repeating
from ..._dispatch.keys import LARGE, META
from ..._dtype import bool_, int32, int64, uint8
from ..._tensor import Tensor, wrap
from ..._types import Ints, Number, TensorOrTensors
from ..._writing import warn_if_expanded, writing_to_expanded
from ..machinery.declare import op, public
from ..machinery.lookup import aten
from ..shapes.reshaping import unsqueeze, zeros
from ..shapes.slicing import unbind

Array = np.ndarray[Any, Any]

# --- which elements are not zero ------------------------------------------------------------------------------------

nonzero = op("nonzero(Tensor self) -> Tensor", cpu=kernels.nonzero, variants="", tags=("data_dependent", "nondifferentiable"))

argwhere = op("argwhere(Tensor self) -> Tensor", composite=lambda self: nonzero(self))
nonzero_static = op(
    "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
    cpu=repeating.nonzero_static,
    shape=None,
    tags=("nondifferentiable",),
)


def _nonzero_numpy(self: Tensor) -> tuple[Tensor, ...]:
    if not self.dim():
        self = unsqueeze(self, 0)
    return unbind(nonzero(self), 1)


nonzero_numpy = op("nonzero_numpy(Tensor self) -> Tensor[]", composite=_nonzero_numpy, variants="", tags=("data_dependent",))


def _nonzero_any(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> TensorOrTensors:
    """The positions of elements that are not zero: one per row, or one tensor for each dimension."""
    if as_tuple:
        return nonzero_numpy(input)
    return nonzero(input) if out is None else nonzero(input, out=out)


public("function method", name="nonzero")(_nonzero_any)


@public("function")
def unravel_index(indices: Tensor, shape: Ints) -> tuple[Tensor, ...]:
    """Flat positions as one tensor of positions for each dimension of a shape."""
    if not isinstance(indices, Tensor):
        raise TypeError(f"Expected 'indices' to be a Tensor, but got {type(indices)}")
    if indices.dtype.inexact or indices.dtype.scalar_name == "Bool":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, int | Sequence):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in extents:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if any(n < 0 for n in extents):
        raise ValueError(f"'shape' cannot have negative values, but got {extents}")
    if indices.dtype is not int64:
        indices = indices.to(int64)
    found = []
    step = 1
    for n in reversed(extents):
        found.append(aten.remainder(aten.floor_divide(indices, step), n))
        step *= n
    return tuple(reversed(found))


def _expanded_masks(self: Tensor, indices: Sequence[Tensor | None]) -> list[Array | None]:
    """The indices as integer arrays: a mask becomes the positions of its true elements, one array for each of its dimensions."""
    found: list[Array | None] = []
    for t in indices:
        if t is None:
            found.append(None)
            continue
        if t.dtype is int64 or t.dtype is int32:
            found.append(t._array)
        elif t.dtype is bool_ or t.dtype is uint8:
            if t.dtype is uint8:
                warn_about_bytes()
            _check_mask(self, t, len(found))
            positions = nonzero(t)._array
            found += [positions[:, d] for d in range(t.dim())] if t.dim() else [np.zeros(len(positions), np.int64)]
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if len(found) > self.dim():
        raise IndexError(f"too many indices for tensor of dimension {self.dim()} (got {len(found)})")
    return found


def warn_about_bytes() -> None:
    warnings.warn(
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.", UserWarning, stacklevel=6
    )


def _check_mask(self: Tensor, mask: Tensor, start: int) -> None:
    shape = self._array.shape
    if shape[start : start + mask._array.ndim] == mask._array.shape:
        return
    for d, n in enumerate(mask._array.shape):
        if start + d >= len(shape) or shape[start + d] != n:
            raise IndexError(
                f"The shape of the mask {list(mask._array.shape)} at index {d} does not match the shape of the indexed tensor "
                f"{list(shape)} at index {start + d}"
            )


_META_OR_LARGE = META | LARGE
_index_in_parts = split_index(kernels.index)


def _along_first(self: Tensor, given: Tensor) -> Array | None:
    """The positions in the first dimension that an index stands for; None if it is another kind of index."""
    if given.dtype is int64:
        return given._array
    if given.dtype is bool_ and given._array.ndim == 1:
        _check_mask(self, given, 0)
        return nonzero(given)._array.reshape(-1)
    return None


def _index(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    if not indices:
        raise IndexError("at least one index must be provided")
    if len(indices) == 1 and indices[0] is not None and self._array.ndim and not (self._keys | indices[0]._keys) & _META_OR_LARGE:
        at = _along_first(self, indices[0])
        if at is not None:
            try:
                return wrap(self._array.take(at, 0), self.dtype)
            except IndexError as error:
                raise kernels.index_error(self._array, [at], error) from None
    taken = _index_in_parts if self._keys & LARGE or any(i is not None and i._keys & LARGE for i in indices) else kernels.index
    result = wrap(taken(self._array, _expanded_masks(self, indices)), self.dtype)
    return result.to(self.device) if self._keys & META else result


def _index_grad(grad: Tensor, self_shape: Sequence[int], indices: Sequence[Tensor | None]) -> Tensor:
    return _index_put_impl_(grad.new_zeros(self_shape), list(indices), grad, True, True)


index = op("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", composite=_index, grad={"self": _index_grad}, variants="")

# --- writing --------------------------------------------------------------------------------------------------------


def _index_put_impl(self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool, unsafe: bool) -> Tensor:
    if not indices:
        indices = [None] * self._array.ndim
        kernels.check_values(self._array, [None] * self._array.ndim, values._array)
    if self.dtype is not values.dtype:
        kernels.check_values(self._array, _expanded_masks(self, indices), values._array)
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{self.dtype.scalar_name} for the destination and {values.dtype.scalar_name} for the source."
        )
    if self._keys & META:
        self._storage.version += 1
        return self
    warn_if_expanded(self._array, "index_put_", "tensor[indices] = tensor")
    if not accumulate and values._array.size == 1:
        mask = _only_mask(self, indices)
        if mask is not None:
            return self.masked_fill_(mask, values.item())
    with writing_to_expanded(self._array):
        kernels.index_put(self._array, _expanded_masks(self, indices), values._array, accumulate=accumulate)
    self._storage.version += 1
    return self


def _only_mask(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor | None:
    """The one mask among the indices, shaped to broadcast against `self`; None when there are other indices."""
    mask: Tensor | None = None
    dims = end = 0
    for t in indices:
        if t is None:
            dims += 1
            continue
        if mask is not None or (t.dtype is not bool_ and t.dtype is not uint8):
            return None
        mask = t
        _check_mask(self, t, dims)
        dims += t.dim()
        end = dims
    if mask is None:
        return None
    shape = mask._array.shape + (1,) * (self.dim() - end)
    if shape != mask._array.shape:
        mask = mask.view(shape)
    return mask


def _put_self_grad(grad: Tensor, indices: Sequence[Tensor | None], values_shape: Sequence[int], accumulate: bool) -> Tensor:
    if accumulate:
        return grad
    return index_put(grad, list(indices), zeros(values_shape, grad), False)


_PUT_GRADS: dict[str, Callable[..., Any]] = {
    "self": lambda grad, indices, values_shape, accumulate: _put_self_grad(grad, indices, values_shape, accumulate),
    "values": lambda grad, indices: index(grad, list(indices)),
}
_index_put_impl_ = op(
    "_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor(a!)",
    composite=_index_put_impl,
    grad=_PUT_GRADS,
    node="IndexPutImplBackward0",
    variants="function",
)
index_put_ = op(
    "index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
    composite=lambda self, indices, values, accumulate: _index_put_impl_(self, indices, values, accumulate, False),
    grad=_PUT_GRADS,
)
index_put = op(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    composite=lambda self, indices, values, accumulate: index_put_(self.clone(), indices, values, accumulate),
    grad=_PUT_GRADS,
)

# --- without range checks in torch; here the same -------------------------------------------------------------------

_unsafe_index = op(
    "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    composite=lambda self, indices: index(self, indices),
    grad={"self": lambda grad, self_shape, indices: _unsafe_index_put(grad.new_zeros(self_shape), list(indices), grad, True)},
    node="UnsafeIndexBackward0",
    variants="function",
)
_unsafe_index_put = op(
    "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    composite=lambda self, indices, values, accumulate: index_put(self, indices, values, accumulate),
    grad=_PUT_GRADS,
    node="UnsafeIndexPutBackward0",
    variants="function",
)


def _clamped(self: Tensor, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    shape = self._array.shape
    return [None if i is None else aten.clamp(i, -shape[d], shape[d] - 1) for d, i in enumerate(indices)]


def _masked_index(self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: Number) -> Tensor:
    if not self.numel():
        return self.new_full(aten.broadcast_tensors([i for i in indices if i is not None])[0].shape, fill)
    found = _unsafe_index(self, _clamped(self, indices))
    return found.masked_fill(aten.logical_not(mask), fill)


def _masked_put_accumulate(self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor) -> Tensor:
    if not self.numel():
        return self.clone()
    kept = values.masked_fill(aten.logical_not(mask), 0)
    return _unsafe_index_put(self, _clamped(self, indices), kept, True)


_unsafe_masked_index = op(
    "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
    composite=_masked_index,
    grad={
        "self": lambda grad, self_shape, mask, indices: _unsafe_masked_index_put_accumulate(
            grad.new_zeros(self_shape), mask, list(indices), grad
        )
    },
    node="UnsafeMaskedIndexBackward0",
    variants="function",
)
_unsafe_masked_index_put_accumulate = op(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
    composite=_masked_put_accumulate,
    grad={
        "self": lambda grad: grad,
        "values": lambda grad, mask, indices: _unsafe_masked_index(grad, mask, list(indices), 0),
    },
    node="UnsafeMaskedIndexPutAccumulateBackward0",
    variants="function",
)
