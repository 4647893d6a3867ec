"""Making tensors: `tensor`, `zeros`, `arange`, `from_numpy`, ….

A factory is an operator like any other; the functions here only sort out sizes, dtypes and devices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _device, _dtype
from ._dispatch.tls import state
from ._tensor import Tensor, wrap

__all__ = ["default_device", "from_numpy", "legacy_tensor", "tensor"]


def default_device() -> _device.device:
    """The device of new tensors when none is given."""
    return state.default_devices[-1] if state.default_devices else _device.cpu


def from_numpy(array: Any) -> Tensor:
    """A tensor over a NumPy array's memory."""
    return wrap(array, _dtype.from_numpy_dtype(array.dtype))


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of the data."""
    array = np.array(data)
    if dtype is None and array.dtype == np.float64 and not isinstance(data, np.ndarray | np.generic):
        array = array.astype(_dtype.get_default_dtype().np)
    t = wrap(array if dtype is None else array.astype(dtype.np))
    t.requires_grad = requires_grad
    return t


def legacy_tensor(cls: type, *args: Any, **kwargs: Any) -> Tensor:
    raise NotImplementedError
