"""Events of one kind: numbers for combinations of what they have, how many there are of each, and their medians."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["combinations", "medians", "repeats"]

Column = np.ndarray[Any, np.dtype[Any]]

TIME_BITS = 42  # an hour of ns, so that a number for the kind has room above it
LONGEST = (1 << TIME_BITS) - 1


def medians(kinds: Column, values: Column) -> Column:
    """For each place the median, of the values of its kind; the lower one of two."""
    if not len(kinds):
        return np.empty(0, np.int64)
    _, which = np.unique(kinds, return_inverse=True)
    in_order = np.sort((which << TIME_BITS) | np.minimum(values, LONGEST))
    counts = np.bincount(which)
    middle = in_order[np.cumsum(counts) - counts + (counts - 1) // 2] & LONGEST
    return np.asarray(middle[which])


def combinations(*columns: Column) -> Column:
    """A number for each combination of values."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, numbers = np.unique(column, return_inverse=True)
        key = key * (numbers.max(initial=0) + 1) + numbers
    return key


def repeats(values: Column) -> Column:
    """Count how often the value at each place is there."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(counts[which])
