"""Taking sparse tensors apart: coordinates, values, counts, and `coalesce`."""

from __future__ import annotations

from ..._dispatch import keys
from ..._tensor import Tensor, shallow_copy
from ..machinery.declare import op
from ..shapes.view_copies import declare_copy
from . import compressed, construction
from .storage import SparseStorage, coalesced, layout_name, storage_of

__all__: list[str] = []


def _part(self: Tensor, name: str) -> Tensor:
    storage = storage_of(self, name)
    if not storage.coalesced:
        raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")
    return shallow_copy(storage.indices if name == "indices" else storage.values)


def _values(self: Tensor) -> Tensor:
    if self._keys & keys.SPARSE_COMPRESSED:
        return shallow_copy(compressed.values_of(self))
    if not self._keys & keys.SPARSE:
        raise RuntimeError(f"values expected sparse tensor layout but got {layout_name(self)}")
    return _part(self, "values")


def _values_grad(grad: Tensor, self: Tensor) -> Tensor:
    if self._keys & keys.SPARSE_COMPRESSED:
        return compressed.with_values(self, grad)
    storage = storage_of(self)
    return construction.unsafe(storage.indices, grad, self._array.shape, is_coalesced=True)


def _dims(self: Tensor) -> tuple[int, int]:
    storage = self._storage
    if isinstance(storage, SparseStorage):
        return storage.indices._array.shape[0], storage.values._array.ndim - 1
    if self._keys & keys.SPARSE_COMPRESSED:
        dense = self._storage.dense_dim  # type: ignore[attr-defined]
        return 2, dense
    return 0, self._array.ndim


op("_nnz(Tensor self) -> int", composite=lambda self: _count(self), variants="method")
op(
    "_indices(Tensor(a) self) -> Tensor(a)",
    composite=lambda self: shallow_copy(storage_of(self, "_indices").indices),
    variants="method",
    tags=("nondifferentiable",),
)
op(
    "_values(Tensor(a) self) -> Tensor(a)",
    composite=lambda self: shallow_copy(storage_of(self, "_values").values),
    variants="method",
    tags=("nondifferentiable",),
)
op("sparse_dim(Tensor self) -> int", composite=lambda self: _dims(self)[0], variants="method")
op("dense_dim(Tensor self) -> int", composite=lambda self: _dims(self)[1], variants="method")
op("is_coalesced(Tensor self) -> bool", composite=lambda self: storage_of(self, "is_coalesced").coalesced, variants="method")
_indices_view = op(
    "indices(Tensor(a) self) -> Tensor(a)",
    composite=lambda self: _part(self, "indices"),
    variants="method",
    tags=("nondifferentiable",),
)
_values_view = op(
    "values(Tensor(a) self) -> Tensor(a)",
    composite=_values,
    grad={"self": lambda grad, self: _values_grad(grad, self)},
    variants="method",
)
for _view in (_indices_view, _values_view):
    declare_copy(_view)


def _count(self: Tensor) -> int:
    if self._keys & keys.SPARSE_COMPRESSED:
        return self._storage.count  # type: ignore[attr-defined]
    if not self._keys & keys.SPARSE:
        raise NotImplementedError("Could not run 'aten::_nnz' on a dense tensor; it counts the stored elements of a sparse one")
    return storage_of(self).values._array.shape[0]


def _set_coalesced(self: Tensor, coalesced: bool) -> Tensor:
    storage_of(self, "_coalesced_").coalesced = coalesced
    return self


op("_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)", composite=_set_coalesced, variants="method")

_coalesce_op = op(
    "_coalesce(Tensor self) -> Tensor",
    composite=lambda self: coalesced(self),
    grad={"self": lambda grad: grad},
    variants="",
)


def _coalesce(self: Tensor) -> Tensor:
    return self if storage_of(self, "coalesce").coalesced else _coalesce_op(self)


op("coalesce(Tensor(a) self) -> Tensor(a)", composite=_coalesce, variants="method")
