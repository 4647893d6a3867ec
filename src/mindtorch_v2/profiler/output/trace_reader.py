"""Reading a trace file row by row, so that only its text and one row are in memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Iterator
from typing import Any

from .stack_text import whole_stack

__all__ = ["NotATraceError", "Row", "TraceReader"]

Row = dict[str, Any]

LARGEST_FLOOR, LARGEST_FACTOR = 64 << 20, 100  # compressed traces are 10 to 30 times as small


class NotATraceError(ValueError):
    """The file is something else, or was cut off."""


class TraceReader:
    """Iterating gives the rows. Then `header` has the other members of the file, in their order (`traceEvents` is None)."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        self.header: dict[str, Any] = {}

    def __iter__(self) -> Iterator[Any]:
        self.header = {}
        try:
            yield from self._rows(_Scanner(_text(self.name)))
        except (EOFError, gzip.BadGzipFile, zlib.error, ValueError, RecursionError) as error:
            raise NotATraceError(f"{self.name} is no trace, or a part of one: {error}. Export it again.") from None

    def stack(self, row: Row) -> list[str]:
        """The stack of a row that was read, whole and innermost first; empty if there is none."""
        return whole_stack(row, self.header.get("stackFrames", {}))

    def _rows(self, scanner: _Scanner) -> Iterator[Any]:
        for key in scanner.members():
            if key in self.header:
                raise ValueError(f"it has {key!r} twice")
            if key == "traceEvents":
                self.header[key] = None
                yield from scanner.elements()
            else:
                self.header[key] = scanner.value()
        if "traceEvents" not in self.header:
            raise ValueError('it has no "traceEvents"')


def _text(name: str) -> str:
    with open(name, "rb") as file:
        content = file.read()
    if content[:2] == b"\x1f\x8b":
        largest = max(LARGEST_FLOOR, LARGEST_FACTOR * len(content))
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as compressed:
            content = compressed.read(largest + 1)
        if len(content) > largest:
            raise ValueError(f"it becomes larger than {largest} bytes")
    return content.decode("utf-8")


class _Scanner:
    """Reads JSON value by value."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.decode = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode
        self.skip_space = re.compile(r"[ \t\n\r]*").match

    def members(self) -> Iterator[str]:
        """Names of the members of an object that is the whole text; the caller reads each one's value."""
        for _ in self._items("{", "}"):
            key = self.value()
            if not isinstance(key, str):
                raise ValueError(f"{key!r:.50} stands where a name is due")
            self._take(":")
            yield key
        if self._next():
            raise ValueError(f"{self.text[self.place : self.place + 50]!r} stands behind its end")

    def elements(self) -> Iterator[Any]:
        for _ in self._items("[", "]"):
            yield self.value()

    def value(self) -> Any:
        self._next()
        value, self.place = self.decode(self.text, self.place)
        return value

    def _items(self, opening: str, closing: str) -> Iterator[None]:
        """Once for each item between the brackets; the caller reads it."""
        self._take(opening)
        if self._next() != closing:
            yield
            while self._next() == ",":
                self.place += 1
                yield
        self._take(closing)

    def _next(self) -> str:
        """The next character that is not space, not taken."""
        space = self.skip_space(self.text, self.place)
        self.place = space.end() if space else self.place
        return self.text[self.place : self.place + 1]

    def _take(self, character: str) -> None:
        found = self._next()
        if found != character:
            raise ValueError(f"{found!r} stands where {character!r} is due" if found else f"it ends where {character!r} is due")
        self.place += 1


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")
