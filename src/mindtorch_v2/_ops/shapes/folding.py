"""Rearrangements of images: sliding blocks as columns and back, channels as pixels and back, shuffled channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._backends.cpu.nn.convolution import conv_output_size
from ..machinery.declare import op

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


# --- sliding blocks -------------------------------------------------------------------------------------------------


def _pair(value: Sequence[int], name: str) -> tuple[int, int]:
    value = (value, value) if isinstance(value, int) else tuple(value)
    if len(value) == 1:
        value = value * 2
    if len(value) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return value


def _check_block(kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> None:
    rules = (
        ("kernel size should be greater than zero", "kernel", kernel, 1),
        ("dilation should be greater than zero", "dilation", dilation, 1),
        ("padding should be non-negative", "pad", padding, 0),
        ("stride should be greater than zero", "stride", stride, 1),
    )
    for text, name, values, least in rules:
        if min(values) < least:
            raise RuntimeError(f"{text}, but got {name}_height: {values[0]} {name}_width: {values[1]}")


def _told(values: Sizes) -> str:
    return f"({', '.join(map(str, values))})"


def _im2col(
    self: Array, kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> Array:
    kernel, dilation = _pair(kernel_size, "kernel_size"), _pair(dilation, "dilation")
    padding, stride = _pair(padding, "padding"), _pair(stride, "stride")
    _check_block(kernel, dilation, padding, stride)
    if self.ndim < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-self.ndim}, {self.ndim - 1}], but got {self.ndim})"
        )
    if self.ndim not in (3, 4) or 0 in self.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(self.shape)}"
        )
    out = conv_output_size(self.shape[-2:], kernel, stride, padding, dilation)
    if min(out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {_told(self.shape[-2:])}, kernel_size={_told(kernel)}, dilation={_told(dilation)}, "
            f"padding={_told(padding)}, calculated shape of the array of sliding blocks as {_told(out)}, "
            "but its components must be at least one."
        )
    lead = self.shape[:-2]
    padded = self
    if any(padding):
        padded = np.zeros((*lead, *(n + 2 * p for n, p in zip(self.shape[-2:], padding, strict=True))), self.dtype)
        padded[..., padding[0] : padding[0] + self.shape[-2], padding[1] : padding[1] + self.shape[-1]] = self
    columns = np.lib.stride_tricks.as_strided(padded, (*lead, *kernel, *out), _block_strides(padded, dilation, stride))
    return columns.reshape(*lead[:-1], lead[-1] * kernel[0] * kernel[1], out[0] * out[1])


def _block_strides(x: Array, dilation: Sizes, stride: Sizes) -> Sizes:
    rows, cols = x.strides[-2:]
    return (*x.strides[:-2], rows * dilation[0], cols * dilation[1], rows * stride[0], cols * stride[1])


def _col2im(
    self: Array,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Array:
    size, kernel = _pair(output_size, "output_size"), _pair(kernel_size, "kernel_size")
    dilation, padding, stride = _pair(dilation, "dilation"), _pair(padding, "padding"), _pair(stride, "stride")
    _check_block(kernel, dilation, padding, stride)
    _check_columns(self.shape, size, kernel, dilation, padding, stride)
    lead = self.shape[:-2]
    channels = self.shape[-2] // (kernel[0] * kernel[1])
    out = conv_output_size(size, kernel, stride, padding, dilation)
    blocks = self.reshape(*lead, channels, *kernel, *out)
    half = self.dtype.itemsize == 2
    total = np.zeros((*lead, channels, size[0] + 2 * padding[0], size[1] + 2 * padding[1]), np.float32 if half else self.dtype)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, side = i * dilation[0], j * dilation[1]
            rows = slice(top, top + (out[0] - 1) * stride[0] + 1, stride[0])
            total[..., rows, side : side + (out[1] - 1) * stride[1] + 1 : stride[1]] += blocks[..., i, j, :, :]
    inside = total[..., padding[0] : padding[0] + size[0], padding[1] : padding[1] + size[1]]
    return np.ascontiguousarray(inside.astype(self.dtype, copy=False))


def _check_columns(shape: Sizes, size: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> None:
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, "
            f"but got: {list(shape)}"
        )
    area = kernel[0] * kernel[1]
    at = len(shape) - 2
    if shape[-2] % area:
        raise RuntimeError(
            f"Expected size of input's dimension {at} to be divisible by the product of kernel_size, but got "
            f"input.size({at})={shape[-2]} and kernel_size={_told(kernel)}."
        )
    blocks = conv_output_size(size, kernel, stride, padding, dilation)
    given = (
        f"Given output_size={_told(size)}, kernel_size={_told(kernel)}, dilation={_told(dilation)}, padding={_told(padding)}, "
        f"stride={_told(stride)}"
    )
    if shape[-1] != blocks[0] * blocks[1]:
        raise RuntimeError(
            f"{given}, expected size of input's dimension {at + 1} to match the calculated number of sliding blocks "
            f"{blocks[0]} * {blocks[1]} = {blocks[0] * blocks[1]}, but got input.size({at + 1})={shape[-1]}."
        )
    if min(blocks) < 1:
        raise RuntimeError(
            f"{given}, calculated shape of the array of sliding blocks as {_told(blocks)}, which is too small (non-positive)"
        )


im2col = op(
    "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    cpu=_im2col,
    grad={
        "self": lambda grad, self_shape, kernel_size, dilation, padding, stride: col2im(
            grad, self_shape[-2:], kernel_size, dilation, padding, stride
        )
    },
    variants="",
    refuses=("im2col_out_cpu", "i"),
)
col2im = op(
    "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    cpu=_col2im,
    grad={"self": lambda grad, kernel_size, dilation, padding, stride: im2col(grad, kernel_size, dilation, padding, stride)},
    variants="",
    refuses=("col2im_out_cpu", "i"),
)


# --- pixels and channels --------------------------------------------------------------------------------------------


def _pixel_shuffle(self: Array, upscale_factor: int) -> Array:
    r = upscale_factor
    if self.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {self.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, c, h, w = self.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {r * r}"
        )
    n = len(lead)
    parts = self.reshape(*lead, c // (r * r), r, r, h, w)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return np.ascontiguousarray(parts.transpose(order)).reshape(*lead, c // (r * r), h * r, w * r)


def _pixel_unshuffle(self: Array, downscale_factor: int) -> Array:
    r = downscale_factor
    if self.ndim < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {self.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = self.shape
    for name, extent, at in (("height", h, -2), ("width", w, -1)):
        if extent % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({at})={extent} "
                f"is not divisible by {r}"
            )
    n = len(lead)
    parts = self.reshape(*lead, c, h // r, r, w // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return np.ascontiguousarray(parts.transpose(order)).reshape(*lead, c * r * r, h // r, w // r)


pixel_shuffle = op(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    cpu=_pixel_shuffle,
    format_of=("self",),
    grad={"self": lambda grad, upscale_factor: pixel_unshuffle(grad, upscale_factor)},
    variants="function",
)
pixel_unshuffle = op(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    cpu=_pixel_unshuffle,
    format_of=("self",),
    grad={"self": lambda grad, downscale_factor: pixel_shuffle(grad, downscale_factor)},
    variants="function",
)


def _shuffle_channels(self: Array, groups: int) -> Array:
    if self.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(self.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    n, c = self.shape[:2]
    if c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    return np.ascontiguousarray(self.reshape(n, groups, c // groups, *self.shape[2:]).swapaxes(1, 2)).reshape(self.shape)


native_channel_shuffle = op(
    "native_channel_shuffle(Tensor self, SymInt groups) -> Tensor",
    cpu=_shuffle_channels,
    format_of=("self",),
    variants="function",
)
channel_shuffle = op(
    "channel_shuffle(Tensor self, SymInt groups) -> Tensor",
    composite=lambda self, groups: native_channel_shuffle(self, groups),
    grad={"self": lambda grad, groups: channel_shuffle(grad, grad._array.shape[1] // groups)},
    variants="function",
)
