"""Stacks in a trace file: in each row up to a depth, and where they are deeper, whole in a table of the file's header.

A row of an operator has its stack among its arguments. At a depth of 500, a hundred thousand rows would take two gigabytes, so that
rows have the innermost frames, and `sf`, the number of the innermost frame in `stackFrames`: there each frame has the number of its caller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model import places
from ..model.session import Column, Frame, Session
from ..writing.json_text import json_text

__all__ = ["MAX_FRAMES", "StackTexts", "whole_stack"]

MAX_FRAMES = 64  # of a row


class StackTexts:
    """The stacks of a session as arguments of rows (`texts`), the frames of those that are cut (`frames`), and where these begin (`innermost`).

    All but `frames` are by the number of the stack; `innermost` is 0 for a stack that is whole, and its last entry is for rows without one.
    """

    def __init__(self, session: Session, frames_before: int = 0) -> None:
        names = [_name(frame) for frame in session.frames]
        texts = [json_text(name) for name in names]
        self.texts = [f',"stack":[{",".join(_cut(stack, texts, _more_in_json))}]' for stack in session.stack_table]
        if session.info.verbose:
            calls = places.places(session)
            in_torch = ("".join(f"{call};" for call in _cut(stack, calls, _more)) for stack in session.stack_table)
            self.texts = [f'{text},"Call stack":{json_text(stack)}' for text, stack in zip(self.texts, in_torch)]
        self.frames: dict[str, dict[str, Any]] = {}
        self._before = frames_before  # in the table of the file
        numbers: dict[tuple[int, int], int] = {}
        innermost = [0] * (len(session.stack_table) + 1)
        for at, stack in enumerate(session.stack_table):
            if len(stack) > MAX_FRAMES:
                innermost[at] = self._number(stack, session, names, numbers)
        self.innermost: Column = np.array(innermost, np.int64)

    def _number(self, stack: tuple[int, ...], session: Session, names: list[str], numbers: dict[tuple[int, int], int]) -> int:
        """The number of the innermost frame, from 1, under those of its callers."""
        caller = 0
        for frame in reversed(stack):
            number = numbers.get((caller, frame))
            if number is None:
                number = numbers[caller, frame] = self._before + len(numbers) + 1
                facts = {"category": session.frames[frame].file, "name": names[frame]}
                self.frames[str(number)] = facts | ({"parent": str(caller)} if caller else {})
            caller = number
        return caller


def whole_stack(row: dict[str, Any], frames: dict[str, Any]) -> list[str]:
    """The stack of a row, innermost first, with what is in the header's `stackFrames` where the row has a part."""
    number = str(row["sf"]) if "sf" in row else None
    if number is None:
        return list(row.get("args", {}).get("stack", []))
    stack = []
    while number is not None:
        stack.append(frames[number]["name"])
        if len(stack) > len(frames):
            raise ValueError("stackFrames has a frame that calls itself")
        number = frames[number].get("parent")
    return stack


def _name(frame: Frame) -> str:
    return f"{frame.file}:{frame.line}:{frame.function}"


def _cut(stack: tuple[int, ...], texts: list[str], more: Any) -> list[str]:
    shown = [texts[frame] for frame in stack[:MAX_FRAMES]]
    return shown if len(stack) <= MAX_FRAMES else [*shown, more(len(stack) - MAX_FRAMES)]


def _more(count: int) -> str:
    return f"… {count} more"


def _more_in_json(count: int) -> str:
    return f'"{_more(count)}"'
