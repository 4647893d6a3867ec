"""Weights of convolutions in another memory format."""

from __future__ import annotations

from ..._types import OptionalMemoryFormat
from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from ..parameter import set_tensor_data

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Module, memory_format: OptionalMemoryFormat, kinds: tuple[type[Module], ...]) -> Module:
    for found in module.modules():
        if isinstance(found, kinds):
            set_tensor_data(found.weight, found.weight.detach().clone(memory_format=memory_format))
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: OptionalMemoryFormat) -> Module:
    """Lay the weights of 2-dimensional convolutions out in this format."""
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Module, memory_format: OptionalMemoryFormat) -> Module:
    """Lay the weights of 3-dimensional convolutions out in this format."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
