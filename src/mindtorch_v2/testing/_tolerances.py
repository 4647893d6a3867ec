"""How far values of a dtype may be apart: relative and absolute tolerances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import _dtype
from .._tensor import Tensor
from ._mismatch import ErrorMeta

__all__ = ["default_tolerances", "get_tolerances"]

_TOLERANCES = {
    _dtype.float16: (1e-3, 1e-5),
    _dtype.bfloat16: (1.6e-2, 1e-5),
    _dtype.float32: (1.3e-6, 1e-5),
    _dtype.float64: (1e-7, 1e-7),
    _dtype.complex64: (1.3e-6, 1e-5),
    _dtype.complex128: (1e-7, 1e-7),
}


def default_tolerances(
    *inputs: Tensor | _dtype.dtype, dtype_precisions: Mapping[_dtype.dtype, tuple[float, float]] | None = None
) -> tuple[float, float]:
    """The relative and the absolute tolerance for values of these dtypes: the wider ones. Others than floating point must be equal."""
    by_dtype = dtype_precisions or _TOLERANCES
    found = [by_dtype.get(_dtype_of(x), (0.0, 0.0)) for x in inputs]
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def _dtype_of(value: Any) -> _dtype.dtype:
    if isinstance(value, Tensor):
        return value.dtype
    if isinstance(value, _dtype.dtype):
        return value
    raise TypeError(f"Expected a torch.Tensor or a torch.dtype, but got {type(value)} instead.")


def get_tolerances(
    *inputs: Tensor | _dtype.dtype, rtol: float | None, atol: float | None, id: tuple[Any, ...] = ()
) -> tuple[float, float]:
    """The tolerances that were given, which must be both or none, or those of the dtypes."""
    if rtol is not None and atol is not None:
        return rtol, atol
    if rtol is not None or atol is not None:
        absent = "rtol" if rtol is None else "atol"
        raise ErrorMeta(ValueError, f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {absent}.", id=id)
    return default_tolerances(*inputs)
