"""The arguments of a call as torch's traces write them, and as `input_shapes`."""

from __future__ import annotations

from typing import Any

from ..model import inputs
from ..model.session import TensorInput

__all__ = ["in_trace", "number"]

LONGEST_LIST = 30  # torch: of lists with more elements only the kind is shown, and only for tensors


def in_trace(values: tuple[Any, ...]) -> dict[str, list[Any]]:
    """Return what a trace says about these arguments, by its names for it."""
    if not values:
        return {"input_shapes": []}  # torch: nothing is said where there is nothing
    short = [value if not isinstance(value, list | tuple) or len(value) <= LONGEST_LIST else None for value in values]
    return {
        "Concrete Inputs": [_concrete(value) for value in short],
        "Input type": [_type(value) for value in values],
        "Input Strides": inputs.strides(short),
        "Input Dims": inputs.shapes(short),
        "input_shapes": inputs.shapes(values),
    }


def _type(value: object) -> str:
    (kind,) = inputs.dtypes([value])
    is_shown = kind != "ScalarList" or _is_number_list(value)
    return kind if is_shown else ""


def _concrete(value: object) -> str:
    match value:
        case TensorInput():
            return ""
        case bool() | int() | float() | complex():
            return number(value)
        case list() | tuple() if _is_number_list(value):
            return f"[{', '.join(map(number, value))}]"
    return ""  # torch: nothing of strings


def _is_number_list(value: Any) -> bool:
    return len(value) <= LONGEST_LIST and all(isinstance(v, bool | int | float | complex) for v in value)


def number(value: complex) -> str:
    """A number as C++ streams print it with 17 digits; one without fraction ends in a point."""
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, complex):
        imaginary = number(value.imag)
        return f"{number(value.real)}{'' if imaginary.startswith('-') else '+'}{imaginary}j"
    if value.is_integer() and -(2.0**63) <= value < 2.0**63:
        return f"{int(value)}."
    return f"{value:.17g}"
