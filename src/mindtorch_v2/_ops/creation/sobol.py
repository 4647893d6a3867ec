"""The steps of a Sobol' engine: direction numbers, points, skipping, scrambling."""

from __future__ import annotations

from ... import _dtype
from ..._backends.cpu.creation import sobol as kernels
from ..._types import Array, OptionalDType
from ..machinery.declare import op


def _integers(name: str, array: Array) -> None:
    if array.dtype != _dtype.int64.np:
        raise RuntimeError(f"{name} needs to be of type Long")


def _initialize(self: Array, dimension: int) -> None:
    _integers("sobolstate", self)
    self[...] = kernels.initial_state(dimension)


def _draw(quasi: Array, n: int, sobolstate: Array, dimension: int, num_generated: int, dtype: OptionalDType) -> tuple[Array, Array]:
    _integers("sobolstate", sobolstate)
    _integers("quasi", quasi)
    points, last = kernels.points(quasi, n, sobolstate, num_generated)
    chosen = _dtype.float32 if dtype is None else dtype
    return points.T.astype(chosen.np) * chosen.np.type(2.0**-kernels.BITS), last


def _skip(self: Array, n: int, sobolstate: Array, dimension: int, num_generated: int) -> None:
    _integers("sobolstate", sobolstate)
    _integers("quasi", self)
    kernels.advance(self, n, sobolstate, num_generated)


def _scramble(self: Array, ltm: Array, dimension: int) -> None:
    _integers("sobolstate", self)
    _integers("ltm", ltm)
    kernels.scramble(self, ltm)


_sobol_engine_initialize_state_ = op(
    "_sobol_engine_initialize_state_(Tensor(a!) self, int dimension) -> Tensor(a!)",
    cpu=_initialize,
    variants="function",
)
_sobol_engine_draw = op(
    "_sobol_engine_draw(Tensor quasi, int n, Tensor sobolstate, int dimension, int num_generated, ScalarType? dtype) -> (Tensor, Tensor)",
    cpu=_draw,
    variants="function",
)
_sobol_engine_ff_ = op(
    "_sobol_engine_ff_(Tensor(a!) self, int n, Tensor sobolstate, int dimension, int num_generated) -> Tensor(a!)",
    cpu=_skip,
    variants="function",
)
_sobol_engine_scramble_ = op(
    "_sobol_engine_scramble_(Tensor(a!) self, Tensor ltm, int dimension) -> Tensor(a!)",
    cpu=_scramble,
    variants="function",
)
