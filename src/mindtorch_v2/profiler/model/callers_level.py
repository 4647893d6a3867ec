"""The stack level that makes a warning point to the program, however many functions of this package are between."""

from __future__ import annotations

import sys

__all__ = ["callers_level"]

_PACKAGE = __name__.partition(".")[0] + "."


def callers_level() -> int:
    """The `stacklevel` for a warning in the function that calls this, to point to the program."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
