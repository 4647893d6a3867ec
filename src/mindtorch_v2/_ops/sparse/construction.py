"""Making sparse tensors of coordinates and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _dtype
from ..._creation import as_tensor, device_of
from ..._dispatch import keys
from ..._tensor import Tensor, wrap
from ..._types import Array, OptionalDevice, OptionalDType, Shape
from ...overrides import wrap_torch_function
from ..machinery.declare import op, public
from .invariants import check_counts, check_parts, invariants_wanted
from .storage import coalesced, flat_places, parts, sparse_tensor

__all__ = ["at_places", "sparse_coo_tensor"]


def at_places(grad: Tensor, indices: Tensor) -> Tensor:
    """The elements of a dense or sparse tensor at these coordinates; zero where a sparse one has none."""
    if not grad._keys & keys.SPARSE:
        return grad[tuple(indices)] if indices._array.shape[0] else grad.reshape(1, *grad.shape)
    have, values = parts(coalesced(grad))
    sizes = grad._array.shape[: have.shape[0]]
    wanted = flat_places(indices._array, sizes)
    return wrap(_looked_up(flat_places(have, sizes), values, wanted), grad.dtype)


def _looked_up(have: Array, values: Array, wanted: Array) -> Array:
    """`values` at the places of `wanted` in the sorted numbers `have`."""
    out = np.zeros((wanted.size, *values.shape[1:]), values.dtype)
    if have.size:
        place = np.minimum(np.searchsorted(have, wanted), have.size - 1)
        found = have[place] == wanted
        out[found] = values[place[found]]
    return out


def check_dims(size: Sequence[int], sparse_dim: int, dense_dim: int) -> None:
    """Raise unless a size has this many sparse and dense dimensions."""
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}")  # fmt: skip


def _with_dims(
    sparse_dim: int,
    dense_dim: int,
    size: Sequence[int],
    indices: Tensor,
    values: Tensor,
    dtype: OptionalDType,
    is_coalesced: bool | None,
) -> Tensor:
    check_dims(size, sparse_dim, dense_dim)
    check_dtype(values, dtype)
    return sparse_tensor(indices, values, size, coalesced=bool(is_coalesced))


def check_dtype(values: Tensor, dtype: OptionalDType) -> None:
    """Raise unless the values are of the dtype that is asked for: these operators convert nothing."""
    if dtype is not None and dtype is not values.dtype:
        raise RuntimeError(
            f"dtype of values ({values.dtype.scalar_name}) must match dtype of sparse tensor ({_dtype.as_dtype(dtype).scalar_name})"
        )


with_dims = op(
    "_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, SymInt[] size, Tensor indices, Tensor values, *, "
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? is_coalesced=None) -> Tensor",
    composite=lambda sparse_dim, dense_dim, size, indices, values, dtype, layout, device, pin_memory, is_coalesced: _with_dims(
        sparse_dim, dense_dim, size, indices, values, dtype, is_coalesced
    ),
    grad={"values": lambda grad, indices: at_places(grad, indices)},
    node="SparseCooTensorWithDimsAndTensorsBackward0",
    variants="function",
)


def _from_parts(indices: Tensor, values: Tensor, size: Sequence[int], dtype: OptionalDType, is_coalesced: bool | None) -> Tensor:
    sparse_dim = indices._array.shape[0]
    return with_dims(sparse_dim, len(size) - sparse_dim, size, indices.long(), values, dtype=dtype, is_coalesced=is_coalesced)


_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? is_coalesced=None"
unsafe = op(
    f"_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, SymInt[] size, *, {_OPTIONS}) -> Tensor",
    composite=lambda indices, values, size, dtype, layout, device, pin_memory, is_coalesced: _from_parts(
        indices, values, size, dtype, is_coalesced
    ),
    variants="function",
)
from_parts = op(
    f"sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, *, {_OPTIONS}) -> Tensor",
    composite=lambda indices, values, size, dtype, layout, device, pin_memory, is_coalesced: unsafe(
        indices, values, size, dtype=dtype, is_coalesced=is_coalesced
    ),
)


@public("function")
@wrap_torch_function(lambda *args, **kwargs: (*args[:2], *kwargs.values()))
def sparse_coo_tensor(
    indices: Any, values: Any = None, size: Sequence[int] | None = None, *, dtype: OptionalDType = None, device: OptionalDevice = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> Tensor:  # fmt: skip
    """A sparse tensor from coordinates (one column each) and values; without a size, as large as the coordinates say.

    The parts are checked against each other unless `check_invariants` is False, or checks are switched off.
    """
    if device is not None and device_of(device).type != "cpu":
        raise NotImplementedError(f"sparse_coo_tensor: sparse tensors are on the CPU only, not on {device}")
    if pin_memory:
        raise RuntimeError("sparse_coo_tensor: pinned memory needs an accelerator, and there is none")
    if values is None:  # sparse_coo_tensor(size)
        made = empty_coo(list(indices), dtype or _dtype.get_default_dtype())
    else:
        indices, values = as_tensor(indices), as_tensor(values, dtype=dtype, device=device)
        made = _checked(indices, values, size, invariants_wanted(check_invariants), is_coalesced)
    return made.requires_grad_() if requires_grad else made


def _checked(indices: Tensor, values: Tensor, size: Any, check: bool, is_coalesced: bool | None) -> Tensor:
    for name, part in (("indices", indices), ("values", values)):
        if part._keys & keys.BACKENDS != keys.CPU:
            raise RuntimeError(f"{name} must be a dense tensor on the CPU, but got one of layout {part.layout} on {part.device}")
    check_counts(indices, values)
    shape = _inferred_size(indices, values) if size is None else list(size)
    if check:
        check_parts(indices, values, shape)
        _check_coalesced(indices, shape, is_coalesced)
    return from_parts(indices, values, shape, is_coalesced=is_coalesced)


@public("function")
def _validate_sparse_coo_tensor_args(
    indices: Tensor, values: Tensor, size: Shape, is_coalesced: bool | None = None, check_pinning: bool | None = None
) -> None:
    """Raise unless a sparse tensor of this size can be made of these parts."""
    check_parts(indices, values, list(size))
    _check_coalesced(indices, list(size), is_coalesced)


def _check_coalesced(indices: Tensor, size: Sequence[int], is_coalesced: bool | None) -> None:
    if is_coalesced and not (np.diff(flat_places(indices._array.astype(np.int64), size)) > 0).all():
        raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


def _inferred_size(indices: Tensor, values: Tensor) -> list[int]:
    array = indices._array
    if array.size and array.min() < 0:
        d = int(np.argmax(array.min(axis=1) < 0))
        raise RuntimeError(f"found negative index {int(array[d].min())} for dim {d}")
    extents = (array.max(axis=1) + 1).astype(np.int64).tolist() if array.size else [0] * array.shape[0]
    return [*extents, *values._array.shape[1:]]


def empty_coo(size: Sequence[int], dtype: _dtype.dtype, dense_dim: int = 0) -> Tensor:
    """A sparse tensor of this size without any element."""
    sparse_dim = len(size) - dense_dim
    values = wrap(np.empty((0, *size[sparse_dim:]), dtype.np), dtype)
    return sparse_tensor(wrap(np.empty((sparse_dim, 0), np.int64)), values, size, coalesced=True)
