"""torch.backends.nnpack: a library for convolutions, which is not there."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ._flags import switched

__all__ = ["flags", "is_available", "set_flags"]

_enabled = True


def is_available() -> bool:
    """False."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Set the switch; returns what it was."""
    before = globals()["_enabled"]
    globals()["_enabled"] = _enabled
    return (before,)


def flags(enabled: bool = False) -> AbstractContextManager[None]:
    """A context with the switch set."""
    return switched(globals(), _enabled=enabled)
