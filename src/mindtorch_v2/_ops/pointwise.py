"""Arithmetic, element by element."""

from __future__ import annotations

import numpy as np

from .declare import op

add = op(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    pointwise="same",
    cpu=np.add,
    inplace=True,
    grad={"self": lambda grad: grad, "other": lambda grad, alpha: grad if alpha == 1 else grad * alpha},
)
mul = op(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    cpu=np.multiply,
    inplace=True,
    grad={"self": lambda grad, other: grad * _conj(other), "other": lambda grad, self: grad * _conj(self)},
)


def _conj(x):
    return x
