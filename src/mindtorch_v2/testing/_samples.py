"""`make_tensor`: random values in a range, for tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from .. import _dtype
from .._dtype_info import finfo, iinfo
from .._functions import functions
from .._memory_format import contiguous_format
from .._tensor import Tensor
from .._types import OptionalDevice, OptionalMemoryFormat

__all__ = ["make_tensor"]


def make_tensor(
    *shape: Any,
    dtype: _dtype.dtype,
    device: OptionalDevice,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: OptionalMemoryFormat = None,
) -> Tensor:
    """A tensor with values from `[low, high)`: from -9 to 9 for floating point numbers, -9 to 9 for integers, 0 to 9 for unsigned ones.

    `noncontiguous` leaves gaps between elements of the last dimension. `exclude_zero` puts the smallest positive number in the place of zeros.
    """
    size = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and {memory_format=}"
        )
    if not isinstance(dtype, _dtype.dtype):
        raise TypeError(f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor(); pass a torch.dtype")
    if requires_grad and not dtype.inexact:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    low, high = _range(dtype, low, high)
    if noncontiguous and math.prod(size) > 1:
        made = _random((*size[:-1], 2 * size[-1]), dtype, device, low, high)[..., 1::2]
    else:
        made = _random(size, dtype, device, low, high)
    if memory_format not in (None, contiguous_format):
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = finfo(dtype).tiny if dtype.inexact else 1
    return made.requires_grad_() if requires_grad else made


def _range(d: _dtype.dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """The range to draw from, inside what the dtype can hold."""
    lowest: float
    highest: float
    if d is _dtype.bool_:
        lowest, highest, default = 0, 2, (0, 2)
    elif d.inexact:
        lowest, highest, default = finfo(d).min, finfo(d).max, (-9, 9)
    else:
        lowest, highest = iinfo(d).min, iinfo(d).max
        default = (max(-9, int(lowest)), 10)
    low, high = default[0] if low is None else low, default[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and d.inexact:
        message = "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead."
        warnings.warn(message, FutureWarning, stacklevel=4)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < lowest or low > highest:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {d} only supports [{lowest}, {highest}]"
        )
    low, high = max(low, lowest), min(high, highest)
    return (low, high) if d.inexact else (math.ceil(low), math.ceil(high))


def _random(size: Sequence[int], d: _dtype.dtype, device: OptionalDevice, low: float, high: float) -> Tensor:
    made: Tensor
    if not d.inexact:
        made = functions["randint"](int(low), int(high), size, device=device, dtype=d)
        return made
    made = functions["empty"](size, device=device, dtype=d)
    (functions["view_as_real"](made) if d.is_complex else made).uniform_(low, high)
    return made
