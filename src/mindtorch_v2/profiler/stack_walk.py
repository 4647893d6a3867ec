"""Python stacks: taken as code objects and offsets, each distinct one once, and made readable when the recording is over."""

from __future__ import annotations

import os
from types import CodeType, FrameType

from .session import Frame

__all__ = ["forget", "is_internal", "resolve", "stack_number", "taken"]

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# of this package, what a program calls by name rather than through an operator: users want to see it
SHOWN = tuple(os.path.join(PACKAGE, part) for part in ("nn", "optim", "utils" + os.sep + "data"))

taken: list[list[tuple[CodeType, int]]] = []


# Addresses of the codes, followed by the offsets, innermost first → number. By address, because hashing a code object hashes its
# constants; the codes are kept in `taken`, so that an address means one code.
_numbers: dict[tuple[int, ...], int] = {}


def forget() -> None:
    """Begin a recording without the stacks of the last."""
    _numbers.clear()
    taken.clear()


def stack_number(frame: FrameType | None) -> int:
    """The number of the stack from this frame outwards."""
    # no calls of built-in functions but through `map`: under `sys.setprofile` each would cost half a microsecond
    codes: list[CodeType] = []
    offsets: list[int] = []
    while frame is not None:
        codes += (frame.f_code,)
        offsets += (frame.f_lasti,)
        frame = frame.f_back
    stack = (*map(id, codes), *offsets)
    try:
        return _numbers[stack]
    except KeyError:
        taken.append(list(zip(codes, offsets, strict=True)))
        number = _numbers[stack] = len(taken) - 1
        return number


_internal: dict[str, bool] = {}


def is_internal(code: CodeType) -> bool:
    """Whether code belongs to the dispatcher, the autograd engine, the profiler or what is generated for operators."""
    file = code.co_filename
    known = _internal.get(file)
    if known is None:
        # "<mindtorch_v2 add>" is an operator's function; "<string>" and "<frozen …>" are dataclasses, imports and the like
        generated = file.startswith("<") and not file.startswith(("<stdin>", "<ipython"))
        known = _internal[file] = generated or (file.startswith(PACKAGE) and not file.startswith(SHOWN))
    return known


def resolve(frames: list[tuple[CodeType, int]]) -> tuple[Frame, ...]:
    """The user's frames of a stack, innermost first."""
    return tuple([Frame(c.co_filename, _line(c, offset), c.co_name) for c, offset in frames if not is_internal(c)])


def _line(code: CodeType, offset: int) -> int:
    """The line that an instruction belongs to."""
    if offset >= 0:
        for start, end, line in code.co_lines():
            if start <= offset < end and line is not None:
                return line
    return code.co_firstlineno
