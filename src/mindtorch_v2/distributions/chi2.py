"""Sums of squares of standard normal numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._types import Number
from . import constraints
from .gamma import Gamma

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["Chi2"]


class Chi2(Gamma):
    """χ² with `df` degrees of freedom: a gamma distribution of shape df / 2 and rate 1 / 2."""

    arg_constraints = {"df": constraints.positive}
    _batched = Gamma._batched

    def __init__(self, df: Tensor | Number, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
