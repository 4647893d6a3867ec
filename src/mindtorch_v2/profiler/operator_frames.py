"""Which operators run on a stack: their functions are generated, and named after them."""

from __future__ import annotations

import re
from types import CodeType

from . import stack_walk
from .history import Stack
from .session import Frame

__all__ = ["innermost_operator", "resolve"]

_OPERATOR = re.compile(r"<mindtorch_v2 (\S+::\S+) \d+>")


def innermost_operator(stack: Stack) -> str:
    """The operator that ran; empty outside of any."""
    return next(filter(None, map(_operator, stack[0])), "")


def resolve(stack: Stack, *, with_operators: bool = False) -> list[Frame]:
    """The user's frames, innermost first, and if asked those of operators."""
    found = []
    for code, offset in zip(*stack, strict=True):
        if not stack_walk.is_internal(code):
            found.append(stack_walk.frame_at(code, offset))
        elif with_operators and (name := _operator(code)):
            found.append(Frame("<operator>", 0, name))
    return found


def _operator(code: CodeType) -> str:
    match = _OPERATOR.fullmatch(code.co_filename)
    return "" if match is None else match[1]
