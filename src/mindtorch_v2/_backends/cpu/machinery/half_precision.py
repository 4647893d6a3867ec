"""Kernels of 16-bit floats: torch computes these in float32 and rounds once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .dtype_rules import unimplemented

_HALF = "eE"  # type characters of float16 and of ml_dtypes' bfloat16


def widened(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that computes 16-bit floats in float32."""

    @functools.wraps(kernel)
    def wide(*args: Any, **options: Any) -> Any:
        dtype = args[0].dtype
        if dtype.char not in _HALF:
            return kernel(*args, **options)
        wider = [a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype.char in _HALF else a for a in args]
        made = kernel(*wider, **options)
        if isinstance(made, tuple):
            return tuple(m.astype(dtype) if m.dtype.char == "f" else m for m in made)
        return made.astype(dtype)

    return wide


def floating(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A kernel for floating inputs only; 16-bit ones are computed in float32."""

    def decorate(kernel: Callable[..., Any]) -> Callable[..., Any]:
        inner = widened(kernel)

        @functools.wraps(kernel)
        def checked(*args: Any) -> Any:
            char = args[0].dtype.char
            if char not in "fd":
                if char not in _HALF:
                    raise unimplemented(name, args[0])
                return inner(*args)
            return kernel(*args)

        return checked

    return decorate
