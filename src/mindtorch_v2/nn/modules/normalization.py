"""Normalisation over features: layer, group, root mean square, local response."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor
from ..._types import Ints, OptionalDevice, OptionalDType
from ...autograd import Function
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .batchnorm import reset_affine
from .module import Module

if TYPE_CHECKING:
    pass

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """Divides each element by a sum of squares over neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class _CrossMap(Function):
    """torch: forward and backward sum over different channels, so that the gradient is not quite that of the result."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, size: int, alpha: float, beta: float, k: float) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        channels = input.size(1)
        reach = (size - 1) // 2 + 1
        squares = input * input
        running = squares[:, : min(reach, channels)].sum(1)
        sums = [running]
        for c in range(1, channels):
            if c < channels - reach + 1:
                running = running + squares.select(1, c + reach - 1)
            if c > reach:  # the first square stays in one window too long
                running = running - squares.select(1, c - reach)
            sums.append(running)
        scale = aten.stack(sums, 1) * (alpha / size) + k
        output = input * scale.pow(-beta)
        ctx.save_for_backward(input, output, scale)
        ctx.options = size, alpha, beta
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        input, output, scale = ctx.saved_tensors
        size, alpha, beta = ctx.options
        channels = input.size(1)
        ratios = input.new_zeros([input.size(0), channels + size - 1, *input.shape[2:]])
        ratios.narrow(1, int(size - (size - 1) / 2), channels).copy_(grad * output / scale)
        window = sum(ratios.narrow(1, i, channels) for i in range(size))
        return grad * scale.pow(-beta) - (2 * alpha * beta / size) * input * window, None, None, None, None


class CrossMapLRN2d(Module):
    """`LocalResponseNorm` of images, as its first implementation computes it."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = _CrossMap.apply(input, self.size, self.alpha, self.beta, self.k)
        return result

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _shape(normalized_shape: Any) -> tuple[int, ...]:
    return (int(normalized_shape),) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)


class LayerNorm(Module):
    """Normalisation over the last dimensions."""

    def __init__(
        self, normalized_shape: Ints, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, device: OptionalDevice = None,
        dtype: OptionalDType = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            made = Parameter(aten.empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start again as the identity."""
        reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}" + (
            f", bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Normalisation over groups of channels."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: OptionalDevice = None, dtype: OptionalDType = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = Parameter(aten.empty((num_channels,), device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start again as the identity."""
        reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class RMSNorm(Module):
    """Division by the root mean square over the last dimensions."""

    def __init__(
        self,
        normalized_shape: Ints,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: OptionalDevice = None,
        dtype: OptionalDType = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        made = Parameter(aten.empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start again with ones."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
