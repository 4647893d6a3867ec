"""From one layout to another: `to_sparse` and its kin, `to_dense`, and the elements of a tensor at another's places."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dispatch import keys
from ..._memory_format import layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ..._tensor import Tensor, wrap
from ..._types import Ints, OptionalDType
from ..machinery.declare import op, public
from .compressed import BLOCKS, COMPRESSED_LAYOUTS, as_coo, compress, compress_coordinates, dense_array, in_layout_of, storage_of
from .construction import at_places
from .storage import from_arrays, parts, sparse_tensor

__all__ = ["to_dense", "to_layout"]


# --- to sparse --------------------------------------------------------------------------------------------------------


def _coordinates(self: Tensor, sparse_dim: int) -> Tensor:
    """A dense tensor in coordinate form."""
    array = self._array
    if not 0 <= sparse_dim <= array.ndim or (sparse_dim == 0 and array.ndim):
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [{min(1, array.ndim)},{array.ndim}] range, but {sparse_dim} is given")  # fmt: skip
    if array.ndim == 0:
        kept = np.atleast_1d(array)[np.atleast_1d(array != 0)]
        return from_arrays(np.empty((0, kept.size), np.int64), kept, self, (), coalesced=True)
    occupied = array != 0
    if sparse_dim < array.ndim:
        occupied = occupied.any(axis=tuple(range(sparse_dim, array.ndim)))
    where = np.nonzero(occupied)
    return sparse_tensor(wrap(np.stack(where).astype(np.int64)), wrap(array[where], self.dtype), array.shape, coalesced=True)


def to_layout(self: Tensor, layout: layout, blocksize: Ints | None = None, dense_dim: int | None = None) -> Tensor:
    """The same elements in another layout; of a dense tensor, those that are not zero."""
    blocksize = (blocksize, blocksize) if isinstance(blocksize, int) else blocksize
    _check_request(self, layout, blocksize, dense_dim)
    if not self._keys & keys.SPARSE_LAYOUTS:
        if layout is sparse_coo:
            return _coordinates(self, self._array.ndim - (dense_dim or 0))
        return compress(self._array, self, layout, blocksize, dense_dim or 0)
    if self.layout is layout and (blocksize is None or tuple(blocksize) == storage_of(self).blocksize):
        return self
    return as_coo(self) if layout is sparse_coo else compress_coordinates(as_coo(self), layout, blocksize)


def _check_request(self: Tensor, layout: layout, blocksize: Ints | None, dense_dim: int | None) -> None:
    name = "dense_to_sparse" if not self._keys & keys.SPARSE_LAYOUTS else "sparse_to_sparse"
    if layout is not sparse_coo and layout not in COMPRESSED_LAYOUTS:
        raise RuntimeError(f"to_sparse: conversion from {self.layout} to {layout} is not supported")
    if layout in BLOCKS and blocksize is None and self.layout is not layout:
        raise RuntimeError(f"{name}: conversion to {layout} needs the argument blocksize")
    if layout not in BLOCKS and blocksize is not None:
        raise RuntimeError(f"{name}: conversion from {self.layout} to {layout} with blocksize argument given is not supported")
    if dense_dim is not None and self._keys & keys.SPARSE_LAYOUTS:
        raise RuntimeError(f"{name}: conversion from {self.layout} to {layout} with dense_dim argument given is not supported")
    matrix = self._array.ndim - (dense_dim or 0) if not self._keys & keys.SPARSE else self.sparse_dim()
    if layout in COMPRESSED_LAYOUTS and matrix < 2:
        raise IndexError(f"{name}: tensors of {matrix} sparse dimensions have no compressed form; they need two")
    if blocksize is not None:
        _check_blocks(self, blocksize, dense_dim or 0)


def _check_blocks(self: Tensor, blocksize: Any, dense_dim: int) -> None:
    if len(blocksize) != 2 or min(blocksize) < 1:
        raise RuntimeError(f"blocksize needs to be a tuple of two positive numbers, but got {tuple(blocksize)}")
    last = self._array.ndim - dense_dim if not self._keys & keys.SPARSE_LAYOUTS else self._array.ndim - self.dense_dim()
    for extent, b in zip(self._array.shape[last - 2 : last], blocksize):
        if extent % b:
            raise RuntimeError(f"Tensor size({extent}) needs to be divisible by blocksize({b})")


def _back(grad: Tensor, self: Tensor) -> Tensor:
    """A gradient in the layout of what it belongs to."""
    if not self._keys & keys.SPARSE_LAYOUTS:
        return grad.to_dense()
    if grad.layout is self.layout:
        return grad
    return grad.sparse_mask(self) if not grad._keys & keys.SPARSE_LAYOUTS else in_layout_of(as_coo(grad), self)


_TO_SPARSE = {"self": lambda grad, self: _back(grad, self)}
_to_sparse = op(
    "_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor",
    composite=lambda self, layout, blocksize, dense_dim: to_layout(self, layout or sparse_coo, blocksize, dense_dim),
    grad=_TO_SPARSE,
)
_to_sparse_dim = op(
    "_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor",
    composite=lambda self, sparse_dim: _coordinates(self, sparse_dim),
    grad=_TO_SPARSE,
)


def _same(self: Tensor, layout: layout, blocksize: Ints | None) -> bool:
    if layout is strided and self.layout is strided:
        return True
    if not self._keys & keys.SPARSE_LAYOUTS or self.layout is not layout:
        return False
    blocksize = (blocksize, blocksize) if isinstance(blocksize, int) else blocksize
    return layout not in BLOCKS or blocksize is None or tuple(blocksize) == storage_of(self).blocksize


op(
    "to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor",
    composite=lambda self, layout, blocksize, dense_dim: (
        self
        if _same(self, layout or sparse_coo, blocksize)
        else _to_sparse(self, layout=layout, blocksize=blocksize, dense_dim=dense_dim)
    ),
    variants="method",
)
op(
    "to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor",
    composite=lambda self, sparse_dim: _with_sparse_dim(self, sparse_dim),
    variants="method",
)


def _with_sparse_dim(self: Tensor, sparse_dim: int) -> Tensor:
    if not self._keys & keys.SPARSE_LAYOUTS:
        return _to_sparse_dim(self, sparse_dim)
    if self._keys & keys.SPARSE and sparse_dim == self.sparse_dim():
        return self
    raise RuntimeError(f"to_sparse: a tensor of layout {self.layout} keeps its sparse dimensions; sparse_dim {sparse_dim} is not supported")  # fmt: skip


@public("method")
def to_sparse_coo(self: Tensor) -> Tensor:
    """The tensor in coordinate form."""
    return self.to_sparse()


def _declare(name: str, layout: layout) -> None:
    if layout in BLOCKS:
        arguments = "Tensor self, int[2] blocksize, int? dense_dim=None"
        inner = op(
            f"_{name}({arguments}) -> Tensor",
            composite=lambda self, blocksize, dense_dim: to_layout(self, layout, blocksize, dense_dim),
            grad=_TO_SPARSE,
            variants="",
        )
        op(
            f"{name}({arguments}) -> Tensor",
            composite=lambda self, blocksize, dense_dim: (
                self if _same(self, layout, blocksize) else inner(self, blocksize, dense_dim)
            ),
            variants="method",
        )
        return
    inner = op(
        f"_{name}(Tensor self, int? dense_dim=None) -> Tensor",
        composite=lambda self, dense_dim: to_layout(self, layout, None, dense_dim),
        grad=_TO_SPARSE,
        variants="",
    )
    op(
        f"{name}(Tensor self, int? dense_dim=None) -> Tensor",
        composite=lambda self, dense_dim: self if _same(self, layout, None) else inner(self, dense_dim),
        variants="method",
    )


for _name, _layout in (("csr", sparse_csr), ("csc", sparse_csc), ("bsr", sparse_bsr), ("bsc", sparse_bsc)):
    _declare(f"to_sparse_{_name}", _layout)

# --- to dense ---------------------------------------------------------------------------------------------------------


def to_dense(self: Tensor, dtype: OptionalDType) -> Tensor:
    """All elements of a tensor of any layout."""
    if not self._keys & keys.SPARSE_LAYOUTS:
        return self if dtype is None else self.to(dtype)
    if self._keys & keys.SPARSE_COMPRESSED:
        made = wrap(dense_array(self), self.dtype)
        return made if dtype is None else made.to(dtype)
    indices, values = parts(self)
    out = np.zeros(self._array.shape, (dtype or self.dtype).np)
    add = np.logical_or if out.dtype == np.bool_ else np.add
    if indices.shape[0]:
        add.at(out, tuple(indices), values.astype(out.dtype))
    else:
        out[...] = add.reduce(values, axis=0)
    return wrap(out, dtype or self.dtype)


def _dense_grad(grad: Tensor, self: Tensor, masked_grad: bool | None) -> Tensor:
    if masked_grad is False:
        return to_layout(grad, self.layout, storage_of(self).blocksize if self.layout in BLOCKS else None)
    return grad.sparse_mask(self.coalesce() if self._keys & keys.SPARSE else self)


_to_dense_op = op(
    "_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor",
    composite=lambda self, dtype, masked_grad: to_dense(self, dtype),
    grad={"self": lambda grad, self, masked_grad: _dense_grad(grad, self, masked_grad)},
    node="ToDenseBackward0",
    variants="",
)
op(
    "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
    composite=lambda self, dtype, masked_grad: (
        _to_dense_op(self, dtype, masked_grad) if self._keys & keys.SPARSE_LAYOUTS else to_dense(self, dtype)
    ),
    variants="method",
)

# --- at another's places ----------------------------------------------------------------------------------------------


def _masked(self: Tensor, mask: Tensor) -> Tensor:
    if self._array.shape != mask._array.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self._array.shape)} but mask has size "
            f"{list(mask._array.shape)}"
        )
    if not mask._keys & keys.SPARSE_LAYOUTS:
        raise RuntimeError("sparse_mask(): the mask must be a sparse tensor, but got a dense one; use to_sparse()")
    coo = as_coo(mask)
    indices = parts(coo)[0]
    source = as_coo(self) if self._keys & keys.SPARSE_LAYOUTS else self
    values = at_places(source, wrap(indices))
    return in_layout_of(sparse_tensor(wrap(indices), values, self._array.shape, coalesced=coo.is_coalesced()), mask)


op(
    "sparse_mask(Tensor self, Tensor mask) -> Tensor",
    composite=_masked,
    grad={"self": lambda grad, self, mask: _mask_grad(grad, self, mask)},
    variants="method",
)


def _mask_grad(grad: Tensor, self: Tensor, mask: Tensor) -> Tensor:
    kept = grad.sparse_mask(mask)
    return kept.to_dense() if self.layout is strided else _back(kept, self)
