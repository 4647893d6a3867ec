"""Sparse tensors in coordinate form: making them, taking them apart, and multiplying dense matrices by them.

A sparse tensor keeps `indices` (one column for each stored element) and `values` in its storage; its array is a single zero
with strides of zero, there for its shape and dtype only. Operators without a kernel for the Sparse key refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse as scipy_sparse

from .. import _dtype
from .._creation import as_tensor, device_of
from .._device import cpu
from .._dispatch import keys, registry
from .._storage import UntypedStorage
from .._tensor import Tensor, shallow_copy, wrap
from .._types import Device, DType, Number, OptionalDType, OptionalLayout
from .creation import conversion, copying  # noqa: F401 - declared first
from .linalg.matmul import addmm
from .machinery.declare import op, public
from .shapes.joining import cat

__all__ = ["check_parts", "sparse_tensor"]

Array = np.ndarray[Any, Any]
DENSE_AND_SPARSE = keys.CPU | keys.SPARSE


class SparseStorage(UntypedStorage):
    """The coordinates and values of a sparse tensor."""

    __slots__ = ("coalesced", "indices", "values")
    indices: Tensor
    values: Tensor
    coalesced: bool
    memory = property()  # is that of the values

    def alias(self, version: int = 0) -> SparseStorage:
        new = SparseStorage()
        new.array, new.version = self.array, version
        new.indices, new.values, new.coalesced = self.indices, self.values, self.coalesced
        return new


def sparse_tensor(indices: Tensor, values: Tensor, size: Sequence[int], *, coalesced: bool = False) -> Tensor:
    """A sparse tensor over these coordinates and values, unchecked."""
    t: Tensor = object.__new__(Tensor)
    t._array = np.broadcast_to(np.zeros((), values.dtype.np), tuple(size))
    storage = SparseStorage()
    storage.array = values._array
    storage.version = 0
    storage.indices, storage.values, storage.coalesced = indices, values, coalesced
    t._storage = storage
    t.dtype, t.device, t._keys = values.dtype, cpu, keys.SPARSE
    t._node = t._base = t._extra = None
    return t


def _storage(t: Tensor) -> SparseStorage:
    storage = t._storage
    if not isinstance(storage, SparseStorage):
        raise RuntimeError(
            f"expected a tensor of sparse layout, but got a dense one of shape {list(t._array.shape)}; use to_sparse()"
        )
    return storage


def _kernel(name: str, overload: str = "default", key: int = keys.SPARSE) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the kernel of an existing operator for sparse arguments."""
    found = registry.aten(name, overload)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        found.kernels[key] = function
        return function

    return register


# --- making them ------------------------------------------------------------------------------------------------------


def _inferred_size(indices: Tensor, values: Tensor) -> list[int]:
    extents = (indices._array.max(axis=1) + 1).tolist() if indices._array.size else [0] * indices._array.shape[0]
    return [*extents, *values._array.shape[1:]]


def check_parts(indices: Tensor, values: Tensor, size: Sequence[int]) -> None:
    """Raise unless a sparse tensor of this size can be made of these parts."""
    if indices._array.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices._array.shape)}")
    sparse_dim, count = indices._array.shape
    if values._array.ndim == 0 or values._array.shape[0] != count:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {count}, nnz from values: {list(values._array.shape)[:1]}"
        )
    dense_dim = values._array.ndim - 1
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(size)}")
    for d in range(sparse_dim):
        row = indices._array[d]
        if row.size and row.min() < 0:
            raise RuntimeError(f"found negative index {int(row.min())} for dim {d}")
        if row.size and row.max() >= size[d]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {int(row.max())}"
            )


with_dims = op(
    "_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, SymInt[] size, Tensor indices, Tensor values, *, "
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? is_coalesced=None) -> Tensor",
    composite=lambda sparse_dim, dense_dim, size, indices, values, dtype, layout, device, pin_memory, is_coalesced: sparse_tensor(
        indices, values, size, coalesced=bool(is_coalesced)
    ),
    variants="function",
)


def _from_parts(indices: Tensor, values: Tensor, size: Sequence[int], is_coalesced: bool | None) -> Tensor:
    sparse_dim = indices._array.shape[0]
    return with_dims(sparse_dim, len(size) - sparse_dim, size, indices.long(), values, is_coalesced=is_coalesced)


_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? is_coalesced=None"
from_parts = op(
    f"sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, *, {_OPTIONS}) -> Tensor",
    composite=lambda indices, values, size, dtype, layout, device, pin_memory, is_coalesced: _from_parts(
        indices, values, size, is_coalesced
    ),
)


@public("function")
def sparse_coo_tensor(
    indices: Any, values: Any = None, size: Any = None, *, dtype: DType | None = None, device: Device | None = None, requires_grad: bool = False,
    check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> Tensor:  # fmt: skip
    """A sparse tensor from coordinates (one column each) and values; without a size, as large as the coordinates say.

    The parts are checked against each other unless `check_invariants` is False.
    """
    if device is not None and device_of(device).type != "cpu":
        raise NotImplementedError(f"sparse_coo_tensor: sparse tensors are on the CPU only, not on {device}")
    if values is None:  # sparse_coo_tensor(size)
        shape = list(indices)
        kind = dtype or _dtype.get_default_dtype()
        made = sparse_tensor(wrap(np.empty((len(shape), 0), np.int64)), wrap(np.empty(0, kind.np)), shape, coalesced=True)
    else:
        indices, values = as_tensor(indices), as_tensor(values, dtype=dtype, device=device)
        shape = _inferred_size(indices, values) if size is None else list(size)
        if check_invariants is not False:
            check_parts(indices, values, shape)
        made = from_parts(indices, values, shape, is_coalesced=is_coalesced)
    return made.requires_grad_(requires_grad)


def _to_sparse(self: Tensor, sparse_dim: int | None = None) -> Tensor:
    if self._keys & keys.SPARSE:
        return self
    sparse_dim = self.dim() if sparse_dim is None else sparse_dim
    array = self._array
    occupied = array != 0
    if sparse_dim < array.ndim:
        occupied = occupied.any(axis=tuple(range(sparse_dim, array.ndim)))
    where = np.nonzero(occupied)
    return sparse_tensor(wrap(np.stack(where).astype(np.int64)), wrap(array[where], self.dtype), array.shape, coalesced=True)


_to_sparse_op = op(
    "_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor",
    composite=lambda self, layout, blocksize, dense_dim: _to_sparse(self, None if dense_dim is None else self.dim() - dense_dim),
    grad={"self": lambda grad: grad.to_dense()},
)
_to_sparse_dim = op(
    "_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor",
    composite=lambda self, sparse_dim: _to_sparse(self, sparse_dim),
    grad={"self": lambda grad: grad.to_dense()},
)


def _supported(layout: OptionalLayout, blocksize: Any) -> Any:
    if blocksize is not None:
        raise RuntimeError("dense_to_sparse: conversion from Strided to Sparse with blocksize argument given is not supported")
    if layout is not None and str(layout) != "torch.sparse_coo":
        raise NotImplementedError(f"to_sparse: only torch.sparse_coo is supported, not {layout}")
    return layout


op(
    "to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor",
    composite=lambda self, layout, blocksize, dense_dim: _to_sparse_op(
        self, layout=_supported(layout, blocksize), dense_dim=dense_dim
    ),
    variants="method",
)
op(
    "to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor",
    composite=lambda self, sparse_dim: _to_sparse_dim(self, sparse_dim),
    variants="method",
)

# --- taking them apart ------------------------------------------------------------------------------------------------

op("_nnz(Tensor self) -> int", composite=lambda self: _storage(self).values._array.shape[0], variants="method")
op("_indices(Tensor(a) self) -> Tensor(a)", composite=lambda self: _storage(self).indices, variants="method")
op("_values(Tensor(a) self) -> Tensor(a)", composite=lambda self: _storage(self).values, variants="method")
op("sparse_dim(Tensor self) -> int", composite=lambda self: _storage(self).indices._array.shape[0], variants="method")
op("dense_dim(Tensor self) -> int", composite=lambda self: _storage(self).values._array.ndim - 1, variants="method")
op("is_coalesced(Tensor self) -> bool", composite=lambda self: _storage(self).coalesced, variants="method")


def _set_coalesced(self: Tensor, coalesced: bool) -> Tensor:
    _storage(self).coalesced = coalesced
    return self


op("_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)", composite=_set_coalesced, variants="method")


def _part(self: Tensor, name: str) -> Tensor:
    storage = _storage(self)
    if not storage.coalesced:
        raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")
    return storage.indices if name == "indices" else storage.values


op("indices(Tensor(a) self) -> Tensor(a)", composite=lambda self: _part(self, "indices"), variants="method")
op("values(Tensor(a) self) -> Tensor(a)", composite=lambda self: _part(self, "values"), variants="method")


def _coalesce(self: Tensor) -> Tensor:
    """Sort the coordinates and add the values of equal ones."""
    storage = _storage(self)
    indices, values = storage.indices._array, storage.values._array
    sizes = self._array.shape[: indices.shape[0]]
    flat = np.ravel_multi_index(tuple(indices), sizes) if indices.size else np.empty(0, np.int64)
    unique, group = np.unique(flat, return_inverse=True)
    summed = np.zeros((len(unique), *values.shape[1:]), values.dtype)
    np.add.at(summed, group, values)
    rows = np.stack(np.unravel_index(unique, sizes)).astype(np.int64) if len(unique) else np.empty((len(sizes), 0), np.int64)
    return sparse_tensor(wrap(rows), wrap(summed, self.dtype), self._array.shape, coalesced=True)


_coalesce_op = op("_coalesce(Tensor self) -> Tensor", composite=_coalesce, variants="")
op(
    "coalesce(Tensor(a) self) -> Tensor(a)",
    composite=lambda self: self if _storage(self).coalesced else _coalesce_op(self),
    variants="method",
)


def _to_dense(self: Tensor, dtype: OptionalDType) -> Tensor:
    if not self._keys & keys.SPARSE:
        return self if dtype is None else self.to(dtype)
    storage = _storage(self)
    out = np.zeros(self._array.shape, (dtype or self.dtype).np)
    np.add.at(out, tuple(storage.indices._array), storage.values._array)
    return wrap(out)


_to_dense_op = op(
    "_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor",
    composite=lambda self, dtype, masked_grad: _to_dense(self, dtype),
    grad={"self": lambda grad: grad},
    variants="",
)
op(
    "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
    composite=lambda self, dtype, masked_grad: (
        _to_dense_op(self, dtype, masked_grad) if self._keys & keys.SPARSE else _to_dense(self, dtype)
    ),
    variants="method",
)

# --- products ---------------------------------------------------------------------------------------------------------


def _matrix(t: Tensor) -> Any:
    storage = _storage(t)
    if storage.indices._array.shape[0] != 2 or storage.values._array.ndim != 1:
        raise RuntimeError(f"expected a sparse matrix, but got {t.sparse_dim()}D sparse with {t.dense_dim()}D values")
    return scipy_sparse.coo_array((storage.values._array, tuple(storage.indices._array)), shape=t._array.shape)


def _check_product(mat1: Tensor, mat2: Tensor) -> None:
    a, b = mat1._array.shape, mat2._array.shape
    if len(b) != 2:
        raise RuntimeError(f"mm: Expected dim 1 to be 2D, got {len(b)}D tensor")
    if a[1] != b[0]:
        raise RuntimeError(f"mm: Argument #3 (dense): Expected dim 0 size {a[1]}, got {b[0]}")


def _addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Number, alpha: Number) -> Tensor:
    if not mat1._keys & keys.SPARSE or (self._keys | mat2._keys) & keys.SPARSE:
        raise NotImplementedError("addmm: of its operands only mat1 may be sparse; use to_dense() on the others")
    _check_product(mat1, mat2)
    out: Array = np.asarray(_matrix(mat1) @ mat2._array)
    if alpha != 1:
        out *= alpha
    if beta != 0:
        out += self._array if beta == 1 else beta * self._array
    return wrap(np.ascontiguousarray(out), mat2.dtype)


_kernel("addmm", key=DENSE_AND_SPARSE)(_addmm)


def _sparse_addmm_call(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Number, alpha: Number) -> Tensor:
    return addmm(self, mat1, mat2, beta=beta, alpha=alpha)


sparse_addmm = op(
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    composite=_sparse_addmm_call,
    grad={
        "self": lambda grad, beta: grad if beta == 1 else grad * beta,
        "mat1": lambda grad, mat1, mat2, alpha: _sparse_grad(grad, mat1, mat2, alpha),
        "mat2": lambda grad, mat1, alpha: mat1.t().mm(grad) if alpha == 1 else mat1.t().mm(grad) * alpha,
    },
    variants="function",
)


def _sparse_grad(grad: Tensor, mat1: Tensor, mat2: Tensor, alpha: Number) -> Tensor:
    """The gradient of a sparse factor, at its own coordinates only."""
    rows, columns = mat1._indices()
    values = (grad[rows] * mat2.t()[columns]).sum(1)
    return sparse_tensor(
        mat1._indices(), values if alpha == 1 else values * alpha, mat1._array.shape, coalesced=mat1.is_coalesced()
    )


def _mm(self: Tensor, mat2: Tensor) -> Tensor:
    if not self._keys & keys.SPARSE or mat2._keys & keys.SPARSE:
        raise NotImplementedError("mm: only its first operand may be sparse; use to_dense() on the other")
    _check_product(self, mat2)
    zeros = mat2.new_zeros((self._array.shape[0], mat2._array.shape[1]))
    return sparse_addmm(zeros, self, mat2, beta=0)


_kernel("mm", key=DENSE_AND_SPARSE)(_mm)


@public("function")
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix."""
    return input.mm(mat2)


sparse_mm = op(
    "_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", composite=lambda sparse, dense: _mm(sparse, dense), variants="function"
)

# --- the few plain operators that sparse tensors have -----------------------------------------------------------------


@_kernel("transpose", "int")
def _transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    storage = _storage(self)
    order = list(range(self._array.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    rows = storage.indices._array[order[: storage.indices._array.shape[0]]]
    return sparse_tensor(wrap(rows), storage.values, [self._array.shape[d] for d in order])


_kernel("t")(lambda self: _transpose(self, 0, 1))


def _with_values(self: Tensor, values: Tensor) -> Tensor:
    return sparse_tensor(_storage(self).indices, values, self._array.shape, coalesced=_storage(self).coalesced)


_kernel("detach")(shallow_copy)
_kernel("neg")(lambda self: _with_values(self, -self._values()))
_kernel("clone")(lambda self, memory_format: _with_values(self, self._values().clone()))
_kernel("_to_copy")(
    lambda self, dtype, layout, device, pin_memory, non_blocking, memory_format: _with_values(
        self, self._values().to(dtype or self.dtype)
    )
)


def _scaled(self: Tensor, other: Tensor | Number) -> Tensor:
    if isinstance(other, Tensor):
        raise NotImplementedError("mul: a sparse tensor is multiplied by numbers only; use to_dense()")
    return _with_values(self, self._values() * other)


_kernel("mul", "Tensor")(_scaled)


@_kernel("add", "Tensor")
def _add(self: Tensor, other: Tensor | Number, alpha: Number) -> Tensor:
    if not isinstance(other, Tensor) or self._array.shape != other._array.shape:
        raise RuntimeError("add: expected 'self' and 'other' to have same size, both of them sparse")
    values = other._values() if alpha == 1 else other._values() * alpha
    return sparse_tensor(cat([self._indices(), other._indices()], 1), cat([self._values(), values]), self._array.shape)


@_kernel("sum")
def _sum(self: Tensor, dtype: OptionalDType) -> Tensor:
    return self._values().sum(dtype=dtype)
