"""torch.backends.opt_einsum: a package that orders products. `torch.einsum` takes them from left to right here, as torch does without it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ._flags import switched

__all__ = ["enabled", "flags", "get_opt_einsum", "is_available", "set_flags", "strategy"]

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """False: it is not used, installed or not."""
    return False


def get_opt_einsum() -> Any:
    """None."""
    return None


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple[bool, str | None]:
    """Set the switches; returns what they were. It cannot be enabled."""
    global enabled, strategy
    if _enabled:
        raise ValueError("opt_einsum is not available, so torch.backends.opt_einsum.enabled cannot be set to True")
    before = (enabled, strategy)
    enabled, strategy = False, _strategy if _strategy is not None else strategy
    return before


def flags(enabled: bool | None = None, strategy: str | None = None) -> AbstractContextManager[None]:
    """A context with other switches."""
    return switched(globals(), enabled=bool(enabled), strategy=strategy)
