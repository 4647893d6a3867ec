"""What is said about values that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _dtype
from .._tensor import Tensor

if TYPE_CHECKING:
    from .._types import Number

__all__ = ["ErrorMeta", "item_text", "make_scalar_mismatch_msg", "make_tensor_mismatch_msg"]

Text = str | Callable[[str], str] | None


class ErrorMeta(Exception):  # noqa: N818 - torch's spelling
    """An error to be: its type, its text, and the path to the item that it is about."""

    def __init__(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()) -> None:
        super().__init__(f"{type.__name__} that was not raised as such (with `raise meta.to_error()`): {msg}")
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: Text = None) -> Exception:
        """The error itself; `msg` is its text, or makes it from the usual one."""
        if isinstance(msg, str):
            return self.type(msg)
        text = f"{self.msg}\n\nThe failure occurred for item {item_text(self.id)}" if self.id else self.msg
        return self.type(msg(text) if callable(msg) else text)


def item_text(id: tuple[Any, ...]) -> str:
    """The path to an item, as it is written in Python: `[0]['a']`."""
    return "".join(f"[{part!r}]" for part in id)


def make_scalar_mismatch_msg(actual: Number, expected: Number, *, rtol: float, atol: float, identifier: Text = None) -> str:
    """What is said about two numbers that differ."""
    difference = abs(actual - expected)
    relative = float("inf") if expected == 0 else difference / abs(expected)
    return "\n".join(
        [
            _title("Scalars", identifier, "equal" if _is_exact(rtol, atol) else "close"),
            "",
            f"Expected {expected} but got {actual}.",
            f"Absolute difference: {difference}{_allowed(atol, rtol, atol)}",
            f"Relative difference: {relative}{_allowed(rtol, rtol, atol)}",
        ]
    )


def make_tensor_mismatch_msg(
    actual: Tensor, expected: Tensor, matches: Tensor, *, rtol: float, atol: float, identifier: Text = None
) -> str:
    """What is said about two tensors that differ where `matches` is False."""
    total = matches.numel()
    wrong = total - int(matches.sum())
    count = f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})"
    if actual.dtype.is_floating_point and actual.dtype.itemsize == 1:  # no arithmetic; they are compared by their bits
        first = tuple((~matches).nonzero()[0].tolist())
        title = _title("Tensor-likes", identifier, "'equal'")
        return f"{title}\n\n{count}\nThe first mismatched element is at index {first}."
    lines = [_title("Tensor-likes", identifier, "equal" if _is_exact(rtol, atol) else "close"), "", count]
    absolute, relative = _differences(actual, expected, matches)
    for name, differences, tolerance in (("absolute", absolute, atol), ("relative", relative, rtol)):
        at = int(differences.argmax())
        index = tuple(int(i) for i in np.unravel_index(at, tuple(matches.shape)))
        lines.append(f"Greatest {name} difference: {differences[at].item()} at index {index}{_allowed(tolerance, rtol, atol)}")
    return "\n".join(lines)


def _differences(actual: Tensor, expected: Tensor, matches: Tensor) -> tuple[Tensor, Tensor]:
    """Absolute and relative differences, flat; zero where values match, which may be infinite there."""
    if not actual.dtype.inexact:
        actual, expected = actual.to(_dtype.int64), expected.to(_dtype.int64)
    one, other, same = actual.flatten(), expected.flatten(), matches.flatten()
    absolute = (one - other).abs()
    absolute[same] = 0
    relative = absolute / other.abs()
    relative[same] = 0
    return absolute, relative


def _title(usual: str, identifier: Text, relation: str) -> str:
    subject = identifier(usual) if callable(identifier) else identifier or usual
    return f"{subject} are not {relation}!"


def _is_exact(rtol: float, atol: float) -> bool:
    return rtol == 0 and atol == 0


def _allowed(tolerance: float, rtol: float, atol: float) -> str:
    return "" if _is_exact(rtol, atol) else f" (up to {tolerance} allowed)"
