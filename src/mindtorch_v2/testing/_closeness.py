"""`assert_close`: numbers, tensors, and sequences and mappings of them, compared with tolerances that fit their dtype."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from .. import _dtype, _memory_format
from .._creation import as_tensor
from .._promotion import promote_types
from .._tensor import Tensor

__all__ = ["assert_allclose", "assert_close", "default_tolerances"]

_TOLERANCES = {
    _dtype.float16: (1e-3, 1e-5),
    _dtype.bfloat16: (1.6e-2, 1e-5),
    _dtype.float32: (1.3e-6, 1e-5),
    _dtype.float64: (1e-7, 1e-7),
    _dtype.complex64: (1.3e-6, 1e-5),
    _dtype.complex128: (1e-7, 1e-7),
}
_NUMBERS = {bool: _dtype.bool_, int: _dtype.int64, float: _dtype.float64, complex: _dtype.complex128}


def default_tolerances(*dtypes: _dtype.dtype) -> tuple[float, float]:
    """The relative and the absolute tolerance for values of these dtypes: the wider ones."""
    found = [_TOLERANCES.get(d, (0.0, 0.0)) for d in dtypes]
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


class _Mismatch(Exception):  # noqa: N818 - not an error of its own
    """Two values differ; the text says how."""


class _Comparison:
    """How values are compared."""

    def __init__(self, *, rtol: float | None, atol: float | None, equal_nan: bool, allow_subclasses: bool, **checks: bool) -> None:
        if (rtol is None) != (atol is None):
            raise ValueError(
                f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {'rtol' if rtol is None else 'atol'}."
            )
        self.given = None if rtol is None or atol is None else (rtol, atol)
        self.equal_nan, self.allow_subclasses, self.checks = equal_nan, allow_subclasses, checks

    def tolerances(self, *dtypes: _dtype.dtype) -> tuple[float, float]:
        return default_tolerances(*dtypes) if self.given is None else self.given

    def pairs(self, actual: Any, expected: Any, place: str = "") -> Iterator[tuple[Any, Any, str]]:
        """The values inside sequences and mappings, two by two, with the place where they are."""
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            if set(actual) != set(expected):
                missing, more = sorted(set(expected) - set(actual), key=str), sorted(set(actual) - set(expected), key=str)
                text = "The keys of the mappings do not match:\n"
                text += f"Missing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {more}"
                raise _Mismatch(text + _at(place))
            for key in actual:
                yield from self.pairs(actual[key], expected[key], f"{place}[{key!r}]")
        elif _is_sequence(actual) and _is_sequence(expected):
            if len(actual) != len(expected):
                raise _Mismatch(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{_at(place)}")
            for index, (one, other) in enumerate(zip(actual, expected)):
                yield from self.pairs(one, other, f"{place}[{index}]")
        else:
            yield actual, expected, place

    def comparison_of(self, actual: Any, expected: Any) -> Callable[[Any, Any], None]:
        """The function that compares two values that hold no others."""
        if actual is None or expected is None:
            return _compare_none
        if isinstance(actual, bool | np.bool_) and isinstance(expected, bool | np.bool_):
            return _compare_booleans
        if isinstance(actual, Number | np.number) and isinstance(expected, Number | np.number):
            return self.compare_numbers
        related = type(actual) is type(expected) or (
            self.allow_subclasses and (isinstance(actual, type(expected)) or isinstance(expected, type(actual)))
        )
        if related and isinstance(actual, Tensor | np.ndarray):
            return self.compare_tensors
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")

    def compare_numbers(self, actual: Any, expected: Any) -> None:
        if self.checks["dtype"] and type(actual) is not type(expected):
            raise _Mismatch(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
        dtypes = (_NUMBERS.get(type(actual), _dtype.float64), _NUMBERS.get(type(expected), _dtype.float64))
        self.check_number(actual, expected, *self.tolerances(*dtypes))

    def check_number(self, actual: Any, expected: Any, rtol: float, atol: float) -> None:
        if actual == expected or (self.equal_nan and actual != actual and expected != expected):
            return
        difference = abs(actual - expected)
        if math.isfinite(difference) and difference <= atol + rtol * abs(expected):
            return
        relative = difference / abs(expected) if expected else math.inf
        text = f"Scalars are not {_kind(rtol, atol)}!\n\nExpected {expected} but got {actual}.\nAbsolute difference: {difference}"
        raise _Mismatch(f"{text}{_allowed(atol, rtol, atol)}\nRelative difference: {relative}{_allowed(rtol, rtol, atol)}")

    def compare_tensors(self, actual: Any, expected: Any) -> None:
        actual, expected = _tensor(actual), _tensor(expected)
        self.check_attributes(actual, expected)
        rtol, atol = self.tolerances(actual.dtype, expected.dtype)
        if actual.layout is not _memory_format.strided or expected.layout is not _memory_format.strided:
            actual, expected = actual.to_dense(), expected.to_dense()
        common = promote_types(actual.dtype, expected.dtype)
        one, other = actual.detach().cpu().to(common), expected.detach().cpu().to(common)
        close = one.isclose(other, rtol=rtol, atol=atol, equal_nan=self.equal_nan)
        if bool(close.all()):
            return
        if one.ndim == 0:
            self.check_number(one.item(), other.item(), rtol, atol)
        raise _Mismatch(_tensors_differ(one, other, close, rtol, atol))

    def check_attributes(self, actual: Tensor, expected: Tensor) -> None:
        """Shape, layout, device, dtype and stride, as far as asked for."""
        read: dict[str, tuple[bool, Callable[[Tensor], Any]]] = {
            "shape": (True, lambda t: t.shape),
            "layout": (self.checks["layout"], lambda t: t.layout),
            "device": (self.checks["device"], lambda t: t.device),
            "dtype": (self.checks["dtype"], lambda t: t.dtype),
            "stride()": (self.checks["stride"], lambda t: t.stride()),
        }
        for name, (wanted, of) in read.items():
            if wanted and of(actual) != of(expected):
                raise _Mismatch(f"The values for attribute '{name}' do not match: {of(actual)} != {of(expected)}.")


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _compare_none(actual: Any, expected: Any) -> None:
    if actual is not expected:
        raise _Mismatch(f"None mismatch: {actual} is not {expected}")


def _compare_booleans(actual: Any, expected: Any) -> None:
    if bool(actual) is not bool(expected):
        raise _Mismatch(f"Booleans mismatch: {bool(actual)} is not {bool(expected)}")


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else as_tensor(value)


def _kind(rtol: float, atol: float) -> str:
    return "equal" if rtol == 0 and atol == 0 else "close"


def _allowed(tolerance: float, rtol: float, atol: float) -> str:
    return "" if rtol == 0 and atol == 0 else f" (up to {tolerance} allowed)"


def _tensors_differ(actual: Tensor, expected: Tensor, close: Tensor, rtol: float, atol: float) -> str:
    wrong = ~close
    count, total = int(wrong.sum()), close.numel()
    if not actual.dtype.inexact:
        actual, expected = actual.to(_dtype.int64), expected.to(_dtype.int64)
    absolute = (actual - expected).abs()
    relative = absolute / expected.abs()
    absolute[close] = 0  # values that match may differ by infinity or nan
    relative[close] = 0
    lines = [f"Tensor-likes are not {_kind(rtol, atol)}!", "", f"Mismatched elements: {count} / {total} ({count / total:.1%})"]
    for name, differences, tolerance in (("absolute", absolute, atol), ("relative", relative, rtol)):
        at = int(differences.flatten().argmax())
        index = tuple(int(i) for i in np.unravel_index(at, tuple(differences.shape)))
        lines.append(
            f"Greatest {name} difference: {differences.flatten()[at].item()} at index {index}{_allowed(tolerance, rtol, atol)}"
        )
    return "\n".join(lines)


def _at(place: str) -> str:
    return f"\n\nThe failure occurred for item {place}" if place else ""


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless `actual` is close to `expected`: |actual - expected| <= atol + rtol * |expected|, element by element.

    Without tolerances those of the dtype are taken; integers must be equal. `msg` is the text of the error, or makes it from the usual one.
    """
    comparison = _Comparison(
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        allow_subclasses=allow_subclasses,
        device=check_device,
        dtype=check_dtype,
        layout=check_layout,
        stride=check_stride,
    )
    try:
        compared = [
            (comparison.comparison_of(one, other), one, other, place) for one, other, place in comparison.pairs(actual, expected)
        ]
        for compare, one, other, place in compared:
            try:
                compare(one, other)
            except _Mismatch as mismatch:
                raise _Mismatch(f"{mismatch}{_at(place)}") from None
    except _Mismatch as mismatch:
        text = str(mismatch)
    else:
        return
    raise AssertionError(text if msg is None else msg(text) if callable(msg) else msg)


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = ""
) -> None:
    """The older `assert_close`, which checks neither dtype nor device."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    one = actual if isinstance(actual, Tensor) else as_tensor(actual)
    other = expected if isinstance(expected, Tensor) else as_tensor(expected, dtype=one.dtype)
    assert_close(one, other, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, msg=msg or None)
