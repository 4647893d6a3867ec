"""Arguments that are one number or one for each dimension."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["ntuple", "pair", "single", "triple"]


def ntuple(x: Any, n: int) -> tuple[Any, ...]:
    """The elements of x, or x repeated n times."""
    return tuple(x) if isinstance(x, Iterable) else (x,) * n


def single(x: Any) -> tuple[Any, ...]:
    return ntuple(x, 1)


def pair(x: Any) -> tuple[Any, ...]:
    return ntuple(x, 2)


def triple(x: Any) -> tuple[Any, ...]:
    return ntuple(x, 3)
