"""Tables of text: a list of columns and a list of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["GAP", "Column", "TextTable", "end_of", "fitting", "middle_cut", "printable"]

GAP = "  "
_WIDTH = 12
_NARROWEST = 16  # a name is not cut to less


@dataclass(frozen=True)
class Column:
    """A heading and what stands under it. Without a width, the column is as wide as its widest cell."""

    heading: str
    value: Callable[[Any], Any]
    width: int | None = _WIDTH
    align: str = ">"
    whole: Callable[[Any], str] | None = None  # the text before any cut; its middle is left out where the table must be narrower

    left_out: int = 0  # how soon it is left out where there is no room: 1 first, 0 never

    def narrowed(self, width: int) -> Column:
        whole = self.whole
        assert whole is not None, "only names are narrowed"
        return replace(self, value=lambda row: middle_cut(whole(row), width), width=width)


class TextTable:
    """The lines of a table. What `below` gives for a row stands under its last cell, a line for each.

    `heading`, `rule` and `rows` are of one width, with blanks up to the end of the last column.
    """

    def __init__(self, columns: Sequence[Column], rows: Iterable[Any], below: Callable[[Any], Iterable[str]] | None = None) -> None:
        cells = []
        for row in rows:
            cells.append([str(column.value(row)) for column in columns])
            if below is not None:
                cells += [[*[""] * (len(columns) - 1), text] for text in below(row)]
        headings = [column.heading for column in columns]
        by_column = list(zip(headings, *cells, strict=True))
        widths = [max(map(len, by_column[i])) if c.width is None else c.width for i, c in enumerate(columns)]
        formats = [f"{column.align}{width}" for column, width in zip(columns, widths, strict=True)]
        self.heading, *self.rows = [
            GAP.join([format(cell, how) for cell, how in zip(line, formats, strict=True)]) for line in [headings, *cells]
        ]
        self.rule = GAP.join("-" * width for width in widths)

    def lines(self) -> list[str]:
        """The table between rules: headings, rows."""
        return [self.rule, self.heading, self.rule, *self.rows, self.rule]


def fitting(columns: Sequence[Column], rows: Sequence[Any], width: int | None) -> list[Column]:
    """The columns that have room in this width: those of least use are left out, then the names are cut. None for any width."""
    kept = list(columns)
    if width is None:
        return kept
    while (excess := len(TextTable(kept, rows).heading) - width) > 0 and any(column.left_out for column in kept):
        kept.remove(min((column for column in kept if column.left_out), key=lambda column: column.left_out))
    for at, column in enumerate(kept):
        if excess > 0 and column.whole is not None:
            widest = max([len(column.heading), *(len(str(column.value(row))) for row in rows)])
            kept[at] = column.narrowed(max(widest - excess, min(widest, _NARROWEST)))
            excess = len(TextTable(kept, rows).heading) - width
    return kept


def printable(text: object) -> str:
    """The text with escapes for all that is no letter, sign or blank: names come from other programs, and may move the cursor,
    turn the direction of writing, or have halves of characters, which no stream can encode.
    """
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def middle_cut(text: str, width: int) -> str:
    """`aten::convol…backward`: the text, or its beginning and end."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return text[: width - 1 - end] + "…" + text[len(text) - end :]


def end_of(text: str, width: int | None) -> str:
    """`...ain.py(12): step`: the text, or its end."""
    if width is None or len(text) <= width:
        return text
    text = text[len(text) - width :]
    return "..." + text[3:] if len(text) > 3 else text
