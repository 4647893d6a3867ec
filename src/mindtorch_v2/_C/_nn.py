"""torch._C._nn: operators of neural networks, by the names that graphs of torch.fx show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..nn import functional

__all__: list[str] = []


def __getattr__(name: str) -> Callable[..., Any]:
    if name not in functional._OPERATORS:
        raise AttributeError(f"module 'torch._C._nn' has no attribute {name!r}")
    function: Callable[..., Any] = getattr(functional, name)
    return function
