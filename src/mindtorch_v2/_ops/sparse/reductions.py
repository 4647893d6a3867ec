"""Sums and norms of sparse tensors, and softmax over the elements that they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _dtype
from ..._dispatch import keys
from ..._tensor import Tensor, wrap
from ..._types import Ints, OptionalDType
from ..machinery.declare import op
from ..reductions import sums  # noqa: F401 - declared first
from ..reductions.norms import linalg_vector_norm
from .arithmetic import BOTH, values_of
from .compressed import as_coo
from .construction import at_places
from .storage import Array, coalesced, flat_places, from_arrays, kernel, parts, sparse_tensor, storage_of

__all__ = ["sparse_log_softmax", "sparse_softmax", "sparse_sum"]


def _wrapped(dims: Ints, ndim: int) -> list[int]:
    found = []
    for d in [dims] if isinstance(dims, int) else dims:
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        found.append(d % ndim)
    if len(set(found)) != len(found):
        raise RuntimeError(f"dim {next(d for d in found if found.count(d) > 1)} appears multiple times in the list of dims")
    return sorted(found)


# --- sums -------------------------------------------------------------------------------------------------------------


def _sum_over(self: Tensor, dims: Sequence[int]) -> Tensor:
    """The sum over some dimensions: dense if no sparse dimension is left."""
    self = coalesced(self)
    indices, values = parts(self)
    sparse_dim, gone = indices.shape[0], _wrapped(dims, self._array.ndim)
    values = values.sum(axis=tuple(d - sparse_dim + 1 for d in gone if d >= sparse_dim))
    kept = [d for d in range(sparse_dim) if d not in gone]
    if values.dtype != self.dtype.np:
        values = values.astype(np.int64 if self.dtype.category < _dtype.FLOAT else self.dtype.np)
    if not kept:
        return wrap(values.sum(axis=0, dtype=values.dtype))
    size = [self._array.shape[d] for d in range(self._array.ndim) if d not in gone]
    return coalesced(sparse_tensor(wrap(indices[kept].copy()), wrap(values), size, coalesced=len(kept) == sparse_dim))


def _sum_backward(grad: Tensor, self: Tensor, dims: Sequence[int]) -> Tensor:
    """A gradient spread over the elements that were summed."""
    source = coalesced(self)
    indices, values = parts(source)
    sparse_dim, gone = indices.shape[0], _wrapped(dims, self._array.ndim)
    kept = [d for d in range(sparse_dim) if d not in gone]
    if kept:
        spread = at_places(grad, wrap(indices[kept]))._array
    else:
        spread = np.broadcast_to(grad._array, (indices.shape[1], *grad._array.shape))
    for d in gone:
        if d >= sparse_dim:
            spread = np.expand_dims(spread, d - sparse_dim + 1)
    out = np.broadcast_to(spread, values.shape).astype(values.dtype)
    return from_arrays(indices, out, self, self._array.shape, coalesced=True)


sparse_sum = op("_sparse_sum(Tensor self) -> Tensor", composite=lambda self: coalesced(self).values().sum(), variants="")
_backward = op(
    "_sparse_sum_backward(Tensor grad, Tensor self, int[] dim) -> Tensor",
    composite=_sum_backward,
    variants="",
    tags=("no_derivative",),
)
sparse_sum_dim = op(
    "_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor",
    composite=_sum_over,
    grad={"self": lambda grad, self, dim: _backward(grad, self, dim)},
    variants="",
)
sparse_sum_dtype = op(
    "_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor",
    composite=lambda self, dtype: coalesced(self).values().sum(dtype=dtype),
    variants="",
)
sparse_sum_dim_dtype = op(
    "_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor",
    composite=lambda self, dim, dtype: sparse_sum_dim(self.to(dtype), dim),
    variants="",
)


def _sum(self: Tensor, dtype: OptionalDType) -> Tensor:
    return values_of(self).sum(dtype=dtype)


def _sum_dims(self: Tensor, dim: Ints, keepdim: bool, dtype: OptionalDType) -> Tensor:
    source = as_coo(self) if dtype is None else as_coo(self).to(dtype)
    dims = list(range(self._array.ndim)) if not dim and dim != 0 else _wrapped(dim, self._array.ndim)
    made = _sum_over(source, dims)
    if not keepdim:
        return made
    for d in dims:
        made = made.unsqueeze(d)
    return made._coalesced_(False) if made._keys & keys.SPARSE else made.to_sparse()


for _key in BOTH[:2]:
    kernel("sum", key=_key)(_sum)
    kernel("sum", "dim_IntList", key=_key)(_sum_dims)


def _norm(self: Tensor, ord: float, dim: Ints | None, keepdim: bool, dtype: OptionalDType) -> Tensor:
    if dim is not None and sorted(_wrapped(dim, self._array.ndim)) != list(range(self._array.ndim)):
        raise RuntimeError("norm_sparse currently does not support 'dim' != None; use to_dense()")
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True; use to_dense()")
    return linalg_vector_norm(values_of(coalesced(as_coo(self))), ord, None, False, dtype=dtype)


for _key in BOTH[:2]:
    kernel("linalg_vector_norm", key=_key)(_norm)

# --- softmax ----------------------------------------------------------------------------------------------------------


def _groups(indices: Array, sizes: Sequence[int], dim: int) -> tuple[Array, int]:
    """The number of the line along `dim` that each element belongs to, and how many lines there are."""
    others = [d for d in range(indices.shape[0]) if d != dim]
    lines = flat_places(indices[others], [sizes[d] for d in others])
    unique, group = np.unique(lines, return_inverse=True)
    return group, unique.size


def _line_sums(terms: Array, group: Array, count: int) -> Array:
    sums_ = np.zeros((count, *terms.shape[1:]), terms.dtype)
    np.add.at(sums_, group, terms)
    return sums_[group]


def _softmax(self: Tensor, dim: int, half_to_float: bool, *, log: bool) -> Tensor:
    """Softmax over the elements of each line; those that are absent count as minus infinity."""
    if half_to_float:
        raise NotImplementedError("softmax of a sparse tensor does not convert half to float; use to(torch.float32)")
    source = coalesced(self)
    indices, values = parts(source)
    dim = _wrapped(dim, self._array.ndim)[0]
    if dim >= indices.shape[0]:
        dense = storage_of(source).values
        out = (dense.log_softmax if log else dense.softmax)(dim - indices.shape[0] + 1)
        return sparse_tensor(wrap(indices), out, self._array.shape, coalesced=True)
    group, count = _groups(indices, self._array.shape, dim)
    largest = np.full((count, *values.shape[1:]), -np.inf, values.dtype)
    np.maximum.at(largest, group, values)
    shifted = values - largest[group]
    exponentials = np.exp(shifted)
    total = _line_sums(exponentials, group, count)
    return from_arrays(indices, shifted - np.log(total) if log else exponentials / total, self, self._array.shape, coalesced=True)


def _softmax_backward(grad_output: Tensor, output: Tensor, dim: int, self: Tensor, *, log: bool) -> Tensor:
    indices, out = parts(coalesced(output))
    grad = at_places(grad_output, wrap(indices))._array
    dim = _wrapped(dim, self._array.ndim)[0]

    def sums_of(terms: Array) -> Array:
        if dim >= indices.shape[0]:
            return terms.sum(axis=dim - indices.shape[0] + 1, keepdims=True)
        return _line_sums(terms, *_groups(indices, self._array.shape, dim))

    result = grad - np.exp(out) * sums_of(grad) if log else out * (grad - sums_of(grad * out))
    return from_arrays(indices, result, self, self._array.shape, coalesced=True)


def _declare(name: str, *, log: bool) -> Callable[..., Any]:
    backward = op(
        f"_sparse_{name}_backward_data(Tensor grad_output, Tensor output, int dim, Tensor self) -> Tensor",
        composite=lambda grad_output, output, dim, self: _softmax_backward(grad_output, output, dim, self, log=log),
        variants="",
        tags=("no_derivative",),
    )
    plain = op(
        f"_sparse_{name}(Tensor self, int dim, bool half_to_float) -> Tensor",
        composite=lambda self, dim, half_to_float: _softmax(self, dim, half_to_float, log=log),
        grad={"self": lambda grad, self, result, dim: backward(grad, result, dim, self)},
        variants="",
    )
    return op(
        f"_sparse_{name}.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        composite=lambda self, dim, dtype: plain(_converted(self, name, dtype), dim, False),
        variants="",
    )


def _converted(self: Tensor, name: str, dtype: OptionalDType) -> Tensor:
    if not self._keys & keys.SPARSE:
        raise NotImplementedError(f"torch.sparse.{name}: expected a tensor of layout torch.sparse_coo, but got {self.layout}")
    wanted = dtype or self.dtype
    if not wanted.is_floating_point:
        raise NotImplementedError(f"\"{name}\" not implemented for '{wanted.scalar_name}'")
    return self if wanted is self.dtype else self.to(wanted)


sparse_softmax = _declare("softmax", log=False)
sparse_log_softmax = _declare("log_softmax", log=True)
