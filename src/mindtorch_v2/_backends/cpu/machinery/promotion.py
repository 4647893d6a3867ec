"""torch's promotion for kernels that take operands as they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import _promotion
from ...._dtype import FROM_NUMPY, dtype


class _Operand:
    """An array as promotion sees tensors."""

    __slots__ = ("_array", "dtype")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        self.dtype = FROM_NUMPY[array.dtype]


def result_type(*operands: Any) -> dtype:
    """The dtype of what is computed from these arrays and numbers."""
    return _promotion.result_type_of([_Operand(x) if isinstance(x, np.ndarray) else x for x in operands])
