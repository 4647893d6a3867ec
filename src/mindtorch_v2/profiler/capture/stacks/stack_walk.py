"""Python stacks: taken as code objects and offsets, each distinct one once, and made readable when the recording is over.

While calls are traced (see `python_tracer`), the chain of calls that led to each running frame is known, and a stack is that chain
and the offset in the frame: no other is looked at. Otherwise the frames are walked.
"""

from __future__ import annotations

import bisect
import itertools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ...model.session import Frame

__all__ = [
    "ALL_OR_NONE",
    "SHOWN_FUNCTIONS",
    "Call",
    "Chain",
    "forget",
    "frame_at",
    "internal_files",
    "is_around_threads",
    "is_internal",
    "is_librarys",
    "is_shown",
    "library_files",
    "nearest_running",
    "outermost",
    "pass_stack",
    "resolve",
    "running",
    "shown_caller",
    "stack_number",
    "taken",
]

PACKAGE = os.path.abspath(os.path.join(__file__, *[os.pardir] * 4)) + os.sep
# of this package, what a program calls by name rather than through an operator: users want to see it
SHOWN = tuple(os.path.join(PACKAGE, part) for part in ("nn", "optim", "utils" + os.sep + "data"))
# and functions that take as long as the data is large, without any operator
SHOWN_FUNCTIONS = {
    os.path.join(PACKAGE, "_creation.py"): ("tensor", "as_tensor"),
    os.path.join(PACKAGE, "_interop.py"): ("from_numpy", "numpy_of"),
    os.path.join(PACKAGE, "_printing.py"): ("tensor_text",),
}
STANDARD_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
INSTALLED = os.path.dirname(os.path.dirname(os.path.abspath(np.__file__)))
OF_KERNELS = tuple(os.path.join(INSTALLED, name, "") for name in ("numpy", "scipy", "ml_dtypes"))

taken: dict[int, list[tuple[CodeType, int]]] = {}  # the frames of each stack, innermost first
_count = itertools.count()  # never begins anew: a number means one thing, whichever thread or recording asked for it

# Addresses of codes and offsets, innermost first → number. By address, because hashing a code object hashes its
# constants; the codes are kept in `taken`, so that an address means one code.
_numbers: dict[tuple[int, ...], int] = {}


def forget() -> None:
    """Begin a recording without the stacks of the last."""
    global outermost
    _numbers.clear()
    _lines.clear()
    taken.clear()
    outermost = Chain(None, -1, None, -1)  # a thread in the middle of a call goes on with the old one


def stack_number(frame: FrameType | None) -> int:
    """The number of the stack from this frame outwards, -1 if nothing of it is shown."""
    nearest = nearest_running(frame) if ALL_OR_NONE else shown_caller(frame)
    call = running.get(nearest)
    if call is None and notice is not None and notice(frame):
        call = running.get(nearest)
    if call is not None and nearest is not None:
        return call[2].number(nearest.f_lasti)
    shown = shown_caller(frame)
    return -1 if shown is None else _walk(shown)


def nearest_running(frame: FrameType | None) -> FrameType | None:
    while frame is not None and frame not in running:
        frame = frame.f_back
    return frame


def _walk(frame: FrameType | None) -> int:
    frames: list[tuple[CodeType, int]] = []
    while frame is not None:
        frames.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    stack = tuple([part for code, offset in frames for part in (id(code), offset)])
    number = _numbers.get(stack)
    if number is None:
        number = next(_count)
        taken[number] = frames
        _numbers[stack] = number
    return number


class Chain:
    """A call of a function, by a chain of calls.

    `numbers` are those of the stacks that were asked for, by offset in the function. `callees` are the calls that it makes, by their
    offset in it and the address of the code; those that something internal makes for it, by the complement of the offset. `label` is that
    of its events.
    """

    __slots__ = ("_caller", "_code", "_offset", "callees", "label", "numbers")

    def __init__(self, caller: Chain | None, offset: int, code: CodeType | None, label: int) -> None:
        self._caller = caller
        self._offset = offset  # of the call, in the caller
        self._code = code
        self.label = label
        self.callees: dict[tuple[int, int], Chain] = {}
        self.numbers: dict[int, int] = {}

    def number(self, offset: int) -> int:
        """Return the number of the stack at an offset in the function."""
        number = self.numbers.get(offset)
        if number is None:
            number = next(_count)
            taken[number] = list(self._frames(offset))
            self.numbers[offset] = number
        return number

    def _frames(self, offset: int) -> Iterator[tuple[CodeType, int]]:
        chain: Chain | None = self
        while chain is not None and chain._code is not None:
            yield chain._code, offset
            offset, chain = chain._offset, chain._caller

    def enter(self, offset: int, code: CodeType, label: int, *, directly: bool) -> Chain:
        """The chain that grows out of this one by a call."""
        place = (offset if directly else ~offset, id(code))
        chain = self.callees.get(place)
        if chain is None:
            chain = self.callees[place] = Chain(self, offset, code, label)
        return chain


class _OfPass(Chain):
    """The calls that led to a backward pass: the operators that it calls have its stack, wherever its loop is."""

    __slots__ = ()

    def number(self, offset: int) -> int:
        return self.numbers[offset]


class _OneNumber(dict[int, int]):
    """A dict that returns the entry of -1 for every offset."""

    def __missing__(self, offset: int) -> int:
        return self[-1]


def pass_stack(frame: FrameType, thread: int) -> int:
    """The number of the stack that a backward pass was called with, whose loop runs in this frame.

    The frame is among those that run, until the loop takes it out: operators inside look no further, which saves each of them four frames (0.5 µs).
    """
    stack = stack_number(frame.f_back)
    chain = _OfPass(None, -1, None, HIDDEN)
    chain.numbers = _OneNumber({-1: stack})
    running[frame] = (thread, chain.numbers, chain, HIDDEN, 0.0, None)
    return stack


HIDDEN = -2  # in place of the label of a call that is followed and makes no event
outermost = Chain(None, -1, None, -1)
# A traced call that runs: thread, numbers of its stacks by offset, the chain of calls down to it, label, start, who is told of its end.
Call = tuple[int, dict[int, int], Chain, int, float, Any]
running: dict[FrameType | None, Call] = {}  # by frame, outermost first on each thread
notice: Callable[[FrameType | None], bool] | None = None  # has the thread of a frame traced if it ought to be; whether it was not
# Of the frames of a thread that are not internal, all are there or none, so that the nearest which is there is the caller that counts.
# `sys.setprofile` does not give that: another tool may take it at any time.
ALL_OR_NONE = sys.version_info >= (3, 12)


class _InternalFiles(dict[str, bool]):
    """File → whether it holds the dispatcher, the autograd engine, the profiler or what is generated for operators."""

    def __missing__(self, file: str) -> bool:
        # "<mindtorch_v2 add>" is an operator's function; "<string>" and "<stdin>" may be the program. `python -m` runs programs by `runpy`, and
        # so does this package's own command.
        generated = file.startswith(("<mindtorch_v2 ", "<frozen runpy>"))
        known = self[file] = generated or (file.startswith(PACKAGE) and not file.startswith(SHOWN))
        return known


internal_files = _InternalFiles()


class _LibraryFiles(dict[str, bool]):
    """File → whether it belongs to Python or to what kernels are made of."""

    def __missing__(self, file: str) -> bool:
        standard = file.startswith(STANDARD_LIBRARY) and not file.startswith(
            ("site-packages", "dist-packages"), len(STANDARD_LIBRARY)
        )
        known = self[file] = standard or file.startswith((*OF_KERNELS, "<frozen "))
        return known


library_files = _LibraryFiles()


def is_librarys(frame: FrameType) -> bool:
    """Whether a frame's code belongs to a library, or is a method that Python wrote for a class of this package."""
    file = frame.f_code.co_filename
    if file != "<string>":
        return library_files[file]
    name = frame.f_globals.get("__name__")
    return isinstance(name, str) and name.startswith((__name__.partition(".")[0] + ".", "namedtuple_"))


def is_internal(code: CodeType) -> bool:
    return internal_files[code.co_filename]


def is_shown(code: CodeType) -> bool:
    """Whether calls of this code are events."""
    return not is_internal(code) or code.co_name in SHOWN_FUNCTIONS.get(code.co_filename, ())


RUN_OF_THREAD = threading.Thread.run.__code__
_FUTURES = os.path.join(os.path.dirname(RUN_OF_THREAD.co_filename), "concurrent", "futures")
# What Python runs before and after the functions of threads, and at the end of a program to wait for them.
_AROUND_THREADS = {
    RUN_OF_THREAD.co_filename: {"Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run", "_shutdown"},
    os.path.join(_FUTURES, "thread.py"): {"_python_exit"},
    os.path.join(_FUTURES, "process.py"): {"_python_exit"},
}


def is_around_threads(code: CodeType) -> bool:
    """Whether this is code of Python's own that begins and ends threads, which is no part of a program."""
    return code.co_qualname in _AROUND_THREADS.get(code.co_filename, ())


def shown_caller(frame: FrameType | None) -> FrameType | None:
    """This frame, or the nearest around it that users want to see."""
    while frame is not None and internal_files[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def resolve(frames: list[tuple[CodeType, int]]) -> tuple[Frame, ...]:
    """The user's frames of a stack, innermost first."""
    return tuple([frame_at(code, offset) for code, offset in frames if not is_internal(code)])


def frame_at(code: CodeType, offset: int) -> Frame:
    """The place of an instruction."""
    return Frame(code.co_filename, _line(code, offset), code.co_name)


def _line(code: CodeType, offset: int) -> int:
    """The line that an instruction belongs to."""
    reference, starts, lines = _lines.get(id(code)) or (None, [], [])
    if reference is None or reference() is not code:
        table = [(start, code.co_firstlineno if line is None else line) for start, _, line in code.co_lines()]
        starts, lines = [start for start, _ in table], [line for _, line in table]
        _lines[id(code)] = (weakref.ref(code), starts, lines)
    at = bisect.bisect_right(starts, offset) - 1
    return lines[at] if at >= 0 else code.co_firstlineno


# By the address of the code: where the instructions of each line begin, and the lines. A function with ten thousand calls has as many stacks.
_lines: dict[int, tuple[weakref.ref[CodeType], list[int], list[int]]] = {}
