"""Comparisons, and logic on truth values."""

from __future__ import annotations

from typing import Any

import numpy as np

from .declare import op


def _comparison(name: str, ufunc: Any) -> Any:
    return op(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor", pointwise="bool", cpu=ufunc, inplace=True, tags=("nondifferentiable",)
    )


eq = _comparison("eq", np.equal)
ne = _comparison("ne", np.not_equal)
lt = _comparison("lt", np.less)
le = _comparison("le", np.less_equal)
gt = _comparison("gt", np.greater)
ge = _comparison("ge", np.greater_equal)
