"""Sequences that fill the unit cube more evenly than random points do."""

from __future__ import annotations

from . import _dtype
from ._functions import functions
from ._ops.machinery.lookup import aten
from ._random import Generator
from ._tensor import Tensor
from ._types import OptionalDType

__all__ = ["SobolEngine"]


class SobolEngine:
    """Points of a Sobol' sequence in the unit cube, drawn in order; scrambled ones keep the evenness and differ by seed."""

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], and {dimension} was asked for"
            )
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        self.sobolstate: Tensor = functions["zeros"](dimension, self.MAXBIT, device="cpu", dtype=_dtype.int64)
        aten._sobol_engine_initialize_state_(self.sobolstate, dimension)
        self.shift: Tensor = self._scramble() if scramble else functions["zeros"](dimension, device="cpu", dtype=_dtype.int64)
        self.quasi: Tensor = self.shift.clone()
        self._first_point: Tensor = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: OptionalDType = None) -> Tensor:
        """The next n points, one a row."""
        chosen = _dtype.get_default_dtype() if dtype is None else dtype
        if self.num_generated:
            result, self.quasi = self._steps(n, self.num_generated - 1, chosen)
        else:
            result = self._first_point.to(chosen)
            if n != 1:
                others, self.quasi = self._steps(n - 1, 0, chosen)
                result = functions["cat"]((result, others), -2)
        self.num_generated += n
        if out is None:
            return result
        return out.resize_as_(result).copy_(result)

    def _steps(self, n: int, done: int, dtype: OptionalDType) -> tuple[Tensor, Tensor]:
        return aten._sobol_engine_draw(self.quasi, n, self.sobolstate, self.dimension, done, dtype)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: OptionalDType = None) -> Tensor:
        """The next 2**m points; all points so far must be a power of two as well, which is what keeps them balanced."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2: {self.num_generated} points were drawn before, "
                f"and with 2**{m} more there would be {total}. Use 'SobolEngine.draw()' for any number of points."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin with the first point again."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip n points."""
        steps, done = (n, self.num_generated - 1) if self.num_generated else (n - 1, 0)
        aten._sobol_engine_ff_(self.quasi, steps, self.sobolstate, self.dimension, done)
        self.num_generated += n
        return self

    def _scramble(self) -> Tensor:
        """Scramble the direction numbers; returns the point that the sequence starts from."""
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        bits = functions["randint"](2, (self.dimension, self.MAXBIT), device="cpu", generator=generator)
        powers = functions["pow"](2, functions["arange"](0, self.MAXBIT, device="cpu"))
        shift: Tensor = functions["mv"](bits, powers)
        square = (self.dimension, self.MAXBIT, self.MAXBIT)
        matrices = functions["randint"](2, square, device="cpu", generator=generator).tril()
        aten._sobol_engine_scramble_(self.sobolstate, matrices, self.dimension)
        return shift

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"
