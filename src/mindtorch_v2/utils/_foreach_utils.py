"""torch.utils._foreach_utils: what optimizers of others ask before they take many tensors at once."""

from __future__ import annotations

from collections.abc import Sequence

from .._device import device as _device
from .._tensor import Tensor
from ..optim.steps import group_by_device_and_dtype as _group_tensors_by_device_and_dtype

__all__ = [
    "_device_has_foreach_support",
    "_get_foreach_kernels_supported_devices",
    "_get_fused_kernels_supported_devices",
    "_group_tensors_by_device_and_dtype",
    "_has_foreach_support",
]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Types of devices on which optimizers take lists of tensors unless they are told not to."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Types of devices that have steps of optimizers as one operator."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _device_has_foreach_support(device: _device) -> bool:
    """Whether operators over lists run on a device at all."""
    return device.type in ("cpu", *_get_foreach_kernels_supported_devices())


def _has_foreach_support(tensors: Sequence[Tensor | None], device: _device) -> bool:
    """Whether they run on it for these tensors."""
    return _device_has_foreach_support(device) and all(t is None or type(t) is Tensor for t in tensors)
