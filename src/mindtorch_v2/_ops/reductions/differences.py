"""Finite differences and the trapezoid rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _checks, _dtype
from ..._tensor import Tensor
from ..._types import Number
from ..elementwise.arithmetic import div_number, mul_number
from ..machinery.declare import op
from ..machinery.lookup import aten

# --- diff -----------------------------------------------------------------------------------------------------------


def _diff(self: Tensor, n: int, dim: int, prepend: Tensor | None, append: Tensor | None) -> Tensor:
    _check_diff(self, n, dim, prepend, append)
    parts = [t for t in (prepend, self, append) if t is not None]
    joined = self if len(parts) == 1 else aten.cat(parts, dim)
    if n == 0:
        # torch: without a difference to take, what would be joined is left out
        return aten.zeros_like(self).copy_(self)
    dim = _checks.wrap_dim(dim, self._array.ndim)
    n = min(n, joined._array.shape[dim])
    for _ in range(n):
        length = joined._array.shape[dim]
        if length == 0:
            break
        upper, lower = joined.narrow(dim, 1, length - 1), joined.narrow(dim, 0, length - 1)
        joined = upper.logical_xor(lower) if joined.dtype.category == _dtype.BOOL else upper - lower
    return joined


def _check_diff(self: Tensor, n: int, dim: int, prepend: Tensor | None, append: Tensor | None) -> None:
    ndim = self._array.ndim
    if ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if prepend is None and append is None:
        return
    dim = _checks.wrap_dim(dim, ndim)
    for extra in (prepend, append):
        if extra is None:
            continue
        if extra._array.ndim != ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for i, (a, b) in enumerate(zip(self._array.shape, extra._array.shape, strict=True)):
            if i != dim and a != b:
                raise RuntimeError(
                    f"diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
                    f"dimension; input.size({i}) = {a}, but got tensor.size({i}) = {b}"
                )


diff = op("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", composite=_diff)

# --- gradient -------------------------------------------------------------------------------------------------------


def _dims_of(self: Tensor, dim: int | Sequence[int] | None) -> list[int]:
    ndim = self._array.ndim
    if dim is None:
        return list(range(ndim))
    dims = [dim] if isinstance(dim, int) else list(dim)
    _checks.wrap_dims(dims, ndim)
    return dims


def _gradient(self: Tensor, spacing: Any, dim: int | Sequence[int] | None, edge_order: int) -> tuple[Tensor, ...]:
    dims = _dims_of(self, dim)
    spacings: list[Any]
    if spacing is None:
        spacings = [1] * len(dims)
    elif isinstance(spacing, list | tuple):
        spacings = list(spacing)
    else:
        spacings = [spacing] * len(dims)
    _check_gradient(self, spacings, dims, edge_order, dims_given=dim is not None)
    return tuple([_gradient_along(self, h, d, edge_order) for h, d in zip(spacings, dims, strict=True)])


def _check_gradient(self: Tensor, spacings: list[Any], dims: list[int], edge_order: int, *, dims_given: bool) -> None:
    if self.dtype is _dtype.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if len(spacings) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
            f"{self._array.ndim}', since dim argument was not given, but got a list of length {len(spacings)}"
            if not dims_given
            else "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same "
            f"length, but got a spacing argument of length {len(spacings)} and a dim argument of length {len(dims)}."
        )
    for d in dims:
        if self._array.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    for h in spacings:
        if isinstance(h, Tensor) and h._array.ndim != 1:
            raise RuntimeError(f"torch.gradient expected each element of spacing to have one dimension, but got an element with {h._array.ndim} dimensions!")  # fmt: skip


def _gradient_along(self: Tensor, spacing: Tensor | float, dim: int, edge_order: int) -> Tensor:
    dim = _checks.wrap_dim(dim, self._array.ndim)
    n = self._array.shape[dim]

    def cut(start: int, stop: int, x: Tensor = self, along: int = dim) -> Tensor:
        return aten.slice(x, along, start, stop)

    if isinstance(spacing, Tensor):
        return _gradient_uneven(self, spacing, dim, edge_order)
    prepared: Tensor = (cut(2, n) - cut(0, n - 2)) / spacing
    if edge_order == 1:
        first: Tensor = (cut(1, 2) - cut(0, 1)) / spacing
        last: Tensor = (cut(n - 1, n) - cut(n - 2, n - 1)) / spacing
    else:
        first = (cut(0, 1) * -1.5 + cut(1, 2) * 2.0 - cut(2, 3) * 0.5) / spacing
        last = (cut(n - 1, n) * 1.5 - cut(n - 2, n - 1) * 2.0 + cut(n - 3, n - 2) * 0.5) / spacing
    return aten.cat([first, prepared / 2, last], dim)


def _gradient_uneven(self: Tensor, points: Tensor, dim: int, edge_order: int) -> Tensor:
    """Second-order differences over points at any distances; one-sided ones of the given order at both ends."""
    n = self._array.shape[dim]
    shape = [1] * self._array.ndim
    shape[dim] = -1
    steps = points.diff()

    def y(start: int, stop: int) -> Tensor:
        return aten.slice(self, dim, start, stop)

    def h(at: int) -> Tensor:
        return steps.select(0, at)

    a, b = aten.slice(steps, 0, 0, -1), aten.slice(steps, 0, 1)
    before = (-b / (a * (a + b))).reshape(shape)
    here = ((b - a) / (a * b)).reshape(shape)
    after = (a / (b * (a + b))).reshape(shape)
    middle = y(0, n - 2) * before + y(1, n - 1) * here + y(2, n) * after
    if edge_order == 1:
        first = (y(1, 2) - y(0, 1)) / h(0)
        last = (y(n - 1, n) - y(n - 2, n - 1)) / h(-1)
    else:
        a, b = h(0), h(1)
        first = y(0, 1) * (-(2 * a + b) / (a * (a + b))) + y(1, 2) * ((a + b) / (a * b)) + y(2, 3) * (-a / (b * (a + b)))
        a, b = h(-2), h(-1)
        last = (
            y(n - 3, n - 2) * (b / (a * (a + b)))
            + y(n - 2, n - 1) * (-(a + b) / (a * b))
            + y(n - 1, n) * ((a + 2 * b) / (b * (a + b)))
        )
    return aten.cat([first, middle, last], dim)


def _gradient_overload(overload: str, spacing: str, dim: str) -> Callable[..., Any]:
    def composite(self: Tensor, spacing: Any, dim: Sequence[int] | int | None, edge_order: int) -> tuple[Tensor, ...]:
        return _gradient(self, spacing, dim, edge_order)

    def even(self: Tensor, dim: Sequence[int], edge_order: int) -> tuple[Tensor, ...]:
        return _gradient(self, None, dim, edge_order)

    return op(
        f"gradient.{overload}(Tensor self, *, {spacing}{dim}, int edge_order=1) -> Tensor[]",
        composite=composite if spacing else even,
        variants="function",
    )


# Lists of tensors are tried before lists of numbers, which accept any list.
_gradient_overload("tensorarrayint", "Tensor[] spacing, ", "int? dim=None")
_gradient_overload("tensorarray", "Tensor[] spacing, ", "int[] dim")
_gradient_overload("scalarint", "Scalar? spacing=None, ", "int? dim=None")
_gradient_overload("scalararray", "Scalar spacing, ", "int[] dim")
_gradient_overload("array", "", "int[] dim")
_gradient_overload("scalarrayint", "Scalar[] spacing, ", "int? dim=None")
_gradient_overload("scalarrayarray", "Scalar[] spacing, ", "int[] dim")

# --- the trapezoid rule ---------------------------------------------------------------------------------------------


def _check_bool(name: str, *tensors: Tensor) -> None:
    if any(t.dtype.category == _dtype.BOOL for t in tensors):
        raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")


def _points(y: Tensor, x: Tensor, dim: int, name: str) -> Tensor:
    """The distances of the points, shaped so that they broadcast with pairs of neighbours in y."""
    wrapped = _checks.wrap_dim(dim, y._array.ndim)
    if x._array.ndim == 1:
        if x._array.size != y._array.shape[wrapped]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * y._array.ndim
        shape[wrapped] = x._array.size
        x = x.view(shape)
    elif x._array.ndim < y._array.ndim:
        x = x.view([1] * (y._array.ndim - x._array.ndim) + list(x._array.shape))
    n = x._array.shape[wrapped]
    return aten.slice(x, wrapped, 1, n) - aten.slice(x, wrapped, 0, n - 1)


def _pairs(y: Tensor, dim: int) -> Tensor:
    n = y._array.shape[dim]
    return aten.slice(y, dim, 1, n) + aten.slice(y, dim, 0, n - 1)


def _left_pairs(y: Tensor, dim: int) -> Tensor:
    n = y._array.shape[dim]
    return aten.slice(y, dim, 0, n - 1) + aten.slice(y, dim, 1, n)


def _trapezoid_x(y: Tensor, x: Tensor, dim: int) -> Tensor:
    wrapped = _checks.wrap_dim(dim, y._array.ndim)
    if not y._array.ndim:
        raise _checks.no_dimensions(wrapped)
    if not y._array.shape[dim]:
        return y.new_zeros(_without(y._array.shape, dim))
    _check_bool("trapezoid", x, y)
    steps = _points(y, x, dim, "trapezoid")
    return div_number((_left_pairs(y, dim) * steps).sum(dim), 2.0)


def _without(shape: Sequence[int], dim: int) -> list[int]:
    kept = list(shape)
    if kept:
        del kept[dim]
    return kept


def _trapezoid_dx(y: Tensor, dx: Number | float, dim: int) -> Tensor:
    _checks.wrap_dim(dim, y._array.ndim)
    if not y._array.ndim:
        raise _checks.no_dimensions(dim)
    if not y._array.shape[dim]:
        return y.new_zeros(_without(y._array.shape, dim))
    if y.dtype.category == _dtype.BOOL:
        raise RuntimeError("trapezoid: received a bool input for `y`, but bool is not supported")
    ends = mul_number(y.select(dim, 0) + y.select(dim, -1), 0.5)
    return mul_number(y.sum(dim) - ends, dx)


def _check_sliceable(y: Tensor) -> None:
    if not y._array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")


def _cumulative_x(y: Tensor, x: Tensor, dim: int) -> Tensor:
    _checks.wrap_dim(dim, y._array.ndim)
    _check_sliceable(y)
    _check_bool("cumulative_trapezoid", x, y)
    steps = _points(y, x, dim, "cumulative_trapezoid")
    return div_number((_left_pairs(y, dim) * steps).cumsum(dim), 2.0)


def _cumulative_dx(y: Tensor, dx: Number, dim: int) -> Tensor:
    _checks.wrap_dim(dim, y._array.ndim)
    _check_sliceable(y)
    if y.dtype.category == _dtype.BOOL:
        raise RuntimeError("cumulative_trapezoid: received a bool input for `y`, but bool is not supported")
    return mul_number(_left_pairs(y, dim), dx / 2.0).cumsum(dim)


trapezoid_x = op("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", composite=_trapezoid_x, variants="function")
trapezoid_dx = op("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", composite=_trapezoid_dx, variants="function")
trapz_x = op(
    "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    composite=_trapezoid_x,
    variants="function",
)
trapz_dx = op(
    "trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor",
    composite=_trapezoid_dx,
    variants="function",
)
cumulative_trapezoid_x = op(
    "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", composite=_cumulative_x, variants="function"
)
cumulative_trapezoid_dx = op(
    "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", composite=_cumulative_dx, variants="function"
)
