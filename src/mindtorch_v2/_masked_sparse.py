"""Masked reductions of sparse tensors, over the elements that are stored: a mask makes those it leaves, and no others, stored ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._memory_format import sparse_coo, sparse_csr, strided
from ._ops.machinery.lookup import aten
from ._ops.sparse.construction import sparse_coo_tensor
from ._ops.sparse.storage import flat_places
from ._tensor import Tensor, wrap

__all__ = ["is_sparse", "reduce", "where"]

Reduce = Callable[[Tensor, Sequence[int], bool], Tensor]


def is_sparse(input: Tensor) -> bool:
    return input.layout is not strided


def where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """The elements that the mask leaves, with zeros stored for those that a sparse input has not; others are not stored.

    Inside the stored blocks of a hybrid tensor, elements outside of the mask are `fill_value`.
    """
    if mask.layout is strided:
        return aten.where(mask, input, fill_value)
    if mask.layout is sparse_csr:
        return where(mask.to_sparse(), input.to_sparse(), fill_value).to_sparse_csr()
    if mask.layout is not sparse_coo:
        raise ValueError(f"_where expects strided or sparse_coo or sparse_csr tensor but got {mask.layout}")
    mask = mask.coalesce()
    indices, inside = mask.indices(), mask.values()
    if not mask.dense_dim():
        return sparse_coo_tensor(
            indices[:, inside], _values_at(input, indices[:, inside]), input.shape, is_coalesced=True, check_invariants=False
        )
    values = aten.where(inside, _values_at(input, indices), fill_value)
    return sparse_coo_tensor(indices, values, input.shape, is_coalesced=True, check_invariants=False)


def _values_at(input: Tensor, indices: Tensor) -> Tensor:
    """The values at these coordinates, zero where there are none."""
    x = input.coalesce()
    values = x.values()
    sizes = input._array.shape[: x.sparse_dim()]
    have, wanted = flat_places(x.indices()._array, sizes), flat_places(indices._array, sizes)
    if not have.size:
        return values.new_zeros((wanted.size, *values.shape[1:]))
    place = np.minimum(np.searchsorted(have, wanted), have.size - 1)
    found = wrap((have[place] == wanted).reshape(-1, *[1] * (values.dim() - 1)))
    return aten.where(found, values[wrap(place)], values.new_zeros([]))


def reduce(function: Reduce, identity: Any, input: Tensor, dims: Sequence[int], keepdim: bool) -> Tensor:
    """What a reduction gives for the stored elements, stored where there is at least one."""
    if input.layout is sparse_csr:
        return reduce(function, identity, input.to_sparse(), dims, keepdim).to_sparse_csr()
    x = input.coalesce()
    indices, values, sparse_dim = x.indices(), x.values(), x.sparse_dim()
    dims = [d for d in dims if d < x.dim()]  # a scalar has none
    dense = [d - sparse_dim + 1 for d in dims if d >= sparse_dim]
    if dense:
        values = function(values, dense, keepdim)
    kept = [d for d in range(sparse_dim) if d not in dims]
    size = [1 if d in dims else n for d, n in enumerate(input._array.shape) if keepdim or d not in dims]
    if not kept:
        whole = values.new_full(values.shape[1:], identity) if not values.shape[0] else function(values, [0], False)
        return whole.reshape(size).to_sparse()
    places = flat_places(indices._array[kept], [input._array.shape[d] for d in kept])
    groups, first, inverse, counts = np.unique(places, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(inverse, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
    # one row for each result, filled up with what changes nothing
    rows = values.new_full((groups.size, int(counts.max(initial=0)), *values.shape[1:]), identity)
    rows = rows.index_put((wrap(inverse.reshape(-1)), wrap(rank)), values)
    where_kept = indices._array[:, first]
    where_kept[[d for d in range(sparse_dim) if d in dims]] = 0
    coordinates = where_kept if keepdim else where_kept[kept]
    return sparse_coo_tensor(wrap(coordinates), function(rows, [1], False), size, is_coalesced=True, check_invariants=False)
