"""NumPy's dtypes under short names: kernels compare the dtypes of their arrays with these.

Comparing with a dtype takes 50 ns, with a scalar type (`np.float32`), which is converted first, ten times that.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ...._dtype import FROM_NUMPY

HALF: np.dtype[Any] = np.dtype(np.float16)
BFLOAT: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
HALVES = (HALF, BFLOAT)  # computed in float32, and rounded at the end
FLOAT: np.dtype[Any] = np.dtype(np.float32)
INT: np.dtype[Any] = np.dtype(np.int32)
LONG: np.dtype[Any] = np.dtype(np.int64)
BOOL: np.dtype[Any] = np.dtype(np.bool_)
UINT8: np.dtype[Any] = np.dtype(np.uint8)


def scalar_name(array: np.ndarray[Any, Any]) -> str:
    """The element type as most of torch's messages spell it: `Float`, `Long`."""
    return FROM_NUMPY[array.dtype].scalar_name


def cpp_name(array: np.ndarray[Any, Any]) -> str:
    """The element type as C++ spells it, which some of torch's messages show: `float`, `long int`."""
    return FROM_NUMPY[array.dtype].cpp_name
