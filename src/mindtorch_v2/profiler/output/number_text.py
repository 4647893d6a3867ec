"""Columns of numbers as lines of text, digit by digit in NumPy: a third of the time that formatting them one by one takes.

Each line is a row of a matrix of bytes in which every number has room for the longest of its column. What stays empty is a
zero byte, and zero bytes are left out in the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Field", "lines"]

Column = np.ndarray[Any, np.dtype[Any]]


class Field(NamedTuple):
    """A text, and a number after it. Lines that are not `shown` have neither."""

    before: str  # ASCII
    values: Column | None = None
    shown: Column | None = None  # of bool
    thousandths: bool = False  # 1234 is 1.234


def lines(fields: list[Field], count: int) -> list[str]:
    """The fields of each of `count` lines, one behind the other."""
    blocks = [(block, f.shown) for f in fields if f.shown is None or f.shown.any() for block in _blocks(f)]
    if not count or not blocks:
        return [""] * count
    newline = np.frombuffer(b"\n", np.uint8)
    ends = np.cumsum([block.shape[-1] for block, _ in blocks] + [1])
    matrix = np.empty((count, ends[-1]), np.uint8)
    for (block, shown), end in zip([*blocks, (newline, None)], ends.tolist()):
        matrix[:, end - block.shape[-1] : end] = block if shown is None else np.where(shown[:, None], block, np.uint8(0))
    flat = matrix.ravel()
    return flat[flat != 0].tobytes().decode("ascii").split("\n")[:-1]


def _blocks(field: Field) -> list[Column]:
    """Bytes that stand side by side: a row of them for all lines, or one a line."""
    text = np.frombuffer(field.before.encode("ascii"), np.uint8)
    if field.values is None:
        return [text]
    values = field.values.astype(np.int64) if field.shown is None else np.where(field.shown, field.values, 0).astype(np.int64)
    if field.thousandths:
        whole, rest = np.divmod(values, 1000)
        return [text, _digits(whole), np.frombuffer(b".", np.uint8), _all_digits(rest, 3)]
    if values.min(initial=0) < 0:
        return [text, np.where(values < 0, np.uint8(ord("-")), np.uint8(0))[:, None], _digits(np.abs(values))]
    return [text, _digits(values)]


def _digits(values: Column) -> Column:
    """Digits of numbers that are not negative, with zero bytes before the first."""
    width = len(str(values.max(initial=0)))
    digits = _all_digits(values, width)
    if values.min(initial=0) < 10 ** (width - 1):
        for place in range(width - 1):
            digits[values < 10 ** (width - 1 - place), place] = 0
    return digits


_FOUR_DIGITS = np.frombuffer(b"".join(b"%04d" % number for number in range(10_000)), np.uint32)


def _all_digits(values: Column, width: int) -> Column:
    """The last `width` digits, zeros included; taken from a table by fours."""
    groups = -(-width // 4)
    digits = np.empty((len(values), groups), np.uint32)
    for group in reversed(range(groups)):
        rest = values // 10_000
        digits[:, group] = _FOUR_DIGITS[values - rest * 10_000]
        values = rest
    return digits.view(np.uint8)[:, 4 * groups - width :]
