"""Limits of the number types: `finfo` and `iinfo`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from . import _dtype

__all__ = ["finfo", "iinfo"]


class finfo:  # noqa: N801 - torch's spelling
    """Limits of a floating-point type (of its parts, for a complex one); without an argument, of the default type."""

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: _dtype.dtype | None = None) -> None:
        d = _dtype.get_default_dtype() if type is None else _dtype.as_dtype(type, "finfo", "type")
        if not d.inexact:
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'")
        d = d.to_real()
        kind = d.decoded if isinstance(d, _dtype.NarrowDtype) else d.np
        if kind is None:
            raise TypeError(f"torch.finfo() has no limits of {d}")
        info: Any = np.finfo(kind) if kind.type.__module__ == "numpy" else ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
        self.bits: int = d.itemsize * 8
        self.eps = 0.125 if d.name == "float8_e5m2fnuz" else float(info.eps)  # torch: half of the step after one
        self.max = float(info.max)
        self.min = float(info.min)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.resolution = float(f"1e-{0 if d.itemsize == 1 else info.precision}")
        self.dtype = d.name

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{n}={getattr(self, n):g}' for n in names)}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((finfo, self.dtype))


class iinfo:  # noqa: N801 - torch's spelling
    """Limits of an integer type."""

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: _dtype.dtype) -> None:
        type = _dtype.as_dtype(type, "iinfo", "type")
        if type.inexact:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type is _dtype.bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        info = np.iinfo(type.np)
        self.bits: int = type.itemsize * 8
        self.max, self.min = int(info.max), int(info.min)
        self.dtype = type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((iinfo, self.dtype))
