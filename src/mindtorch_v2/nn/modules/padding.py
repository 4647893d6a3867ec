"""Padding layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._tensor import Tensor
from .. import functional as F
from .module import Module
from .utils import ntuple

if TYPE_CHECKING:
    from ..._types import Ints

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _PadNd(Module):
    _n = 0
    _mode = ""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = ntuple(padding, 2 * self._n)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (self._n + 1, self._n + 2):
            raise ValueError(f"expected {self._n + 1}D or {self._n + 2}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pads signals by wrapping around."""

    _n = 1


class CircularPad2d(_CircularPadNd):
    """Pads images by wrapping around."""

    _n = 2


class CircularPad3d(_CircularPadNd):
    """Pads volumes by wrapping around."""

    _n = 3


class _ConstantPadNd(_PadNd):
    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, value=self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads signals with a value."""

    _n = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads images with a value."""

    _n = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads volumes with a value."""

    _n = 3


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pads signals by mirroring them."""

    _n = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads images by mirroring them."""

    _n = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads volumes by mirroring them."""

    _n = 3


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pads signals by repeating their border."""

    _n = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads images by repeating their border."""

    _n = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads volumes by repeating their border."""

    _n = 3


class ZeroPad1d(ConstantPad1d):
    """Pads signals with zeros."""

    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pads images with zeros."""

    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads volumes with zeros."""

    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"
