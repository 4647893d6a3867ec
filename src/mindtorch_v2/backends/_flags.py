"""Switches of a module, set for the length of a context."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["checked_precision", "switched"]


@contextlib.contextmanager
def switched(module: dict[str, Any], **values: Any) -> Iterator[None]:
    """Set these names of a module, and put back what they were."""
    before = {name: module[name] for name in values}
    module.update(values)
    try:
        yield
    finally:
        module.update(before)


def checked_precision(value: str, backend: str, *, without: str = "") -> str:
    """The precision of float32 computations that a switch may be set to."""
    if value not in ("none", "ieee", "tf32", "bf16"):
        raise RuntimeError(f"Unknown precision: {value}")
    if value == without:
        raise RuntimeError(f"backend '{backend}' does not support precision '{value}'")
    return value
