"""Sparse tensors next to dense ones: adding them, looking up elements at their coordinates, and writing to them in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dispatch import keys
from .._tensor import Tensor, wrap
from .._types import Number
from .elementwise import arithmetic  # noqa: F401 - declared first
from .machinery.declare import op
from .sparse import DENSE_AND_SPARSE, SparseStorage, _add, _kernel, _storage, sparse_tensor

__all__: list[str] = []


def _place(sparse: Tensor) -> tuple[Any, ...]:
    return tuple(_storage(sparse).indices._array)


# --- dense and sparse -------------------------------------------------------------------------------------------------


@_kernel("add_", "Tensor", key=DENSE_AND_SPARSE)
def _add_sparse_(self: Tensor, other: Tensor, alpha: Number) -> Tensor:
    """Add the elements of a sparse tensor to a dense one, in place."""
    _check_sizes(self, other)
    _accumulate(self._array, other, alpha)
    self._storage.version += 1
    return self


@_kernel("add", "Tensor", key=DENSE_AND_SPARSE)
def _add_sparse(self: Tensor, other: Tensor, alpha: Number) -> Tensor:
    _check_sizes(self, other)
    out = self._array.astype(np.result_type(self._array, other._array))
    _accumulate(out, other, alpha)
    return wrap(out)


def _check_sizes(self: Tensor, other: Tensor) -> None:
    if self._keys & keys.SPARSE:
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if self._array.shape != other._array.shape:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(self._array.shape)} while other has size "
            f"{list(other._array.shape)} (FYI: dense-sparse addition does not currently support broadcasting)"
        )


def _accumulate(array: Any, sparse: Tensor, alpha: Number) -> None:
    storage = _storage(sparse)
    values = storage.values._array
    if alpha != 1:
        values = values * values.dtype.type(alpha)
    if storage.coalesced:
        array[_place(sparse)] += values
    else:
        np.add.at(array, _place(sparse), values)


def _masked(self: Tensor, mask: Tensor) -> Tensor:
    if not mask.is_coalesced():
        mask = mask.coalesce()
    if self._array.shape != mask._array.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self._array.shape)} but mask has size "
            f"{list(mask._array.shape)}"
        )
    return sparse_tensor(_storage(mask).indices, wrap(self._array[_place(mask)], self.dtype), self._array.shape, coalesced=True)


op("sparse_mask(Tensor self, Tensor mask) -> Tensor", composite=_masked, variants="method", tags=("no_derivative",))

# --- sparse tensors in place, which is what a momentum needs ----------------------------------------------------------


def _replace(self: Tensor, new: Tensor) -> Tensor:
    """Give a sparse tensor the coordinates and values of another."""
    own, other = self._storage, _storage(new)
    assert isinstance(own, SparseStorage)
    own.array, own.indices, own.values, own.coalesced = other.array, other.indices, other.values, other.coalesced
    own.version += 1
    return self


@_kernel("add_", "Tensor")
def _add_(self: Tensor, other: Tensor | Number, alpha: Number) -> Tensor:
    return _replace(self, _add(self, other, alpha))


@_kernel("mul_", "Scalar")
@_kernel("mul_", "Tensor")
def _mul_(self: Tensor, other: Number | Tensor) -> Tensor:
    _storage(self).values.mul_(other)
    self._storage.version += 1
    return self


@_kernel("zero_")
def _zero_(self: Tensor) -> Tensor:
    return _replace(self, _empty(self))


def _empty(self: Tensor) -> Tensor:
    storage = _storage(self)
    rows, values = storage.indices._array[:, :0], storage.values._array[:0]
    return sparse_tensor(wrap(rows.copy()), wrap(values.copy(), self.dtype), self._array.shape, coalesced=True)
