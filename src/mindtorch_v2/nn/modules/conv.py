"""Convolution layers."""

from __future__ import annotations

from typing import Any

from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor
from ..._types import Ints, OptionalDevice, OptionalDType
from .. import functional as F
from ..parameter import Parameter
from .linear import draw_weight_and_bias
from .module import Module
from .utils import ntuple

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_PADDING_MODES = {"zeros", "reflect", "replicate", "circular"}


class _ConvNd(Module):
    """Base of plain and transposed convolutions of any dimension."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...] | str,
        dilation: tuple[int, ...], transposed: bool, output_padding: tuple[int, ...], groups: int, bias: bool, padding_mode: str,
        device: OptionalDevice = None, dtype: OptionalDType = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_arguments(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = kernel_size, stride, dilation
        self.padding, self.padding_mode = padding, padding_mode
        self.transposed, self.output_padding = transposed, output_padding
        self._reversed_padding_repeated_twice = _border(padding, kernel_size, dilation)
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(aten.empty((*channels, *kernel_size), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(aten.empty((out_channels,), device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights, uniform within 1 / sqrt(fan in)."""
        # torch: other than `Linear`, a convolution without inputs leaves its bias as it is
        draw_weight_and_bias(self.weight, None if 0 in self.weight.shape[1:] else self.bias)

    def extra_repr(self) -> str:
        zeros, ones = (0,) * len(self.kernel_size), (1,) * len(self.kernel_size)
        shown = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        for name, value, usual in (
            ("padding", self.padding, zeros),
            ("dilation", self.dilation, ones),
            ("output_padding", self.output_padding, zeros),
            ("groups", self.groups, 1),
            ("bias", self.bias is not None, True),
            ("padding_mode", self.padding_mode, "zeros"),
        ):
            if value != usual:
                shown.append(f"{name}={value}")
        return ", ".join(shown)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


def _check_arguments(
    in_channels: int, out_channels: int, stride: tuple[int, ...], padding: tuple[int, ...] | str, groups: int, padding_mode: str
) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
        if channels % groups:
            raise ValueError(f"{name} must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _PADDING_MODES:
        raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'")


def _border(padding: tuple[int, ...] | str, kernel_size: tuple[int, ...], dilation: tuple[int, ...]) -> list[int]:
    """The padding as `F.pad` takes it: the last dimension first, both sides."""
    if isinstance(padding, str):
        if padding == "valid":
            return [0, 0] * len(kernel_size)
        totals = [d * (k - 1) for d, k in zip(dilation, kernel_size, strict=True)]
        return [v for total in reversed(totals) for v in (total // 2, total - total // 2)]
    return [p for p in reversed(padding) for _ in range(2)]


class _Plain(_ConvNd):
    _n = 0

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1, padding: Ints | str = 0, dilation: Ints = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: OptionalDevice = None, dtype: OptionalDType = None,
    ) -> None:  # fmt: skip
        n = self._n
        super().__init__(
            in_channels, out_channels, ntuple(kernel_size, n), ntuple(stride, n),
            padding if isinstance(padding, str) else ntuple(padding, n), ntuple(dilation, n), False, (0,) * n, groups, bias,
            padding_mode, device=device, dtype=dtype,
        )  # fmt: skip

    def _pad(self, input: Tensor) -> Tensor:
        return F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)


class Conv1d(_Plain):
    """Convolution over signals of shape (N, C, L)."""

    _n = 1

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            return F.conv1d(self._pad(input), weight, bias, self.stride, (0,), self.dilation, self.groups)
        return F.conv1d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv2d(_Plain):
    """Convolution over images of shape (N, C, H, W)."""

    _n = 2

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            return F.conv2d(self._pad(input), weight, bias, self.stride, (0, 0), self.dilation, self.groups)
        return F.conv2d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv3d(_Plain):
    """Convolution over volumes of shape (N, C, D, H, W)."""

    _n = 3

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            return F.conv3d(self._pad(input), weight, bias, self.stride, (0, 0, 0), self.dilation, self.groups)
        return F.conv3d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class _ConvTransposeNd(_ConvNd):
    _n = 0

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0,
        groups: int = 1, bias: bool = True, dilation: Ints = 1, padding_mode: str = "zeros", device: OptionalDevice = None, dtype: OptionalDType = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        n = self._n
        super().__init__(
            in_channels, out_channels, ntuple(kernel_size, n), ntuple(stride, n), ntuple(padding, n), ntuple(dilation, n), True,
            ntuple(output_padding, n), groups, bias, padding_mode, device=device, dtype=dtype,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: list[int] | None) -> tuple[int, ...]:
        """The output padding that gives the wanted size."""
        if output_size is None:
            return tuple(self.output_padding)
        n = self._n
        whole = n + 2 if input.dim() == n + 2 else n + 1  # without a batch, channels alone come before the spatial dimensions
        if len(output_size) == whole:
            output_size = output_size[-n:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {whole} elements (got {len(output_size)})"
            )
        sizes = input.shape[-n:]
        least = [
            (sizes[d] - 1) * self.stride[d] - 2 * self.padding[d] + self.dilation[d] * (self.kernel_size[d] - 1) + 1
            for d in range(n)
        ]
        most = [low + self.stride[d] - 1 for d, low in enumerate(least)]
        if any(not low <= size <= high for size, low, high in zip(output_size, least, most, strict=True)):
            raise ValueError(
                f"requested an output size of {list(output_size)}, but valid sizes range from {least} to {most} "
                f"(for an input of {input.size()[2:]})"
            )
        return tuple(size - low for size, low in zip(output_size, least, strict=True))


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over signals of shape (N, C, L)."""

    _n = 1

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        return F.conv_transpose1d(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution over images of shape (N, C, H, W)."""

    _n = 2

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        return F.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over volumes of shape (N, C, D, H, W)."""

    _n = 3

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        return F.conv_transpose3d(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)
