"""Numbers that stand for labels in records.

Operators keep their numbers, because compiled functions contain them. All other labels (scopes, Python functions, modules, backward
nodes) are numbered for one recording, and freed with it. No number is given twice: a record of an earlier recording that a slow thread
writes late refers to nothing, instead of to another label.
"""

from __future__ import annotations

import itertools

from ..model.session import Label

__all__ = ["clear", "label_number", "operator_number", "table"]


class _Numbers(dict[Label, int]):
    """Label → its number. Lock-free: of two threads that meet a label, one is first, and the other's number is unused."""

    def __init__(self, count: itertools.count[int]) -> None:
        super().__init__()
        self.labels: dict[int, Label] = {}
        self._count = count

    def __missing__(self, label: Label) -> int:
        number = next(self._count)
        self.labels[number] = label  # first, so that an interrupt leaves no number without its label
        return self.setdefault(label, number)


_operators = _Numbers(itertools.count(0, 2))
_count = itertools.count(1, 2)
_recorded = _Numbers(_count)


def operator_number(label: Label) -> int:
    """Return the number of an operator's label, which stays valid."""
    return _operators[label]


def label_number(label: Label) -> int:
    """Return the number of a label, which is valid until `clear`."""
    return _recorded[label]


def clear() -> None:
    """Free the labels of the recording; those of operators stay."""
    global _recorded
    _recorded = _Numbers(_count)  # a thread in the middle of `label_number` goes on with the old one


def table() -> dict[int, Label]:
    """Return the labels of all operators and of the recording, by number."""
    return {**_operators.labels, **_recorded.labels}
