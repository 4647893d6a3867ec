"""What is shown, as NumPy arrays: numbers, images in one arrangement, films as one picture after the other."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _dtype
from ..._tensor import Tensor

__all__ = ["as_array", "as_pixels", "film", "grid", "optional", "rendered", "to_hwc"]

Array = NDArray[Any]


def optional(package: str, module: str, used_by: str) -> Any:
    """A module of a package that only some methods need."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{used_by} needs the package {package}; install it with pip") from error


def as_array(x: Any) -> Array:
    """A tensor, array or number as an array of at least one dimension, unless it is a tensor or array without."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, Tensor):
        x = x.to(_dtype.float16) if x.dtype is _dtype.bfloat16 else x
        return x.detach().cpu().numpy()
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def as_pixels(array: Array) -> Array:
    """Bytes: those that are given, or numbers from 0 to 1 as 0 to 255."""
    factor = 1 if array.dtype == np.uint8 else 255
    pixels: Array = (array.astype(np.float32) * factor).clip(0, 255).astype(np.uint8)
    return pixels


def to_hwc(array: Array, dataformats: str) -> Array:
    """An image, or a grid of images, with the dimensions height, width and three or four channels."""
    letters = dataformats.upper()
    if len(set(dataformats)) != len(dataformats):
        raise AssertionError(f"You can not use the same dimension shorthand twice. input_format: {dataformats}")
    if array.ndim != len(letters):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {array.shape}, input_format: {dataformats}"
        )
    if len(letters) == 4:
        return grid(array.transpose([letters.index(c) for c in "NCHW"])).transpose(1, 2, 0)
    if len(letters) == 3:
        image = array.transpose([letters.index(c) for c in "HWC"])
        return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
    return np.stack([array.transpose([letters.index(c) for c in "HW"])] * 3, axis=2)


def grid(images: Array, ncols: int = 8) -> Array:
    """Images side by side, in rows: N, C, H, W to 3, H, W."""
    if images.shape[1] == 1:
        images = np.repeat(images, 3, axis=1)
    if images.ndim != 4 or images.shape[1] != 3:
        raise AssertionError("Input should be a 4D numpy array with 3 channels")
    count, _, height, width = images.shape
    ncols = min(count, ncols)
    nrows = math.ceil(count / ncols)
    cells = np.zeros((nrows * ncols, 3, height, width), images.dtype)
    cells[:count] = images
    return cells.reshape(nrows, ncols, 3, height, width).transpose(2, 0, 3, 1, 4).reshape(3, nrows * height, ncols * width)


def film(videos: Array) -> Array:
    """Videos side by side in as many rows as columns or half of it, frame after frame: B, T, C, H, W to T, H, W, C."""
    count, frames, channels, height, width = videos.shape
    if videos.dtype == np.uint8:
        videos = videos.astype(np.float32) / 255.0
    if count & (count - 1):
        padding = np.zeros((2 ** count.bit_length() - count, *videos.shape[1:]))
        videos = np.concatenate([videos, padding])
    rows = 2 ** ((count.bit_length() - 1) // 2)
    columns = len(videos) // rows
    cells = videos.reshape(rows, columns, frames, channels, height, width).transpose(2, 0, 4, 1, 5, 3)
    return cells.reshape(frames, rows * height, columns * width, channels)


def rendered(figure: Any, *, close: bool) -> Array:
    """A figure of matplotlib's as an image: 3, H, W."""
    agg = optional("matplotlib", "matplotlib.backends.backend_agg", "add_figure")
    canvas = agg.FigureCanvasAgg(figure)
    canvas.draw()
    width, height = canvas.get_width_height()
    pixels = np.frombuffer(canvas.buffer_rgba(), dtype=np.uint8).reshape(height, width, 4)
    if close:
        optional("matplotlib", "matplotlib.pyplot", "add_figure").close(figure)
    return np.moveaxis(pixels[:, :, :3], 2, 0)
