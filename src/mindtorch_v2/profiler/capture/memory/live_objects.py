"""Live objects of the process, by class."""

from __future__ import annotations

import gc
import itertools
from typing import Any

__all__ = ["find"]


class _Kinds(dict[type, bool]):
    """Type → whether it is one of some kinds. Objects are many and types few."""

    def __init__(self, kinds: tuple[type, ...]) -> None:
        self._kinds = kinds

    def __missing__(self, kind: type) -> bool:
        known = self[kind] = issubclass(kind, self._kinds)
        return known


def find(*kinds: type) -> list[Any]:
    """Return the live instances of these classes and of their subclasses."""
    found = gc.get_objects()
    return list(itertools.compress(found, map(_Kinds(kinds).__getitem__, map(type, found))))
