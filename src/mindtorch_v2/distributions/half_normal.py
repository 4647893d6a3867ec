"""Absolute values of normal variates."""

from __future__ import annotations

import math
from typing import Any

from . import constraints
from ._half import Half
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """|x| for x of a normal distribution around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    _batched = {}

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (1 - 2 / math.pi)
