"""Code that keeps the tracer of Python 3.11 quiet while it runs: the same code behind a few instructions that make a guard.

    guard = Quiet() if getprofile() is tracer or regained() else None       reports end
    ...                                                                     the code as it is
                                                                            reports begin: the guard dies with the frame

The guard is the lowest object on the frame's stack. Python takes it from there when the frame ends, by a return and by an exception, whose traceback
keeps the frame and its variables, but not its stack. To be deleted with `python311`.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from ...._dispatch.quiet import Tracer

__all__ = ["SUSPENDABLE", "Quieter", "is_quiet"]

SUSPENDABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_WORD = 2  # bytes of an instruction
_NO_COLUMN, _LONGEST = 13, 8  # form of an entry of the table of lines, and how many instructions it can stand for

_known: dict[int, CodeType] = {}  # quiet codes by their addresses, which mean no other while they are here


def is_quiet(code: CodeType) -> bool:
    """Whether this code has a guard, or is called where another has one."""
    return id(code) in _known


class Quieter:
    """Makes codes that keep one tracer quiet. `regained` is called where the tracer is not there, and says whether it is there again."""

    def __init__(self, tracer: Tracer, regained: Callable[[], bool]) -> None:
        class Quiet:
            """While one lives, its thread's calls are not reported. Switching is done by built-in functions alone: nothing of it is seen."""

            __slots__ = ()
            __init__: Any = functools.partial(sys.setprofile, None)
            __del__: Any = functools.partial(sys.setprofile, tracer)

        self.guard_type: type[Any] = Quiet
        self._constants: tuple[Any, ...] = (functools.partial(sys.getprofile), tracer, regained, Quiet, None)
        self._made: dict[int, tuple[CodeType, CodeType]] = {}  # by the address of the code: it, and its quiet form

    def __call__(self, code: CodeType) -> CodeType:
        """The quiet form of a code, itself if it is quiet already."""
        made = self._made.get(id(code))
        if made is None:
            if is_quiet(code):
                return code
            made = self._made[id(code)] = (code, self._behind_guard(code))
            _known[id(made[1])] = made[1]
        return made[1]

    def _behind_guard(self, code: CodeType) -> CodeType:
        prefix = _prefix(len(code.co_consts))
        count = len(prefix) // _WORD
        return code.replace(
            co_code=prefix + code.co_code,
            co_consts=code.co_consts + self._constants,
            co_stacksize=code.co_stacksize + 2,
            co_linetable=_lines_of_prefix(count) + code.co_linetable,
            co_exceptiontable=b"".join(_moved_handlers(code, count)),
        )


@functools.cache
def _prefix(first: int) -> bytes:
    """The instructions that leave a guard or None on the stack, for constants that begin with this number."""
    getprofile, tracer, regained, guard_type, none = range(first, first + 5)
    make = _call(guard_type)
    give_up = _load(none) + _code("JUMP_FORWARD", len(make) // _WORD)
    again = _call(regained)
    again += _code("POP_JUMP_FORWARD_IF_TRUE", len(give_up) // _WORD)
    found = _call(getprofile) + _load(tracer) + _code("IS_OP", 0)
    found += _code("POP_JUMP_FORWARD_IF_TRUE", len(again + give_up) // _WORD)
    return found + again + give_up + make


def _code(name: str, argument: int) -> bytes:
    caches = dis._inline_cache_entries[dis.opmap[name]]  # type: ignore[attr-defined]
    return bytes([dis.opmap[name], argument]) + bytes(_WORD * caches)


def _load(constant: int) -> bytes:
    wide = _code("EXTENDED_ARG", constant >> 8) if constant > 0xFF else b""
    return wide + _code("LOAD_CONST", constant & 0xFF)


def _call(constant: int) -> bytes:
    return _code("PUSH_NULL", 0) + _load(constant) + _code("PRECALL", 0) + _code("CALL", 0)


@functools.cache
def _lines_of_prefix(count: int) -> bytes:
    """Entries of the table of lines that put as many instructions into the first line."""
    lengths = [min(_LONGEST, count - done) for done in range(0, count, _LONGEST)]
    return b"".join([bytes([0x80 | _NO_COLUMN << 3 | length - 1, 0]) for length in lengths])


def _moved_handlers(code: CodeType, count: int) -> Iterator[bytes]:
    """The table of exceptions for code that is as many instructions further on, with one object more on the stack."""
    for start, end, target, depth, lasti in dis._parse_exception_table(code):  # type: ignore[attr-defined]
        start, length, target = start // _WORD + count, (end - start) // _WORD, target // _WORD + count
        yield _number(start, first=0x80) + _number(length) + _number(target) + _number(depth + 1 << 1 | lasti)


def _number(value: int, first: int = 0) -> bytes:
    """A number in the table of exceptions: six bits a byte, the highest first, with a sign that others follow."""
    digits = [value & 0x3F]
    while value := value >> 6:
        digits.append(value & 0x3F | 0x40)
    digits[-1] |= first
    return bytes(reversed(digits))
