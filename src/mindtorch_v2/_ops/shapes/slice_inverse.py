"""From a slice back to what it was cut from, and bounds that sizes are said to have."""

from __future__ import annotations

from ..._tensor import Tensor
from ..._types import Number
from ..machinery.declare import op
from .reshaping import as_strided, zeros
from .slicing import slice_
from .view_copies import slice_scatter

__all__: list[str] = []

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


def _slice_inverse(self: Tensor, src: Tensor, dim: int, start: int | None, end: int | None, step: int) -> Tensor:
    """The memory of a slice in the geometry of `src`, from which it was cut."""
    return as_strided(self, src._array.shape, src.stride(), src.storage_offset())


op(
    "slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
    composite=_slice_inverse,
    grad={
        "self": lambda grad, dim, start, end, step: slice_(grad, dim, start, end, step),
        "src": lambda grad, self_shape, dim, start, end, step: slice_scatter(grad, zeros(self_shape, grad), dim, start, end, step),
    },
)


def _constrain(size: Number, low: int, high: int) -> None:
    if high < low:
        raise RuntimeError(f"Max must be greater than or equal to min. Got min={low} max={high}")
    if not low <= int(size.real) <= high:
        raise RuntimeError(f"Invalid value range for {int(size.real)} between [{low}, {high}].")


def _constrain_range(size: Number, min: int | None, max: int | None) -> None:
    _constrain(size, _LOWEST if min is None else min, _HIGHEST if max is None else max)


def _constrain_for_size(size: Number, min: int | None, max: int | None) -> None:
    if max is not None and max <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {max}")
    _constrain(size, 0 if min is None else min, _HIGHEST if max is None else max)


op("sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", composite=_constrain_range, variants="function")
op(
    "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()",
    composite=_constrain_for_size,
    variants="function",
)
