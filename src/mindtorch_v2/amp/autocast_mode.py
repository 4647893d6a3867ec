"""torch.amp.autocast_mode: regions of a program in which operators compute in lower precision, chosen one by one."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .. import _dtype
from .._tensor import Tensor
from .autocast_state import (
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_DTYPES = (_dtype.bfloat16, _dtype.float16)


class autocast:  # noqa: N801 - torch's spelling
    """A context, or decorator, in which products are computed in lower precision, and what loses by that in float32.

    On the CPU the lower precision is bfloat16, unless `dtype` says float16. With `cache_enabled`, weights are cast once in a region. For CUDA
    it is disabled with a warning, as in a PyTorch without CUDA; other devices have no tensors here that it could change.
    """

    def __init__(
        self, device_type: str, dtype: _dtype.dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        _check_device_type(device_type)
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = enabled
        reason = self._why_disabled() if enabled else ""
        if reason:
            warnings.warn(reason, stacklevel=2)
            self._enabled = False

    def _why_disabled(self) -> str:
        if self.device == "cuda":
            return "CUDA is not available or torch_xla is imported. Disabling autocast."
        if self.fast_dtype in _DTYPES:
            return ""
        name = self.device.upper()
        return (
            f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
            f"{name} Autocast only supports dtypes of {', '.join(map(str, _DTYPES))} currently."
        )

    def __enter__(self) -> autocast:
        self.prev_cache_enabled = is_autocast_cache_enabled()
        self.prev = is_autocast_enabled(self.device)
        self.prev_fastdtype = get_autocast_dtype(self.device)
        set_autocast_enabled(self.device, self._enabled)
        set_autocast_dtype(self.device, self.fast_dtype)
        autocast_increment_nesting()
        set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, *exception: object) -> None:
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        set_autocast_enabled(self.device, self.prev)
        set_autocast_dtype(self.device, self.prev_fastdtype)
        set_autocast_cache_enabled(self.prev_cache_enabled)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}; "
                "as a context manager it is written `with torch.autocast(device_type):`"
            )
        return autocast_decorator(self, func)


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called in a region of autocast."""

    @functools.wraps(func)
    def in_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return in_autocast


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: _dtype.dtype | None = None
) -> Callable[..., Any]:
    """Decorate the forward of an autograd function: its backward, decorated with `custom_bwd`, runs in the same state of autocast.

    With `cast_inputs`, inside autocast, its floating-point inputs are cast to that dtype, and it runs outside of autocast.
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        is_on = is_autocast_enabled(device_type)
        args[0]._dtype = get_autocast_dtype(device_type)
        args[0]._fwd_used_autocast = is_on and cast_inputs is None
        if not is_on or cast_inputs is None:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorate the backward of an autograd function whose forward is decorated with `custom_fwd`."""
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return backward


def _cast(value: Any, device_type: str, dtype: _dtype.dtype) -> Any:
    """A value with the floating-point tensors in it cast, but for those of float64."""
    if isinstance(value, Tensor):
        is_cast = value.is_floating_point() and value.device.type == device_type and value.dtype is not _dtype.float64
        return value.to(dtype) if is_cast else value
    if isinstance(value, str | bytes | np.ndarray):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, Iterable):
        values = (_cast(v, device_type, dtype) for v in value)
        return type(value)(values) if isinstance(value, list | tuple) else values
    return value


def _check_device_type(device_type: object) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
