"""Sparse tensors in `gradcheck`: it moves their values, and the function gets tensors that are made of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._dispatch import keys
from .._functions import functions
from .._memory_format import sparse_bsc, sparse_bsr, sparse_coo, sparse_csr
from .._tensor import Tensor, wrap

__all__ = ["fully_specified", "is_checked_sparse", "is_sparse", "over_values", "specified", "with_dense_outputs", "write_values"]

Array = np.ndarray[Any, Any]
Rebuild = Callable[[Tensor], Tensor]


def is_sparse(t: Tensor) -> bool:
    """Whether a tensor has a sparse layout."""
    return bool(t._keys & keys.SPARSE_LAYOUTS)


def is_checked_sparse(x: Any) -> bool:
    """Whether this is a sparse tensor that requires grad."""
    return isinstance(x, Tensor) and x.requires_grad and is_sparse(x)


def specified(x: Tensor) -> Array:
    """Which elements can be moved: all of a dense tensor, and those that a sparse one has."""
    if not is_sparse(x):
        return np.ones(tuple(x.shape), np.bool_)
    values, made = _taken_apart(x.detach())
    return made(values.detach().fill_(1.0)).to_dense()._array != 0


def write_values(x: Tensor, elements: Array) -> None:
    """Give the specified elements of a sparse tensor those at the same places of a dense array."""
    x = x.detach()
    values = x._values() if x.layout is sparse_coo else x.values()
    values._array[...] = _taken_apart(wrap(elements, x.dtype).sparse_mask(x))[0].detach()._array


def over_values(func: Callable[..., Any], inputs: tuple[Any, ...], *, masked: bool) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of the sparse inputs' values, and those values.

    With `masked`, elements that are not specified have no derivative; without, they are zeros like any others, and are specified first.
    """
    given = list(inputs)
    made: dict[int, Rebuild] = {}
    for i, x in enumerate(inputs):
        if is_checked_sparse(x):
            given[i], made[i] = _taken_apart(x.detach() if masked else fully_specified(x).detach())

    def of_values(*args: Any) -> Any:
        return func(*[made[i](a) if i in made else a for i, a in enumerate(args)])

    return of_values, tuple(given)


def with_dense_outputs(func: Callable[..., Any], *, masked: bool) -> Callable[..., Any]:
    """The function with its differentiable sparse results as dense ones."""

    def dense(out: Any) -> Any:
        return out.to_dense(masked_grad=masked) if is_checked_sparse(out) else out

    def of_dense(*args: Any, **kwargs: Any) -> Any:
        outs = func(*args, **kwargs)
        return tuple(dense(o) for o in outs) if isinstance(outs, tuple | list) else dense(outs)

    return of_dense


def fully_specified(x: Tensor) -> Tensor:
    """A leaf with the same elements, every one of them specified."""
    x = x.detach()
    blocks = x.layout in (sparse_bsr, sparse_bsc)
    batch_dim = x.dim() - x.dense_dim() - x.sparse_dim()
    blocksize = tuple(x.values().shape[batch_dim + 1 : batch_dim + 3]) if blocks else None
    everywhere = functions["ones"](tuple(x.shape), dtype=x.dtype)
    mask = everywhere.to_sparse(layout=x.layout, blocksize=blocksize, dense_dim=x.dense_dim())
    return x.to_dense().sparse_mask(mask).requires_grad_()


def _taken_apart(x: Tensor) -> tuple[Tensor, Rebuild]:
    """The values, as a leaf, and a function that makes the tensor of them again."""
    size, which = tuple(x.shape), x.layout
    if which is sparse_coo:
        indices, coalesced = x._indices(), x.is_coalesced()
        values = x._values()

        def of_coordinates(v: Tensor) -> Tensor:
            made: Tensor = functions["sparse_coo_tensor"](indices, v, size, is_coalesced=coalesced)
            return made

        return values.clone().requires_grad_(), of_coordinates
    by_rows = which in (sparse_csr, sparse_bsr)
    compressed, plain = (x.crow_indices(), x.col_indices()) if by_rows else (x.ccol_indices(), x.row_indices())

    def of_compressed(v: Tensor) -> Tensor:
        made: Tensor = functions["sparse_compressed_tensor"](compressed, plain, v, size, layout=which)
        return made

    return x.values().clone().requires_grad_(), of_compressed
