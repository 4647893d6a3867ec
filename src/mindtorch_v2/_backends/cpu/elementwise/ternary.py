"""Kernels of three operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import _checks, _dtype, _promotion
from ...._types import Number
from ...._writing import warn_if_expanded, writing_to_expanded
from ..creation.copying import number_in
from ..machinery.dtype_rules import unimplemented
from ..machinery.dtypes import BOOL, FLOAT, HALVES, cpp_name
from ..machinery.floating_errors import quiet, silent
from ..machinery.layout import laid_out_like
from ..machinery.promotion import result_type
from .choosing import SMALL, WORDS, select, spread

Array = np.ndarray[Any, Any]
_REAL_NUMBERS: frozenset[Any] = frozenset({int, float})


@silent
def where(condition: Array, self: Array, other: Array) -> Array:
    if condition.dtype is not BOOL and condition.dtype != BOOL:
        if condition.dtype != np.uint8:
            name = _dtype.FROM_NUMPY[condition.dtype]
            raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {name.scalar_name}")
        condition = condition.astype(np.bool_)
    if self.dtype is not other.dtype and self.dtype != other.dtype:
        d = result_type(self, other).np
        self, other = self.astype(d), other.astype(d)
    try:
        return select(condition, self, other)
    except ValueError:
        _checks.broadcast_shapes(condition.shape, self.shape, other.shape)
        raise


def _fill_where(self: Array, mask: Array, filling: Array) -> None:
    try:
        if mask.size <= SMALL or self.dtype.itemsize not in WORDS:
            np.copyto(self, filling, where=mask)
        else:
            word = WORDS[self.dtype.itemsize]
            target = self.view(word)
            flipped = np.bitwise_xor(target, filling.view(word))
            flipped &= spread(mask, word)
            target ^= flipped
    except ValueError:
        shape = _checks.broadcast_shapes(self.shape, mask.shape)
        raise RuntimeError(f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(shape)}") from None


@silent
def masked_fill_(self: Array, mask: Array, value: Array | Number) -> None:
    if mask.dtype is not BOOL and mask.dtype != BOOL:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {_dtype.FROM_NUMPY[mask.dtype].name}"
        )
    if isinstance(value, np.ndarray):
        if value.ndim:
            raise RuntimeError(
                f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            )
        value = value[()]
    d = _dtype.FROM_NUMPY[self.dtype]
    filling = np.asarray(value, self.dtype) if value.__class__ is float and d.category == _dtype.FLOAT else number_in(value, d)
    if not self.flags.writeable:
        warn_if_expanded(self, "masked_fill_", "tensor[mask] = scalar")
        with writing_to_expanded(self):
            _fill_where(self, mask, filling)
        return
    _fill_where(self, mask, filling)


_INFINITE = (math.inf, -math.inf)


@silent
def masked_fill(self: Array, mask: Array, value: Any) -> Array:
    """A copy with `value` where the mask holds."""
    if self.shape == mask.shape:
        out = self.copy()
        if (
            self.dtype is FLOAT and mask.dtype is BOOL and self.size <= SMALL
            and value.__class__ in _REAL_NUMBERS and (-3e38 < value < 3e38 or value in _INFINITE)
        ):  # fmt: skip
            np.putmask(out, mask, np.array(value, FLOAT))  # 1.3 µs less than with the checks below
            return out
    else:
        out = np.array(np.broadcast_to(self, _checks.broadcast_shapes(self.shape, mask.shape)), order="C")
    masked_fill_(out, mask, value)
    return out


def lerp(self: Array, end: Array, weight: Any) -> Array:
    """`self + weight * (end - self)`, from the nearer end so that a weight of one is exact."""
    for name, x in (("end", end), ("weight", weight)):
        if isinstance(x, np.ndarray) and x.dtype != self.dtype:
            raise RuntimeError(f"expected dtype {cpp_name(self)} for `{name}` but got dtype {cpp_name(x)}")
    if self.dtype.kind in "iub":
        raise unimplemented("lerp_kernel_scalar", self)
    if self.dtype in HALVES:
        wide = weight.astype(np.float32) if isinstance(weight, np.ndarray) else weight
        return lerp(self.astype(np.float32), end.astype(np.float32), wide).astype(self.dtype)
    try:
        return _lerp(self, end, weight)
    except ValueError:
        _checks.broadcast_shapes(self.shape, end.shape, np.shape(weight))
        raise


def _lerp(self: Array, end: Array, weight: Array) -> Array:
    if isinstance(weight, np.ndarray):
        difference = end - self
        return np.where(np.abs(weight) < 0.5, self + weight * difference, end - difference * (1 - weight))
    out = laid_out_like(np.asarray(np.subtract(end, self)), self)
    if abs(weight) < 0.5:
        out *= self.dtype.type(weight)
        return np.add(out, self, out=out)
    out *= self.dtype.type(1 - weight)
    return np.subtract(end, out, out=out)


def addcmul(self: Array, tensor1: Array, tensor2: Array, value: Number) -> Array:
    if self.dtype in HALVES:
        a, b, c = (x.astype(np.float32) for x in (self, tensor1, tensor2))
        return addcmul(a, b, c, value).astype(self.dtype)
    if self.dtype.kind == "b":
        raise unimplemented("addcmul_cpu_out", self)
    factor = number_in(value, _dtype.FROM_NUMPY[self.dtype])
    out = np.asarray(np.multiply(tensor1, tensor2))
    if value != 1:
        out *= factor
    return _added(out, self)


def addcdiv(self: Array, tensor1: Array, tensor2: Array, value: Number) -> Array:
    if self.dtype.kind in "iub":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division "
            "of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / "
            "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future "
            "addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes."
        )
    if self.dtype in HALVES:
        a, b, c = (x.astype(np.float32) for x in (self, tensor1, tensor2))
        return addcdiv(a, b, c, value).astype(self.dtype)
    out = np.asarray(np.true_divide(tensor1, tensor2))
    if value != 1:
        out *= number_in(value, _dtype.FROM_NUMPY[out.dtype])
    return _added(out, self)


def _added(out: Array, self: Array) -> Array:
    """`out + self`, into `out` when the sum has its shape."""
    if out.shape == self.shape or out.shape == np.broadcast_shapes(out.shape, self.shape):
        return np.add(self, out, out=out)
    return np.add(self, out)


def _write(self: Array, value: Array) -> None:
    if not self.flags.writeable:
        raise ValueError("read-only")  # the adapter decides whether it may be written after all
    if value.shape != self.shape:
        raise RuntimeError(f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(value.shape)}")
    self[...] = value


_REAL = frozenset({bool, int, float})


def _promoted_ternary(compute: Callable[..., Any], self: Array, tensor1: Array, tensor2: Array, value: Number) -> Array:
    operands = (self, tensor1, tensor2)
    d, target = result_type(*operands), _dtype.FROM_NUMPY[self.dtype]
    if not _promotion.can_cast(d, target):
        raise RuntimeError(f"result type {d.scalar_name} can't be cast to the desired output type {target.scalar_name}")
    with quiet():
        return compute(*(x.astype(d.np, copy=False) for x in operands), value)


def _adding_in_place(ufunc: np.ufunc, compute: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of `self += value * ufunc(tensor1, tensor2)`; operands of another dtype take the long way, by `compute`."""

    @silent
    def kernel(self: Array, tensor1: Array, tensor2: Array, value: Number) -> None:
        d = self.dtype
        if tensor1.dtype is not d or tensor2.dtype is not d or d.char not in "fd" or value.__class__ not in _REAL:
            _write(self, _promoted_ternary(compute, self, tensor1, tensor2, value))
            return
        change = ufunc(tensor1, tensor2)
        if value != 1:
            change *= np.asarray(value, d)
        try:
            np.add(self, change, out=self)
        except ValueError:
            _write(self, self + change)

    return kernel


addcmul_ = _adding_in_place(np.multiply, addcmul)
addcdiv_ = _adding_in_place(np.divide, addcdiv)


@silent
def lerp_(self: Array, end: Array, weight: Array | Number) -> None:
    d = self.dtype
    if end.dtype is not d or d.char not in "fd" or weight.__class__ is not float or not -0.5 < weight < 0.5:
        with quiet():
            _write(self, lerp(self, end, weight))
        return
    change = np.subtract(end, self)
    change *= np.asarray(weight, d)
    try:
        np.add(self, change, out=self)
    except ValueError:
        _write(self, self + change)
