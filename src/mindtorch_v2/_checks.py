"""Argument rules that many operators share, with torch's error texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["broadcast_error", "broadcast_shapes", "contiguous_strides", "dimension_error", "no_dimensions", "wrap_dim", "wrap_dims"]


def dimension_error(dim: int, ndim: int) -> IndexError:
    low, high = -max(ndim, 1), max(ndim, 1) - 1
    return IndexError(f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})")


def no_dimensions(dim: int) -> IndexError:
    """The complaint about a dimension of a zero-dim tensor, where torch asks for its size before anything else."""
    return IndexError(f"Dimension specified as {dim} but tensor has no dimensions")


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front. A zero-dim tensor has one dimension here, as in torch."""
    n = ndim or 1
    if not -n <= dim < n:
        raise dimension_error(dim, ndim)
    return dim + n if dim < 0 else dim


def wrap_dims(dims: Iterable[int], ndim: int) -> tuple[int, ...]:
    """Distinct dimensions counted from the front."""
    wrapped = tuple(wrap_dim(d, ndim) for d in dims)
    if len(set(wrapped)) != len(wrapped):
        repeated = next(d for d in wrapped if wrapped.count(d) > 1)
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    return wrapped


def broadcast_error(a: Sequence[int], b: Sequence[int]) -> RuntimeError:
    """The complaint about two shapes that do not broadcast."""
    for i in range(1, min(len(a), len(b)) + 1):
        if a[-i] != b[-i] and 1 not in (a[-i], b[-i]):
            dim = max(len(a), len(b)) - i
            return RuntimeError(
                f"The size of tensor a ({a[-i]}) must match the size of tensor b ({b[-i]}) at non-singleton dimension {dim}"
            )
    return RuntimeError(f"shapes {list(a)} and {list(b)} do not broadcast")


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that all of these broadcast to."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        n = max(len(result), len(shape))
        a = (1,) * (n - len(result)) + tuple(result)
        b = (1,) * (n - len(shape)) + tuple(shape)
        if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
            raise broadcast_error(result, shape)
        result = tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
    return result


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of a row-major tensor."""
    strides: list[int] = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def torch_strides(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Strides where NumPy's zeros for new dimensions of extent one are what torch has there: the next dimension's reach."""
    fixed = list(strides)
    for i in range(len(shape) - 1, -1, -1):
        if shape[i] == 1 and fixed[i] == 0:
            fixed[i] = 1 if i == len(shape) - 1 else shape[i + 1] * fixed[i + 1]
    return tuple(fixed)


def read_only_error() -> RuntimeError:
    return RuntimeError("unsupported operation: the tensor's memory is read-only; clone() it before writing in place")


def type_name(value: Any) -> str:
    return type(value).__name__
