"""Rounding to the values that a quantized tensor could hold, in floating point: what training for quantization computes with."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _dtype
from ..._backends.cpu.machinery.dtype_rules import refusal
from ..._backends.cpu.machinery.floating_errors import silent
from ..._backends.meta.adapter import meta_tensor
from ..._tensor import Tensor
from ..machinery.declare import op
from ..machinery.lookup import aten

__all__ = ["dequantize"]

Array = np.ndarray[Any, Any]
_KERNEL = "fake_quantize_tensor_cachemask_kernel_type_handling"
_ZERO_POINT_RANGE = "`zero_point` must be between `quant_min` and `quant_max`."


def _check_range(quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")


def _check_floating(x: Array) -> None:
    d = _dtype.FROM_NUMPY[x.dtype]
    if not d.is_floating_point:
        raise refusal(_KERNEL, d)


@silent
def _rounded(x: Array, scale: Any, zero_point: Any, quant_min: int, quant_max: int, product: Any) -> tuple[Array, Array]:
    """The nearest of the values, and which of them lie in the range; torch has scales of float32, and multiplies in the type `product`."""
    inverse = np.float32(1) / scale
    wide = x if x.dtype == np.float64 else x.astype(np.float32)
    if getattr(zero_point, "dtype", None) is not None and zero_point.dtype.kind == "f":
        steps = np.rint(wide * inverse + zero_point).astype(np.float64)
    else:
        steps = np.rint(wide * inverse).astype(np.float64) + zero_point
    inside = (quant_min <= steps) & (steps <= quant_max)
    held = np.clip(np.where(np.isnan(steps), quant_min, steps), quant_min, quant_max)
    return ((held - zero_point).astype(product) * scale).astype(x.dtype), inside


def _per_tensor(self: Array, scale: float, zero_point: int, quant_min: int, quant_max: int) -> tuple[Array, Array]:
    _check_range(quant_min, quant_max)
    if not quant_min <= zero_point <= quant_max:
        raise RuntimeError(_ZERO_POINT_RANGE)
    _check_floating(self)
    return _rounded(self, np.float32(scale), zero_point, quant_min, quant_max, np.float32)


def _per_tensor_given(
    self: Array, scale: Array, zero_point: Array, fake_quant_enabled: Array, quant_min: int, quant_max: int
) -> tuple[Array, Array]:
    _check_range(quant_min, quant_max)
    for given in (scale, zero_point, fake_quant_enabled):
        if given.size != 1:
            raise RuntimeError(f"a Tensor with {given.size} elements cannot be converted to Scalar")
    _check_floating(self)
    if not fake_quant_enabled.item():
        return self.copy(), np.ones(self.shape, np.bool_)
    return _rounded(self, np.float32(scale.item().real), int(zero_point.item().real), quant_min, quant_max, np.float32)


def _per_channel(self: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int) -> tuple[Array, Array]:
    found, at = (_dtype.FROM_NUMPY[x.dtype] for x in (scale, zero_point))
    if found not in (_dtype.float32, _dtype.bfloat16):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {found.scalar_name}")
    if at not in (_dtype.int32, _dtype.float32, _dtype.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {at.scalar_name}")
    for name, given in (("scale", scale), ("zero point", zero_point)):
        if given.ndim != 1:
            raise RuntimeError(f"{name} should be a 1-D tensor")
    if scale.size != zero_point.size:
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if not -self.ndim <= axis < self.ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-self.ndim}, {self.ndim - 1}], but got {axis})")
    if scale.size != self.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    _check_range(quant_min, quant_max)
    if at is _dtype.int32 and zero_point.size and not (quant_min <= zero_point.min() and zero_point.max() <= quant_max):
        raise RuntimeError(_ZERO_POINT_RANGE)
    if not axis >= 0:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    _check_floating(self)
    shape = [-1 if d == axis else 1 for d in range(self.ndim)]
    wide = (x.astype(np.float32) if x.dtype.kind not in "iu" else x.astype(np.int64) for x in (scale, zero_point))
    return _rounded(self, *(x.reshape(shape) for x in wide), quant_min, quant_max, np.float64)


def _meta(self: Tensor) -> tuple[Tensor, Tensor]:
    return meta_tensor(self._array.shape, self.dtype), meta_tensor(self._array.shape, _dtype.bool_)


def _backward(name: str) -> Any:
    return op(
        f"{name}(Tensor grad, Tensor mask) -> Tensor",
        composite=lambda grad, mask: grad * mask,
        variants="",
    )


_per_tensor_backward = _backward("fake_quantize_per_tensor_affine_cachemask_backward")
_per_channel_backward = _backward("fake_quantize_per_channel_affine_cachemask_backward")
op(
    "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) "
    "-> (Tensor output, Tensor mask)",
    cpu=_per_tensor,
    shape=_meta,
    grad={"self": lambda grad, mask: _per_tensor_backward(grad, mask)},
    nondifferentiable=("mask",),
    variants="",
)
op(
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled, "
    "int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
    cpu=_per_tensor_given,
    shape=_meta,
    grad={"self": lambda grad, mask: _per_tensor_backward(grad, mask)},
    nondifferentiable=("mask",),
    fixed=("scale", "zero_point", "fake_quant_enabled"),
    variants="function",
)
op(
    "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) "
    "-> (Tensor output, Tensor mask)",
    cpu=_per_channel,
    shape=_meta,
    grad={"self": lambda grad, mask: _per_channel_backward(grad, mask)},
    nondifferentiable=("mask",),
    fixed=("scale", "zero_point"),
    variants="",
)
op(
    "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor",
    composite=lambda self, *given: aten.fake_quantize_per_tensor_affine_cachemask(self, *given)[0],
    variants="function",
)
op(
    "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> Tensor",
    composite=lambda self, scale, zero_point, quant_min, quant_max: aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
        self, scale, zero_point, aten.ones(1, dtype=_dtype.int64), quant_min, quant_max
    )[0],
    variants="function",
)
op(
    "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor",
    composite=lambda self, *given: aten.fake_quantize_per_channel_affine_cachemask(self, *given)[0],
    variants="function",
)
dequantize = op(
    "dequantize.self(Tensor self) -> Tensor",
    composite=lambda self: self.to(_dtype.float32),
    tags=("no_derivative",),
)
