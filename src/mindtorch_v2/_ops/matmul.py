"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor import Tensor
from . import shape
from .declare import op

Array = np.ndarray[Any, Any]

mm = op(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    cpu=lambda self, mat2: np.matmul(self, mat2),
    shape=lambda self, mat2: (self.shape[0], mat2.shape[1]),
    grad={"self": lambda grad, mat2: mm(grad, mat2.t()), "mat2": lambda grad, self: mm(self.t(), grad)},
    flops=lambda self, mat2: 2 * self.shape[0] * self.shape[1] * mat2.shape[1],
)
addmm = op(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    cpu=lambda self, mat1, mat2, beta, alpha: _addmm(self, mat1, mat2, beta, alpha),
    shape=lambda mat1, mat2: (mat1.shape[0], mat2.shape[1]),
    grad={
        "self": lambda grad, beta: grad if beta == 1 else grad * beta,
        "mat1": lambda grad, mat2, alpha: _scaled(mm(grad, mat2.t()), alpha),
        "mat2": lambda grad, mat1, alpha: _scaled(mm(mat1.t(), grad), alpha),
    },
    inplace=True,
)


def _addmm(self: Array, mat1: Array, mat2: Array, beta: Any, alpha: Any) -> Array:
    out: Array = np.matmul(mat1, mat2)
    if alpha != 1:
        out *= alpha
    if beta == 1:
        out += self
    elif beta != 0:
        out += beta * self
    return out


def _scaled(x: Tensor, alpha: Any) -> Tensor:
    return x if alpha == 1 else x * alpha


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # noqa: A002
    if bias is None:
        return mm(input, shape.t(weight))  # type: ignore[no-any-return]
    return addmm(bias, input, shape.t(weight))  # type: ignore[no-any-return]


linear = op("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", composite=_linear, variants="")
