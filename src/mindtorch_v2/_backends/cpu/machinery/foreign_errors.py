"""NumPy's complaints about arguments in torch's terms: a kernel that meets what it was not made for fails as an operator does."""

from __future__ import annotations

import re

from ...._checks import broadcast_error

__all__ = ["FOREIGN", "translated"]

FOREIGN = (ValueError, TypeError, IndexError, StopIteration)

# NumPy's text → the type that torch raises about the same
_TYPES: list[tuple[re.Pattern[str], type[Exception]]] = [
    (
        re.compile(
            "broadcast|shape mismatch|cannot reshape|axes don't match|axes exceeds|repeated axis|matmul: Input operand|core dimension|"
            "zero-size array|all the input array|at least one array|same number of dimensions|negative dimensions|not aligned|"
            "cannot select an axis|cannot be larger than|total size of new array|values to unpack|"
            "boolean index did not match|used as indices must be|too many indices|only integers, slices|Cannot cast|"
            "output array is not acceptable|einstein sum|attempt to get arg"
        ),
        RuntimeError,
    ),
    (re.compile("not supported for the input types|numpy boolean|did not contain a loop|No loop matching"), NotImplementedError),
]
_SHAPES = re.compile(r"\(((?:\d+,? ?)*)\)")


def translated(name: str, error: Exception) -> Exception:
    """The error that torch would raise; the same one where the text is not NumPy's."""
    text = str(error)
    if isinstance(error, StopIteration):
        return RuntimeError(f"{name}(): the arguments' shapes do not fit")
    for pattern, kind in _TYPES:
        if pattern.search(text):
            shapes = [tuple(int(n) for n in found.split(",") if n.strip()) for found in _SHAPES.findall(text)]
            if ("broadcast together" in text or "objects cannot be broadcast" in text) and len(shapes) >= 2:
                return broadcast_error(*shapes[:2])
            return kind(f"{name}(): {text}")
    return error
