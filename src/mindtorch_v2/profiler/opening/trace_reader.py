"""Reading a trace file in blocks of rows, so that only one block is in memory: its text and the objects that it becomes.

A block is cut where a row ends. Where rows end is learnt from the first of them: between two rows stands the same text (`},\\n  {\\n    "ph"`
in torch's files), and its last occurrence in a block is a cut. A cut in the wrong place leaves brackets open, which the parser refuses; then,
and in the first and the last block, brackets are counted instead.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

from ..output.stack_text import whole_stack

__all__ = ["NotATraceError", "Progress", "Row", "TraceReader"]

Row = dict[str, Any]
Progress = Callable[[int, int], None]  # bytes of the file that were read, and its size

LARGEST_FLOOR, LARGEST_FACTOR = 64 << 20, 100  # compressed traces are 10 to 30 times as small
BLOCK_BYTES = 1 << 18  # of text, which as objects is eight times as large; 4 MB, which no cache holds, take half as long again
FIRST_BLOCK_BYTES = 1 << 16
LONGEST_VALUE = 256 << 20  # bytes of a row, or of a value of the header

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}"]', re.DOTALL)
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SCALAR = re.compile(rb'[^\s,\]}\[{":]+')
_SPACE = re.compile(rb"[ \t\n\r]*")
_BETWEEN_ROWS = re.compile(rb'\}[ \t\n\r]*,[ \t\n\r]*\{[ \t\n\r]*"[A-Za-z]+"')


class NotATraceError(ValueError):
    """The file is something else, or was cut off."""


class TraceReader:
    """Iterating gives the rows, `blocks` gives lists of them. Then `header` has the other members of the file, in their order
    (`traceEvents` is None). A file that is a list has rows alone.
    """

    def __init__(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
        self.name = os.fspath(path)
        self.header: dict[str, Any] = {}
        self._progress = progress

    def __iter__(self) -> Iterator[Any]:
        for block in self.blocks():
            yield from block

    def blocks(self) -> Iterator[list[Any]]:
        """The rows, in lists of some thousands."""
        self.header = {}
        try:
            with open(self.name, "rb") as file:
                yield from self._blocks(_Scanner(_Source(file, self._progress)))
        except (EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
            raise NotATraceError(f"{self.name} is no trace, or a part of one: {error}. Export it again.") from None

    def stack(self, row: Row) -> list[str]:
        """The stack of a row that was read, whole and innermost first; empty if there is none."""
        return whole_stack(row, self.header.get("stackFrames", {}))

    def _blocks(self, scanner: _Scanner) -> Iterator[list[Any]]:
        if scanner.peek() == b"[":
            self.header["traceEvents"] = None
            yield from scanner.blocks()
            scanner.finish()
            return
        for key in scanner.members():
            if key in self.header:
                raise ValueError(f"it has {key!r} twice")
            if key == "traceEvents":
                self.header[key] = None
                yield from scanner.blocks()
            else:
                self.header[key] = scanner.value()
        if "traceEvents" not in self.header:
            raise ValueError('it has no "traceEvents"')
        scanner.finish()


class _Source:
    """The bytes of the file, inflated if they are compressed; not more than its size allows."""

    def __init__(self, file: IO[bytes], progress: Progress | None) -> None:
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._progress = progress
        self._left = max(LARGEST_FLOOR, LARGEST_FACTOR * self._size)
        is_compressed = file.peek(2)[:2] == b"\x1f\x8b"  # type: ignore[attr-defined]  # a buffered file's
        self._content: IO[bytes] = gzip.GzipFile(fileobj=file) if is_compressed else file  # type: ignore[assignment]
        self._limited = is_compressed

    def read(self, count: int) -> bytes:
        content = self._content.read(count)
        if self._limited:
            self._left -= len(content)
            if self._left < 0:
                raise ValueError(f"it becomes larger than {max(LARGEST_FLOOR, LARGEST_FACTOR * self._size)} bytes")
        if self._progress is not None:
            self._progress(self._file.tell(), self._size)
        return content


class _Scanner:
    """Reads JSON value by value from a text of which a part is in memory."""

    def __init__(self, source: _Source) -> None:
        import orjson  # costly: for the many programs that read no trace

        self._parse: Callable[[bytes], Any] = orjson.loads
        self._source = source
        self._text = b""
        self._at = 0
        self._ended = False

    # Values --------------------------------------------------------------------------------------------------------------------

    def members(self) -> Iterator[str]:
        """Names of the members of an object; the caller reads each one's value."""
        self._take(b"{")
        if self.peek() == b"}":
            self._at += 1
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise ValueError(f"{key!r:.50} stands where a name is due")
            self._take(b":")
            yield key
            if self.peek() != b",":
                break
            self._at += 1
        self._take(b"}")

    def value(self) -> Any:
        """The next value."""
        first = self.peek()
        if not first:
            raise ValueError("it ends where a value is due")
        if first in b"{[":
            end = self._end_of_brackets()
        elif first == b'"':
            end = self._end_of(_STRING)
        else:
            end = self._end_of(_SCALAR)
        text, self._at = self._text[self._at : end], end
        return self._parse(text)

    def finish(self) -> None:
        """Raise if something stands behind the end."""
        if self.peek():
            raise ValueError(f"{self._text[self._at : self._at + 50].decode('utf-8', 'replace')!r} stands behind its end")

    def peek(self) -> bytes:
        """The next character that is not space, not taken; nothing at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or not self._read_more():
                return self._text[self._at : self._at + 1]

    def _take(self, character: bytes) -> None:
        found = self.peek()
        if found != character:
            due, shown = character.decode(), found.decode("utf-8", "replace")
            raise ValueError(f"{shown!r} stands where {due!r} is due" if found else f"it ends where {due!r} is due")
        self._at += 1

    def _read_more(self) -> bool:
        """Whether there was more; what has been taken is forgotten."""
        if self._ended:
            return False
        kept = self._text[self._at :]
        if len(kept) > LONGEST_VALUE:
            raise ValueError(f"a value is longer than {LONGEST_VALUE} bytes")
        more = self._source.read(max(BLOCK_BYTES, len(kept)))  # twice as much each time: a long value is not copied again and again
        self._ended = not more
        self._text, self._at = kept + more, 0
        return bool(more)

    def _end_of(self, pattern: re.Pattern[bytes]) -> int:
        """The end of a text or a number."""
        while True:
            found = pattern.match(self._text, self._at)
            if found is not None and (found.end() < len(self._text) or self._ended):
                return found.end()
            if found is None and pattern is _SCALAR:
                raise ValueError(f"{self._text[self._at : self._at + 1].decode('utf-8', 'replace')!r} stands where a value is due")
            if not self._read_more() and found is None:
                raise ValueError("it ends inside a text")

    def _end_of_brackets(self) -> int:
        """The end of the object or list that begins here."""
        depth, looked = 0, 0  # from the place that the text begins at
        while True:
            for token in _TOKEN.finditer(self._text, self._at + looked):
                character = token[0]
                if character in (b"{", b"["):
                    depth += 1
                elif character in (b"}", b"]"):
                    depth -= 1
                    if not depth:
                        return token.end()
                elif character == b'"':  # of a text that goes on
                    looked = token.start() - self._at
                    break
            else:
                looked = len(self._text) - self._at
            if not self._read_more():
                raise ValueError("it ends inside an object or a list")

    # Rows ----------------------------------------------------------------------------------------------------------------------

    def blocks(self) -> Iterator[list[Any]]:
        """The elements of the list that comes next."""
        self._take(b"[")
        if self.peek() == b"]":
            self._at += 1
            return
        between: bytes | None = None
        size = FIRST_BLOCK_BYTES
        while True:
            while len(self._text) - self._at < size and self._read_more():
                pass
            size = BLOCK_BYTES
            rows = self._block_between(between) if between is not None else None
            if rows is None:
                rows, has_ended, between = self._counted_block()
                if has_ended:
                    yield rows
                    return
            yield rows

    def _block_between(self, between: bytes) -> list[Any] | None:
        """Rows up to the last place in the text where rows are parted in this way; None if the text cannot be cut there."""
        cut = self._text.rfind(between, self._at)
        if cut <= self._at:
            return None
        try:
            rows: list[Any] = self._parse(b"[%b]" % self._text[self._at : cut + 1])
        except ValueError:
            return None
        self._at = cut + between.index(b"{")
        return rows

    def _counted_block(self) -> tuple[list[Any], bool, bytes | None]:
        """Rows up to the last that ends in the text, whether the list ends there, and what stands between two of them."""
        while True:
            end, is_last, parted = self._last_row()
            if end > self._at:
                break
            if not self._read_more():
                raise ValueError("it ends inside a row" if self._text[self._at :].strip() else "it ends where ']' is due")
        rows: list[Any] = self._parse(b"[%b]" % self._text[self._at : end])
        self._at = end
        if not is_last:
            if self.peek() not in (b",", b"]"):
                self._take(b",")
            if self.peek() == b",":
                self._at += 1
                return rows, False, parted
        self._take(b"]")
        return rows, True, parted

    def _last_row(self) -> tuple[int, bool, bytes | None]:
        """Where the last row of the text ends, whether the list ends behind it, and the text between two rows."""
        depth, end, parted = 0, self._at, None
        for token in _TOKEN.finditer(self._text, self._at):
            character = token[0]
            if character in (b"{", b"["):
                depth += 1
            elif character in (b"}", b"]"):
                depth -= 1
                if depth < 0:
                    return token.start(), True, parted
                if not depth:
                    end = token.end()
                    if parted is None and (between := _BETWEEN_ROWS.match(self._text, end - 1)):
                        parted = between[0]
            elif character == b'"':
                break
        return end, False, parted
