"""Sums, products and quotients of sparse tensors with each other, with dense ones and with numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch import keys, registry
from ..._dtype import dtype
from ..._promotion import can_cast, check_difference, result_type_of
from ..._tensor import Tensor, wrap
from ..._types import Number
from ..elementwise import arithmetic, binary, unary  # noqa: F401 - declared first
from ..elementwise import complex as _complex  # noqa: F401
from ..shapes.joining import cat
from . import compressed
from .compressed import as_coo, in_layout_of
from .layouts import to_dense
from .storage import (
    Array,
    coalesced,
    flat_places,
    kernel,
    parts,
    replace,
    sparse_tensor,
    storage_of,
    with_values,
)  # fmt: skip

__all__: list[str] = []

BOTH = (keys.SPARSE, keys.SPARSE_COMPRESSED, keys.SPARSE_LAYOUTS)
WITH_DENSE = tuple(keys.CPU | key for key in BOTH)


def is_sparse(t: object) -> bool:
    return isinstance(t, Tensor) and bool(t._keys & keys.SPARSE_LAYOUTS)


def values_of(self: Tensor) -> Tensor:
    return compressed.values_of(self) if self._keys & keys.SPARSE_COMPRESSED else storage_of(self).values


def other_values(self: Tensor, values: Tensor) -> Tensor:
    """Other values at the places of a sparse tensor of any layout."""
    return compressed.with_values(self, values) if self._keys & keys.SPARSE_COMPRESSED else with_values(self, values)


def _take(self: Tensor, new: Tensor) -> Tensor:
    """Give a sparse tensor of any layout the parts of another."""
    if self._keys & keys.SPARSE:
        return replace(self, new)
    own, other = compressed.storage_of(self), compressed.storage_of(new)
    own.array, own.compressed, own.plain, own.values = other.array, other.compressed, other.plain, other.values
    own.version += 1
    return self


# --- sums -------------------------------------------------------------------------------------------------------------


def _check_sizes(self: Tensor, other: Tensor, name: str = "add") -> None:
    if self._array.shape != other._array.shape:
        raise RuntimeError(
            f"{name}: expected sizes of 'self' and 'other' to match, but {list(self._array.shape)} != {list(other._array.shape)}"
        )


def add(self: Tensor, other: Any, alpha: Number) -> Tensor:
    """The sum of two tensors of which at least one is sparse."""
    if not is_sparse(other):
        if is_sparse(self) and self._keys & keys.SPARSE_COMPRESSED and isinstance(other, Tensor) and other._array.ndim:
            return _dense_plus(other, self, 1) if alpha == 1 else _dense_plus(other * alpha, self, 1)
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if not is_sparse(self):
        return _dense_plus(self, other, alpha)
    _check_sizes(self, other)
    return in_layout_of(_coo_sum(as_coo(self), as_coo(other), alpha), self)


def _coo_sum(self: Tensor, other: Tensor, alpha: Number) -> Tensor:
    if self.sparse_dim() != other.sparse_dim():
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same number of sparse dimensions, but {self.sparse_dim()} != {other.sparse_dim()}"
        )
    common = result_type_of((self, other))
    added = values_of(other) if alpha == 1 else values_of(other).to(common) * alpha
    both = storage_of(self).coalesced and storage_of(other).coalesced
    # torch: values that are not contiguous, such as the gradient of a sum, are put side by side
    packed = values_of(self)._array.flags.c_contiguous and values_of(other)._array.flags.c_contiguous
    if packed and np.array_equal(parts(self)[0], parts(other)[0]):
        return sparse_tensor(storage_of(self).indices, values_of(self) + added, self._array.shape, coalesced=both)
    joined = cat([storage_of(self).indices, storage_of(other).indices], 1)
    values = np.concatenate([values_of(self)._array.astype(common.np), added._array.astype(common.np)])
    made = sparse_tensor(joined, wrap(values), self._array.shape)
    return coalesced(made) if both else made


def _dense_plus(self: Tensor, other: Tensor, alpha: Number) -> Tensor:
    _check_dense_sizes(self, other)
    out = self._array.astype(result_type_of((self, other)).np)
    _accumulate(out, other, alpha)
    return wrap(out)


def _check_dense_sizes(self: Tensor, other: Tensor) -> None:
    if self._array.shape != other._array.shape:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(self._array.shape)} while other has size "
            f"{list(other._array.shape)} (FYI: dense-sparse addition does not currently support broadcasting)"
        )


def _accumulate(array: Array, sparse: Tensor, alpha: Number) -> None:
    coo = as_coo(sparse)
    indices, values = parts(coo)
    values = values.astype(array.dtype, copy=False)
    if alpha != 1:
        values = values * np.asarray(alpha).astype(array.dtype)  # -1 wraps in unsigned types, as torch has it
    if not indices.shape[0]:
        array += values.sum(axis=0)
    elif storage_of(coo).coalesced:
        array[tuple(indices)] += values
    else:
        np.add.at(array, tuple(indices), values)


def _check_cast(found: dtype, into: Tensor) -> None:
    if found is not into.dtype and not can_cast(found, into.dtype):
        raise RuntimeError(f"Can't convert result type {found.scalar_name} to output {into.dtype.scalar_name} in add operation")


def sub(self: Tensor, other: Any, alpha: Number) -> Tensor:
    """The difference of two tensors of which at least one is sparse."""
    check_difference(self, other)
    return add(self, other, -alpha)


def sub_(self: Tensor, other: Tensor, alpha: Number) -> Tensor:
    """Subtract in place, from a dense tensor or from a sparse one."""
    check_difference(self, other)
    return add_(self, other, -alpha)


def add_(self: Tensor, other: Tensor, alpha: Number) -> Tensor:
    """Add in place, to a dense tensor or to a sparse one."""
    if is_sparse(self):
        made = add(self, other, alpha)
        _check_cast(made.dtype, self)
        return _take(self, made if made.dtype is self.dtype else other_values(made, values_of(made).to(self.dtype)))
    _check_dense_sizes(self, other)
    _check_cast(result_type_of((self, other)), self)
    _accumulate(self._array, other, alpha)
    self._storage.version += 1
    return self


for _key in (*BOTH, *WITH_DENSE):
    kernel("add", "Tensor", key=_key)(add)
    kernel("add_", "Tensor", key=_key)(add_)
    kernel("sub", "Tensor", key=_key)(sub)
    kernel("sub_", "Tensor", key=_key)(sub_)


# --- products ---------------------------------------------------------------------------------------------------------


def _scalar(other: Any) -> Any:
    """A number, from a number or a tensor without dimensions."""
    if not isinstance(other, Tensor):
        return other
    return to_dense(other, None) if is_sparse(other) else other


def mul(self: Tensor, other: Any) -> Tensor:
    """The product, sparse wherever one factor is."""
    if not is_sparse(self):
        self, other = other, self
    if not isinstance(other, Tensor) or other._array.ndim == 0:
        return other_values(self, values_of(self) * _scalar(other))
    if self._array.ndim == 0 and is_sparse(other):
        return mul(other, self)
    if is_sparse(other):
        return _sparse_product(self, other)
    return _dense_product(self, other)


def _sparse_product(self: Tensor, other: Tensor) -> Tensor:
    """What both have. Dimensions of values are broadcast, as of dense tensors."""
    a, b = as_coo(self), as_coo(other)
    if storage_of(a).coalesced and not storage_of(b).coalesced:
        a, b = b, a
    (where_a, values_a), (where_b, values_b) = parts(a), parts(coalesced(b))
    sparse_dim = where_a.shape[0]
    sizes = a._array.shape[:sparse_dim]
    if a._array.ndim != b._array.ndim or sparse_dim != where_b.shape[0] or sizes != b._array.shape[:sparse_dim]:
        raise RuntimeError(
            "mul: expected 'self' and 'other' to have the same number of sparse dimensions, and the same sizes of them, but "
            f"{list(self._array.shape)} has {self.sparse_dim()} and {list(other._array.shape)} has {other.sparse_dim()}"
        )
    product_type = result_type_of((self, other))
    values_a, values_b = values_a.astype(product_type.np, copy=False), values_b.astype(product_type.np, copy=False)
    have, wanted = flat_places(where_b, sizes), flat_places(where_a, sizes)
    place = np.minimum(np.searchsorted(have, wanted), max(have.size - 1, 0))
    found = have[place] == wanted if have.size else np.zeros(wanted.size, bool)
    values = values_a[found] * values_b[place[found]]
    indices = wrap(np.ascontiguousarray(where_a[:, found]))
    size = (*sizes, *values.shape[1:])
    return in_layout_of(sparse_tensor(indices, wrap(values, product_type), size, coalesced=storage_of(a).coalesced), self)


def _dense_product(self: Tensor, other: Tensor) -> Tensor:
    """A sparse factor with each element multiplied by the dense one's at its place."""
    coo = as_coo(self)
    indices, values = parts(coo)
    try:
        spread = np.broadcast_to(other._array, self._array.shape)
    except ValueError as error:
        raise RuntimeError(
            f"mul: the size {list(other._array.shape)} of the dense factor does not broadcast to the size "
            f"{list(self._array.shape)} of the sparse one; use to_dense()"
        ) from error
    product_type = result_type_of((self, other))
    factor = spread[tuple(indices)] if indices.shape[0] else spread
    product = values.astype(product_type.np, copy=False) * factor.astype(product_type.np, copy=False)
    made = sparse_tensor(
        storage_of(coo).indices, wrap(product, product_type), self._array.shape, coalesced=storage_of(coo).coalesced
    )
    return in_layout_of(made, self)


def mul_(self: Tensor, other: Tensor | Number) -> Tensor:
    if not is_sparse(self):
        raise RuntimeError("mul_: a dense tensor times a sparse one is sparse; use mul")
    if not isinstance(other, Tensor) or other._array.ndim == 0:
        values_of(self).mul_(_scalar(other))
        self._storage.version += 1
        return self
    return _take(self, mul(self, other))


def _divided(name: str) -> Callable[..., Any]:
    """A quotient of a sparse tensor and a number."""

    def divide(self: Tensor, other: Tensor | Number, **options: Any) -> Tensor:
        if not is_sparse(self) or (isinstance(other, Tensor) and (other._array.ndim or is_sparse(other))):
            shape = list(other._array.shape) if isinstance(other, Tensor) else []
            raise RuntimeError(
                f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {shape} for divisor)"
            )
        whole = name == "floor_divide" or options.get("rounding_mode")
        source = coalesced(self) if whole and self._keys & keys.SPARSE else self
        return other_values(source, getattr(values_of(source), name)(other, **options))

    return divide


_div, _floor_div = _divided("div"), _divided("floor_divide")


def _div_mode(self: Tensor, other: Tensor | Number, rounding_mode: str | None) -> Tensor:
    return _div(self, other, rounding_mode=rounding_mode)


def _div_(self: Tensor, other: Tensor | Number) -> Tensor:
    return _take(self, _div(self, other))


def _div_mode_(self: Tensor, other: Tensor | Number, rounding_mode: str | None) -> Tensor:
    return _take(self, _div_mode(self, other, rounding_mode))


def _pow(self: Tensor, exponent: Number) -> Tensor:
    if isinstance(exponent, Tensor):
        exponent = exponent.item()
    if exponent == 0:
        raise RuntimeError("pow: a sparse tensor to the power of zero is dense; use to_dense()")
    source = coalesced(self) if self._keys & keys.SPARSE else self
    return other_values(source, values_of(source) ** exponent)


for _key in (*BOTH, *WITH_DENSE):
    kernel("mul", "Tensor", key=_key)(mul)
    kernel("mul_", "Tensor", key=_key)(mul_)
    kernel("div", "Tensor", key=_key)(_div)
    kernel("div", "Tensor_mode", key=_key)(_div_mode)
    kernel("div_", "Tensor", key=_key)(_div_)
    kernel("floor_divide", key=_key)(_floor_div)
for _key in BOTH[:2]:
    kernel("mul", "Scalar", key=_key)(mul)
    kernel("mul_", "Scalar", key=_key)(mul_)
    kernel("div", "Scalar", key=_key)(_div)
    kernel("div_", "Tensor_mode", key=_key)(_div_mode_)
    kernel("pow", "Tensor_Scalar", key=_key)(_pow)

# --- each element by itself -------------------------------------------------------------------------------------------

# Functions that leave zero as it is; of a sum of values only some are the sum of the results.
LINEAR = ["neg", "deg2rad", "rad2deg", "positive"]
OTHERS = (
    "abs angle asin asinh atan atanh ceil conj_physical erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p nan_to_num relu round sgn sign "
    "signbit sin sinh sqrt tan tanh trunc"
).split()


def _each(name: str, *, linear: bool) -> Callable[..., Any]:
    def apply(self: Tensor, *arguments: Any) -> Tensor:
        source = coalesced(self) if not linear and self._keys & keys.SPARSE else self
        return other_values(source, getattr(values_of(source), name)(*arguments))

    return apply


def _each_(name: str) -> Callable[..., Any]:
    def apply(self: Tensor, *arguments: Any) -> Tensor:
        if self._keys & keys.SPARSE and not storage_of(self).coalesced and name not in LINEAR:
            raise RuntimeError(f"{name}_: in-place on uncoalesced tensors is not supported; call coalesce() first")
        getattr(values_of(self), f"{name}_")(*arguments)
        self._storage.version += 1
        return self

    return apply


for _name in [*LINEAR, *OTHERS]:
    for _key in BOTH[:2]:
        kernel(_name, key=_key)(_each(_name, linear=_name in LINEAR))
        if registry.find(f"aten::{_name}_") is not None:
            kernel(f"{_name}_", key=_key)(_each_(_name))
for _key in BOTH[:2]:
    kernel("_conj_physical", key=_key)(lambda self: other_values(self, values_of(self).conj_physical()))
