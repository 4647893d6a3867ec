"""What trace files write as text, as values of the model: arguments of calls, places in Python code, modules, directions of copies."""

from __future__ import annotations

import ast
import re
from typing import Any

from ..model.inputs import ELEMENT_TYPES
from ..model.session import DIRECTIONS, Frame, ModulePart, TensorInput

__all__ = ["arguments", "direction", "frame", "frames_of_text", "hierarchy", "number"]

_DTYPES = {name: dtype for dtype, name in ELEMENT_TYPES.items()}
_NUMBER = re.compile(r"[-+]?[\w.+-]+")
_PLACE = re.compile(r"(.*)\((\d+)\): (.*)", re.DOTALL)  # torch's: package/file.py(12): function
_OWN_PLACE = re.compile(r"(.*):(\d+):(.*)", re.DOTALL)
_PART = re.compile(r"([^()]*)\(([^()]*)\)::\w+\.?")
_COPIES = {"HtoD": 1, "DtoH": 2, "DtoD": 3, "PtoP": 4, "HtoH": 5, "Memset": 6}
_LONGEST_LINE = 1 << 31


def arguments(dims: Any, types: Any, strides: Any, values: Any) -> tuple[Any, ...]:
    """The arguments of a call, one entry each. What a trace does not say, such as a string, is None."""
    if not isinstance(dims, list):
        return ()

    def at(facts: Any, place: int) -> Any:
        return facts[place] if isinstance(facts, list) and place < len(facts) else None

    return tuple(_argument(dim, at(types, i), at(strides, i), at(values, i)) for i, dim in enumerate(dims))


def _argument(dims: Any, kind: str, strides: Any, value: Any) -> Any:
    if kind == "TensorList" or (isinstance(dims, list) and dims and all(isinstance(dim, list) for dim in dims)):
        steps = strides if isinstance(strides, list) and len(strides) == len(dims) else [None] * len(dims)
        return [_tensor(dim, "", step) for dim, step in zip(dims, steps)]
    if isinstance(kind, str) and kind not in ("", "Scalar", "ScalarList", "GenericList") and _are_sizes(dims):
        return _tensor(dims, _DTYPES.get(kind, kind.removeprefix("c10::").lower()), strides)
    return _value(value) if isinstance(value, str) and kind in ("Scalar", "ScalarList") else None


def _tensor(dims: Any, dtype: str, strides: Any) -> TensorInput | None:
    if not _are_sizes(dims):
        return None
    if not _are_sizes(strides) or len(strides) != len(dims):
        strides, step = [], 1
        for size in reversed(dims):  # a trace without strides is of tensors that mostly are contiguous
            strides.insert(0, step)
            step *= max(size, 1)
        if step >= 1 << 63:
            return None
    return TensorInput(tuple(dims), tuple(strides), dtype)


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and all(type(size) is int and -(1 << 63) <= size < 1 << 63 for size in value)


def _value(text: str) -> Any:
    """The number, truth value or list of these that a trace writes."""
    if text.startswith("[") and text.endswith("]"):
        items = [item for item in text[1:-1].split(",") if item.strip()]
        return [_value(item.strip()) for item in items]
    if text in ("True", "False"):
        return text == "True"
    if not _NUMBER.fullmatch(text):
        return None
    try:
        value = ast.literal_eval(text) if text.lstrip("-+")[:1].isdigit() else float(text)
    except (ValueError, SyntaxError):
        return None
    return value if not isinstance(value, int) or -(1 << 63) <= value < 1 << 63 else None


def frame(text: str) -> Frame:
    """A place in Python code; what is none, such as a function written in C, has no file."""
    found = _PLACE.fullmatch(text) or _OWN_PLACE.fullmatch(text)
    if found is None or len(found[2]) > 9 or int(found[2]) >= _LONGEST_LINE:
        return Frame("", 0, text)
    return Frame(found[1], int(found[2]), found[3])


def frames_of_text(text: str) -> list[str]:
    """The places of a `Call stack`, innermost first."""
    return [place for place in re.split(r";\s*", text) if place.strip()]


def hierarchy(text: str) -> tuple[ModulePart, ...]:
    """The module that a `Module Hierarchy` names."""
    found = _PART.findall(text)
    if not found:
        return ()
    (_, top), *inner = found
    return (ModulePart(top, top), *(ModulePart(name.lstrip("."), class_name) for name, class_name in inner))


def direction(name: str, args: dict[str, Any]) -> int:
    """From where to where a device copies, as a number into DIRECTIONS."""
    told = args.get("direction", args.get("kind"))
    if isinstance(told, str) and told.lower().replace("_", " ") in DIRECTIONS:
        return DIRECTIONS.index(told.lower().replace("_", " "))  # HOST_TO_DEVICE
    return next((number for text, number in _COPIES.items() if text in name or text == told), 0)


def number(value: object) -> int:
    """A process or thread by number; texts have that in them which comes last (`3_0`), or none."""
    if isinstance(value, int) and -(1 << 62) < value < 1 << 62:
        return int(value)
    digits = "".join(c if c.isdecimal() and c.isascii() else " " for c in str(value)).split()
    return int(digits[-1][:15]) if digits else 0
