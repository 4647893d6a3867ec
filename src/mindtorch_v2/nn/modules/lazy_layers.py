"""Linear maps, convolutions and normalisations that learn their number of inputs from the first one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._dtype import int64
from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor
from ..._types import OptionalDevice, OptionalDType
from ..parameter import UninitializedBuffer, UninitializedParameter
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _BatchNorm, _NormBase
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, _InstanceNorm
from .lazy import LazyModuleMixin
from .linear import Linear

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d",
    "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
]  # fmt: skip


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` whose `in_features` is the size of the first input's last dimension."""

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: OptionalDevice = None, dtype: OptionalDType = None) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new weights, once there are some."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the number of features from an input."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:  # the weight was loaded
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to in_features from self.weight: "
                    f"{self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]


# --- convolutions -------------------------------------------------------------------------------------------------------


class _LazyConv(LazyModuleMixin):
    """What lazy convolutions share; they go before a class of convolutions."""

    _n: int
    in_channels: int
    out_channels: int
    groups: int
    kernel_size: tuple[int, ...]
    transposed: bool
    weight: Any
    bias: Any

    def _forget_weights(self, out_channels: int, bias: bool, device: OptionalDevice, dtype: OptionalDType) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new weights, once there are some."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take the number of channels from an input."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        if self.transposed:
            channels = self.in_channels, self.out_channels // self.groups
        else:
            channels = self.out_channels, self.in_channels // self.groups
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        n = self._n
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, but got input of size: "
                f"{input.shape}"
            )
        return int(input.shape[1 if input.dim() == n + 2 else 0])


class _LazyPlain(_LazyConv):
    def __init__(
        self, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = 1, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", device: OptionalDevice = None, dtype: OptionalDType = None,
    ) -> None:  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device=device, dtype=dtype)
        self._forget_weights(out_channels, bias, device, dtype)


class _LazyTransposed(_LazyConv):
    def __init__(
        self, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1,
        bias: bool = True, dilation: int | Sequence[int] = 1, padding_mode: str = "zeros", device: OptionalDevice = None, dtype: OptionalDType = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device=device, dtype=dtype
        )
        self._forget_weights(out_channels, bias, device, dtype)


class LazyConv1d(_LazyPlain, Conv1d):
    """A `Conv1d` that takes its number of input channels from the first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyPlain, Conv2d):
    """A `Conv2d` that takes its number of input channels from the first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyPlain, Conv3d):
    """A `Conv3d` that takes its number of input channels from the first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):
    """A `ConvTranspose1d` that takes its number of input channels from the first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):
    """A `ConvTranspose2d` that takes its number of input channels from the first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):
    """A `ConvTranspose3d` that takes its number of input channels from the first input."""

    cls_to_become = ConvTranspose3d


# --- normalisations -----------------------------------------------------------------------------------------------------


class _LazyNorm(LazyModuleMixin, _NormBase):
    """What lazy normalisations share; they go before a class of normalisations."""

    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        device: OptionalDevice = None, dtype: OptionalDType = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device=device, dtype=dtype, bias=False)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = aten.zeros((), device=device, dtype=int64)

    def reset_parameters(self) -> None:
        """Start again as the identity, once there are parameters."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the number of features from an input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = int(input.shape[1])
        for name in ("weight", "bias", "running_mean", "running_var"):
            value = getattr(self, name)
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, _BatchNorm):
    """A `BatchNorm1d` that takes its number of features from the first input."""

    cls_to_become = BatchNorm1d
    _dims = BatchNorm1d._dims


class LazyBatchNorm2d(_LazyNorm, _BatchNorm):
    """A `BatchNorm2d` that takes its number of features from the first input."""

    cls_to_become = BatchNorm2d
    _dims = BatchNorm2d._dims


class LazyBatchNorm3d(_LazyNorm, _BatchNorm):
    """A `BatchNorm3d` that takes its number of features from the first input."""

    cls_to_become = BatchNorm3d
    _dims = BatchNorm3d._dims


class LazyInstanceNorm1d(_LazyNorm, _InstanceNorm):
    """An `InstanceNorm1d` that takes its number of features from the first input."""

    cls_to_become = InstanceNorm1d
    _n = 1


class LazyInstanceNorm2d(_LazyNorm, _InstanceNorm):
    """An `InstanceNorm2d` that takes its number of features from the first input."""

    cls_to_become = InstanceNorm2d
    _n = 2


class LazyInstanceNorm3d(_LazyNorm, _InstanceNorm):
    """An `InstanceNorm3d` that takes its number of features from the first input."""

    cls_to_become = InstanceNorm3d
    _n = 3
