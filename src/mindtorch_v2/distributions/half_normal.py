"""Absolute values of normal variates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .._types import Number
from . import constraints
from ._half import Half
from .normal import Normal

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """|x| for x of a normal distribution around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    _batched = {}

    def __init__(self, scale: Tensor | Number, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)
