"""Calls of the program from within backward.

Formulas of derivatives are written in torch's functions here and in C++ there: subclasses are not asked about what they call. Hooks and
functions of the program are code like any other: subclasses override functions in it as they did where backward was called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .quiet import call_traced
from .tls import state

__all__ = ["call_program"]


def call_program(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call code of the program; in backward, with the overrides that its caller had."""
    if not state.backward_depth:
        return call_traced(function, *arguments)
    off, state.subclass_override_off = state.subclass_override_off, state.program_override_off
    try:
        return call_traced(function, *arguments)
    finally:
        state.subclass_override_off = off
