"""Functions that PyTorch has for shapes that are symbols while a program is traced. Nothing is traced here: shapes are integers, and these plain arithmetic."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ._refusals import refused

__all__ = ["sym_float", "sym_fresh_size", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum"]

# For `isinstance` and annotations: no number is of these types.
CLASSES = refused(
    "mindtorch_v2", "shapes are Python integers here, and there are no symbolic ones", classes="SymBool SymFloat SymInt"
)

_NUMBERS = (np.integer, np.floating, int, float)


def sym_int(a: Any) -> int:
    """A number without its fraction."""
    return int(a)


def sym_float(a: Any) -> float:
    """A number as a float."""
    return float(a)


def sym_not(a: Any) -> bool:
    """The opposite."""
    return not a


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)


def _extreme(choose: Callable[..., Any], a: Any, b: Any) -> Any:
    """One of two numbers; a float, if one of them is."""
    for x in (a, b):
        if not isinstance(x, _NUMBERS):
            raise AssertionError(f"expected {_NUMBERS}, got {type(x)}")
    chosen = choose(a, b)
    return float(chosen) if isinstance(a, float | np.floating) or isinstance(b, float | np.floating) else chosen


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers; a float, if one of them is."""
    return _extreme(max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers; a float, if one of them is."""
    return _extreme(min, a, b)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """The second or the third, of one type, as the first says."""
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


def sym_sum(*args: Any) -> Any:
    """The sum of numbers, or of the numbers of a list."""
    numbers = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
    return functools.reduce(operator.add, numbers, 0)


def sym_fresh_size(expr: Any) -> int:
    """The size itself."""
    return int(expr)
