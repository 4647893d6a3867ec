"""Views and copies of other shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .declare import op

Array = np.ndarray[Any, Any]

t = op(
    "t(Tensor(a) self) -> Tensor(a)",
    cpu=lambda self: self.T,
    grad={"self": lambda grad: grad.t()},
)
permute = op(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    cpu=lambda self, dims: self.transpose(dims),
    grad={"self": lambda grad, dims: grad.permute(tuple(np.argsort(dims)))},
)
