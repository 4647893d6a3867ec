"""Tables of HTML, as notebooks show them: the columns and rows of a `TextTable`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from .text_table import Column, printable

__all__ = ["html_table", "html_text"]


def html_table(columns: Sequence[Column], rows: Iterable[Any], notes: Iterable[str] = ()) -> str:
    """A table with a row for each of `rows`, and lines below it. All text is escaped: a name is shown, never run."""
    sides = ["left" if column.align == "<" else "right" for column in columns]
    heading = "".join(
        f'<th style="text-align:{side}">{_escaped(column.heading)}</th>' for column, side in zip(columns, sides, strict=True)
    )
    lines = [
        "<tr>" + "".join(_cell(column, row, side) for column, side in zip(columns, sides, strict=True)) + "</tr>" for row in rows
    ]
    below = "".join(f"<p>{_escaped(note)}</p>" for note in notes)
    return f"<table><thead><tr>{heading}</tr></thead><tbody>{''.join(lines)}</tbody></table>{below}"


def html_text(text: str) -> str:
    """Text of several lines, in the letters of a terminal."""
    return f"<pre>{_escaped(text)}</pre>"


def _cell(column: Column, row: Any, side: str) -> str:
    value = column.value(row) if column.whole is None else column.whole(row)
    return f'<td style="text-align:{side}">{_escaped(value)}</td>'


def _escaped(value: object) -> str:
    return html.escape(printable(value).strip())
