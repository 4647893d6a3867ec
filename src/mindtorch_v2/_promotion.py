"""Type promotion: torch's lattice, with numbers and zero-dim tensors giving way to tensors with dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _dtype
from ._dtype import BOOL, COMPLEX, FLOAT, INTEGER, dtype

__all__ = ["can_cast", "promote_types", "result_type", "result_type_of"]


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both convert to, by torch's table."""
    if type1 is type2:
        return type1 if isinstance(type1, dtype) else _dtype.as_dtype(type1)
    found = _cache.get((type1, type2))
    if found is None:
        a, b = _dtype.as_dtype(type1, "promote_types", "type1"), _dtype.as_dtype(type2, "promote_types", "type2")
        found = _cache[type1, type2] = a if a is b else _promote(a, b)
    return found


_cache: dict[tuple[dtype, dtype], dtype] = {}
_WIDE_UNSIGNED = (_dtype.uint16, _dtype.uint32, _dtype.uint64)


def _promote(a: dtype, b: dtype) -> dtype:
    for d in (a, b):
        if isinstance(d, _dtype.NarrowDtype) and not d.is_complex:
            kind = "Float8 Types" if d.is_floating_point else str(d)
            raise RuntimeError(f"Promotion for {kind} is not supported, attempted to promote {a.scalar_name} and {b.scalar_name}")
    if (a in _WIDE_UNSIGNED or b in _WIDE_UNSIGNED) and FLOAT not in (a.category, b.category):
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a.scalar_name} and {b.scalar_name}"
        )
    if a.category > b.category:
        a, b = b, a
    if a.category == b.category:
        if a.category == FLOAT:
            if {a, b} == {_dtype.float16, _dtype.bfloat16}:
                return _dtype.float32
            return a if a.itemsize >= b.itemsize else b
        if a.category == COMPLEX:
            return a if a.itemsize >= b.itemsize else b
        if a.is_signed == b.is_signed:
            return a if a.itemsize > b.itemsize else b
        unsigned, signed = (b, a) if a.is_signed else (a, b)
        return signed if signed.itemsize > unsigned.itemsize else _dtype.int16
    if b.category == COMPLEX and a.category == FLOAT:
        return _dtype.complex128 if _dtype.float64 in (a, b) or b is _dtype.complex128 else _dtype.complex64
    return b


def result_type_of(operands: Any) -> dtype:
    """The dtype of a computation over tensors and numbers."""
    with_dims = zero_dim = number = None
    for x in operands:
        kind = x.__class__
        if kind is bool or kind is int or kind is float or kind is complex:
            d = _dtype.of_scalar(x)
            number = d if number is None else promote_types(number, d)
        elif isinstance(x, np.generic):
            d = _dtype.of_scalar(x.item())
            number = d if number is None else promote_types(number, d)
        elif x._array.ndim:
            with_dims = x.dtype if with_dims is None else promote_types(with_dims, x.dtype)
        else:
            zero_dim = x.dtype if zero_dim is None else promote_types(zero_dim, x.dtype)
    return _combine(_combine(with_dims, zero_dim), number)


def _combine(higher: dtype | None, lower: dtype | None) -> dtype:
    """`higher` wins unless `lower` is of a higher category (float over int, …)."""
    if higher is None:
        return lower  # type: ignore[return-value]
    if lower is None or lower.category <= higher.category:
        return higher
    if lower.category == COMPLEX and higher.category == FLOAT:
        return promote_types(higher, _dtype.complex64)
    if lower.category == COMPLEX:
        return lower
    return promote_types(higher, lower)


def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """The dtype of an arithmetic operation between the two, each a tensor or a number."""
    for x in (tensor1, tensor2):
        if not isinstance(x, bool | int | float | complex | np.generic) and not hasattr(x, "_array"):
            raise TypeError(f"result_type(): arguments must be tensors or numbers, not {type(x).__name__}")
    return result_type_of((tensor1, tensor2))


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a result of dtype `from_` may be written to a tensor of dtype `to`."""
    from_, to = _dtype.as_dtype(from_, "can_cast", "from_"), _dtype.as_dtype(to, "can_cast", "to")
    if from_.category == COMPLEX and to.category != COMPLEX:
        return False
    if from_.category == FLOAT and to.category <= INTEGER:
        return False
    return not (from_.category != BOOL and to.category == BOOL)


def operand_arrays(d: dtype, *operands: Any) -> list[np.ndarray[Any, Any]]:
    """The operands as arrays of one dtype."""
    np_dtype = d.np
    out = []
    for x in operands:
        array = x._array if hasattr(x, "_array") else number_array(x, d)
        out.append(array if array.dtype == np_dtype else array.astype(np_dtype))
    return out


def number_array(x: Any, d: dtype) -> np.ndarray[Any, Any]:
    if d.category == INTEGER and isinstance(x, int):
        # torch: an integer outside of the range wraps around
        bits = d.itemsize * 8
        return np.array(x & ((1 << bits) - 1), np.dtype(f"u{d.itemsize}")).view(d.np)
    return np.asarray(x, d.np)


def alpha_array(alpha: Any, d: dtype) -> np.ndarray[Any, Any]:
    """The factor of `add(…, alpha=…)` in the dtype of the sum."""
    if d.category not in (FLOAT, COMPLEX) and isinstance(alpha, float | complex):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, bool) and d.category != BOOL:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, complex) and d.category != COMPLEX:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    return number_array(alpha, d)


def promoted(self: Any, other: Any) -> tuple[Any, Any, dtype]:
    """Arrays of the common dtype of two operands, and that dtype: the slow path of the binary kernels."""
    d = result_type_of((self, other))
    x, y = operand_arrays(d, self, other)
    return x, y, d


def promoted_difference(self: Any, other: Any) -> tuple[Any, Any, dtype]:
    """The same for subtraction, which refuses bools."""
    check_difference(self, other)
    return promoted(self, other)


def check_difference(self: Any, other: Any) -> None:
    """Refuse to subtract bools."""
    kinds = [_dtype.of_scalar(x) if x.__class__ in (bool, int, float, complex) else x.dtype for x in (self, other)]
    if kinds == [_dtype.bool_, _dtype.bool_]:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
        )
    if _dtype.bool_ in kinds:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the "
            "`~` or `logical_not()` operator instead."
        )
