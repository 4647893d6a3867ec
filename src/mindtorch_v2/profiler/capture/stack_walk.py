"""Python stacks: taken as code objects and offsets, each distinct one once, and made readable when the recording is over.

While calls are traced (see `python_tracer`), a thread knows the chain of functions that run on it, and a stack is that chain and the
offset in the innermost: no frame but that one is looked at. Otherwise the frames are walked.
"""

from __future__ import annotations

import itertools
import os
import threading
from types import CodeType, FrameType

import numpy as np

from ..model.session import Frame

__all__ = [
    "Call",
    "enter_chain",
    "forget",
    "frame_at",
    "internal_files",
    "is_internal",
    "library_files",
    "open_calls",
    "resolve",
    "shown_caller",
    "stack_number",
    "stacks_of_chains",
    "taken",
]

PACKAGE = os.path.abspath(os.path.join(__file__, *[os.pardir] * 3)) + os.sep
# of this package, what a program calls by name rather than through an operator: users want to see it
SHOWN = tuple(os.path.join(PACKAGE, part) for part in ("nn", "optim", "utils" + os.sep + "data"))
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
    _numbers.clear()
    taken.clear()
    _chains.clear()
    _links.clear()
    stacks_of_chains.clear()


def stack_number(frame: FrameType | None) -> int:
    """The number of the stack from this frame outwards, -1 if nothing of it is shown."""
    while frame is not None and internal_files[frame.f_code.co_filename]:
        frame = frame.f_back
    if frame is None:
        return -1
    # a slice, because the list may be emptied at any time by whoever stops the recording
    for _, _, chain, code in open_calls.get(threading.get_ident(), [])[-1:]:
        if code is frame.f_code:
            return _stack_of_chain(chain, frame.f_lasti)
    return _walk(frame)


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


def _stack_of_chain(chain: int, offset: int) -> int:
    place = (chain, offset)
    number = stacks_of_chains.get(place)
    if number is None:
        frames = []
        while chain >= 0:
            link = _links.get(chain)
            if link is None:
                return -1  # of a recording that has ended since
            frames.append((link[2], offset))
            chain, offset, _ = link
        number = next(_count)
        taken[number] = frames
        stacks_of_chains[place] = number
    return number


Call = tuple[int, float, int, CodeType]  # a function that runs: label, start, chain of functions down to it, code

open_calls: dict[int, list[Call]] = {}  # traced thread → the functions that run on it, outermost first
_links: dict[int, tuple[int, int, CodeType]] = {}  # chain → the caller's chain (-1: none), the offset of the call in it, the code
_chains: dict[tuple[int, int, int], int] = {}  # (chain of the caller, offset of the call, address of the called code) → chain
stacks_of_chains: dict[tuple[int, int], int] = {}  # (chain, offset in its innermost function) → number of the stack


def enter_chain(caller: int, offset: int, code: CodeType) -> int:
    """The chain of functions that grows out of another by a call."""
    key = (caller, offset, id(code))
    chain = _chains.get(key)
    if chain is None:
        chain = next(_count)
        _links[chain] = (caller, offset, code)
        _chains[key] = chain
    return chain


class _InternalFiles(dict[str, bool]):
    """File → whether it holds the dispatcher, the autograd engine, the profiler or what is generated for operators."""

    def __missing__(self, file: str) -> bool:
        # "<mindtorch_v2 add>" is an operator's function; "<string>" and "<frozen …>" are dataclasses, imports and the like
        generated = file.startswith("<") and not file.startswith(("<stdin>", "<ipython"))
        known = self[file] = generated or (file.startswith(PACKAGE) and not file.startswith(SHOWN))
        return known


internal_files = _InternalFiles()


class _LibraryFiles(dict[str, bool]):
    """File → whether it belongs to Python or to what kernels are made of."""

    def __missing__(self, file: str) -> bool:
        standard = file.startswith(STANDARD_LIBRARY) and not file.startswith(
            ("site-packages", "dist-packages"), len(STANDARD_LIBRARY)
        )
        known = self[file] = standard or file.startswith(OF_KERNELS)
        return known


library_files = _LibraryFiles()


def is_internal(code: CodeType) -> bool:
    return internal_files[code.co_filename]


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
    if offset >= 0:
        for start, end, line in code.co_lines():
            if start <= offset < end and line is not None:
                return line
    return code.co_firstlineno
