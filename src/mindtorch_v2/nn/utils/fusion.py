"""Batch normalisation folded into the layer before it, for evaluation."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor
from ..parameter import Parameter

if TYPE_CHECKING:
    from ..modules.batchnorm import _BatchNorm
    from ..modules.linear import Linear
    from ..modules.module import Module

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check(layer: Module, bn: _BatchNorm) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _check_statistics(bn: _BatchNorm) -> None:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Any, bn: _BatchNorm, transpose: bool = False) -> Any:
    """A copy of the convolution that does the batch normalisation as well."""
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    _check_statistics(bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None, bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of a convolution that does the batch normalisation as well."""
    bias_dtype = conv_w.dtype if conv_b is None else conv_b.dtype
    bias = aten.zeros_like(bn_rm) if conv_b is None else conv_b
    scale = aten.ones_like(bn_rm) if bn_w is None else bn_w
    shift = aten.zeros_like(bn_rm) if bn_b is None else bn_b
    inverse = aten.rsqrt(bn_rv + bn_eps)
    shape = ([1, -1] if transpose else [-1, 1]) + [1] * (conv_w.dim() - 2)
    weight = (conv_w * (scale * inverse).reshape(shape)).to(dtype=conv_w.dtype)
    fused_bias = ((bias - bn_rm) * inverse * scale + shift).to(dtype=bias_dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(fused_bias, bias.requires_grad)


def fuse_linear_bn_eval(linear: Linear, bn: _BatchNorm) -> Linear:
    """A copy of the linear map that does the batch normalisation as well."""
    _check(linear, bn)
    fused = copy.deepcopy(linear)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, "
            f"got linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    _check_statistics(bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear map that does the batch normalisation as well."""
    bias_dtype = linear_w.dtype if linear_b is None else linear_b.dtype
    bias = aten.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * aten.rsqrt(bn_rv + bn_eps)
    weight = linear_w * scale.unsqueeze(-1).to(dtype=linear_w.dtype)
    fused_bias = ((bias - bn_rm) * scale + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, linear_w.requires_grad), Parameter(fused_bias, bias.requires_grad)
