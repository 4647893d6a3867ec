"""Factories of numbers in order: `arange`, `linspace`, `logspace`, `eye`, indices of triangles."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ... import _device, _dtype
from ..._backends.cpu.creation import ranges as kernels
from ..._backends.cpu.machinery.dtype_rules import refusal
from ..._creation import allocate, device_of, dtype_of, require_grad
from ..._dispatch import keys
from ..._tensor import Tensor, wrap_sized
from ..._types import DType, Number, OptionalDevice, OptionalDType, OptionalLayout
from ..machinery.declare import public
from ..machinery.factory import check_options, factory, public_function, with_out

_FILLED = ("keeps_out_shape",)


def _number(x: Tensor) -> Any:
    """A Scalar argument as a Python number."""
    return x.item() if isinstance(x, Tensor | np.generic) else x


def _range_dtype(dtype: OptionalDType, *values: Any) -> _dtype.dtype:
    if dtype is not None:
        return dtype_of(dtype)
    return _dtype.get_default_dtype() if any(isinstance(v, float) for v in values) else _dtype.int64


def _arange(
    start: Any,
    end: Any,
    step: Any,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    if (
        dtype is None
        and start.__class__ is end.__class__ is step.__class__ is int
        and (end - start) * step > 0
        and device is _device.cpu
    ):
        return wrap_sized(np.arange(start, end, step), _dtype.int64)
    d, where = _range_dtype(dtype, _number(start), _number(end), _number(step)), device_of(device)
    start, step, n = _range_of(start, end, step, d)
    if where.key == keys.META:
        return allocate((n,), d, where)
    return wrap_sized(kernels.progression(start, step, n, d), d)


def _range_of(start: Any, end: Any, step: Any, d: _dtype.dtype) -> tuple[Any, Any, int]:
    """The first number of a range, the distance of the others, and how many there are."""
    start, end, step = _number(start), _number(end), _number(step)
    if d.is_complex or d is _dtype.bool_:
        raise refusal("arange_cpu", d)
    if d.category == _dtype.INTEGER and not (isinstance(start, int) and isinstance(end, int) and isinstance(step, int)):
        start, end, whole_step = int(start), int(end), int(step)
        if whole_step == 0 and step != 0:
            raise ValueError("step must be nonzero")
        step = whole_step
    _check_range(start, end, step)
    return start, step, max(0, math.ceil((end - start) / step)) if d.inexact else max(0, -((start - end) // step))


def _check_range(start: float, end: float, step: float) -> None:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not math.isfinite(start) or not math.isfinite(end):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (step > 0) != (end >= start) and end != start:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


arange_op = factory("arange.start_step(Scalar start, Scalar end, Scalar step=1, OPTIONS) -> Tensor", _arange, tags=_FILLED)
_arange_start = factory(
    "arange.start(Scalar start, Scalar end, OPTIONS) -> Tensor",
    lambda start, end, *options: _arange(start, end, 1, *options),
    tags=_FILLED,
)
_arange_end = factory("arange(Scalar end, OPTIONS) -> Tensor", lambda end, *options: _arange(0, end, 1, *options), tags=_FILLED)


_arange_tables = {3: arange_op.op.table, 2: _arange_start.op.table, 1: _arange_end.op.table}


def _range_arguments(args: tuple[Any, ...], start: Number, end: Number, step: Number) -> list[Any]:
    """(end), (start, end) or (start, end, step) from arguments of which some are named."""
    given = list(args)
    if start is not None:
        given.insert(0, start)
    if end is not None:
        given.append(end)
    if step is not None:
        if len(given) == 1:
            given.insert(0, 0)
        given.append(step)
    if not given:
        raise TypeError("arange() received an invalid combination of arguments: the end is missing")
    return given


@public("function")
def arange(
    *args: Any, start: Any = None, end: Any = None, step: Any = None, out: Tensor | None = None, dtype: DType | None = None, layout: OptionalLayout = None,
    device: OptionalDevice = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers from `start` (0) up to `end`, which is left out, in steps of `step` (1)."""
    given: Any = args
    if start is not None or end is not None or step is not None or not args:
        given = _range_arguments(args, start, end, step)
    if len(given) > 3:
        raise TypeError(f"arange() takes at most 3 positional arguments ({len(given)} given)")
    if layout is not None or pin_memory:
        check_options(layout, pin_memory)
    table = _arange_tables[len(given)]
    if out is not None:
        return with_out(table.op, (*given, dtype, layout, device, None), out, requires_grad)
    where = device_of(device)
    result: Tensor = table[where.key](*given, dtype, layout, where, pin_memory)
    if requires_grad:
        require_grad(result)
    return result


def _ends(name: str, start: Any, end: Any) -> tuple[Any, Any]:
    for which, value in (("start", start), ("end", end)):
        if isinstance(value, Tensor) and value.dim():
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {which} with {value.dim()} dimension(s)."
            )
    return _number(start), _number(end)


def _linspace(
    start: Number,
    end: Number,
    steps: int,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    start, end = _ends("linspace", start, end)
    d, where = _spaced_dtype("linspace", dtype, start, end), device_of(device)
    _check_steps("linspace", start, end, steps)
    if d.category == _dtype.BOOL and steps > 1:
        raise refusal("linspace_cpu", d)
    if where.key == keys.META:
        return allocate((steps,), d, where)
    return wrap_sized(kernels.spaced(start, end, int(steps), d), d)


def _check_steps(name: str, start: Number, end: Number, steps: Any) -> None:
    if isinstance(steps, bool) or not hasattr(type(steps), "__index__"):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({type(start).__name__}, {type(end).__name__}, "
            f"{type(steps).__name__}), but expected (Number start, Number end, int steps)"
        )
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")


def _spaced_dtype(name: str, dtype: OptionalDType, start: Number, end: Number) -> _dtype.dtype:
    is_complex = isinstance(start, complex) or isinstance(end, complex)
    if dtype is None:
        return _dtype.default_complex() if is_complex else _dtype.get_default_dtype()
    d = dtype_of(dtype)
    if is_complex and not d.is_complex:
        raise RuntimeError(f"torch.{name}(): inferred dtype {_dtype.default_complex()} can't be safely cast to passed dtype {d}")
    return d


def _logspace(
    start: Number,
    end: Number,
    steps: int,
    base: float,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    start, end = _ends("logspace", start, end)
    d, where = _spaced_dtype("logspace", dtype, start, end), device_of(device)
    _check_steps("logspace", start, end, steps)
    if d.category == _dtype.BOOL and steps > 1:
        raise refusal("logspace_cpu", d)
    if where.key == keys.META:
        return allocate((steps,), d, where)
    return wrap_sized(kernels.spaced_powers(start, end, int(steps), base, d), d)


linspace = factory("linspace(Scalar start, Scalar end, int steps, OPTIONS) -> Tensor", _linspace, tags=_FILLED)
logspace = factory("logspace(Scalar start, Scalar end, int steps, float base=10., OPTIONS) -> Tensor", _logspace, tags=_FILLED)


def _range(
    start: Any,
    end: Any,
    step: Any,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    start, end, step = _number(start), _number(end), _number(step)
    d, where = dtype_of(dtype), device_of(device)
    if d in _dtype.NOT_COUNTED:
        raise refusal("range_cpu", d)
    _check_range(start, end, step)
    n = math.floor((end - start) / step) + 1
    return (
        allocate((n,), d, where)
        if where.key == keys.META
        else wrap_sized(kernels.progression(start, step, n, d, in_registers=False), d)
    )


factory(
    "range(Scalar start, Scalar end, OPTIONS) -> Tensor", lambda start, end, *options: _range(start, end, 1, *options), tags=_FILLED
)
_range_step = factory("range.step(Scalar start, Scalar end, Scalar step=1, OPTIONS) -> Tensor", _range, tags=_FILLED)
_range_public = public_function(_range_step.op)


@public("function", name="range")
def range_(*args: Any, **options: Any) -> Tensor:
    """Numbers from `start` up to and with `end`. Deprecated: `arange` leaves the end out, as Python's range does."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range "
        "builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    return _range_public(*args, **options)


def _eye(n: int, m: int, dtype: OptionalDType, layout: OptionalLayout, device: OptionalDevice, pin_memory: bool | None) -> Tensor:
    d, where = dtype_of(dtype), device_of(device)
    for name, extent in (("n", n), ("m", m)):
        if extent < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {extent}")
    return allocate((n, m), d, where) if where.key == keys.META else wrap_sized(np.eye(n, m, dtype=d.np), d)


_eye_square = factory("eye(SymInt n, OPTIONS) -> Tensor", lambda n, *options: _eye(n, n, *options))
_eye_m = factory("eye.m(SymInt n, SymInt m, OPTIONS) -> Tensor", _eye)


@public("function")
def eye(n: int, m: int | None = None, *, out: Tensor | None = None, requires_grad: bool = False, **options: Any) -> Tensor:
    """Ones on the diagonal of an n × m matrix of zeros."""
    if m is None:
        return _eye_square(n, out=out, requires_grad=requires_grad, **options)
    return _eye_m_public(n, m, out=out, requires_grad=requires_grad, **options)


_eye_m_public = public_function(_eye_m.op)


_INDEX_DTYPES = (_dtype.int32, _dtype.int64)


def _triangle_indices(row: int, col: int, offset: int, dtype: OptionalDType, device: OptionalDevice, *, lower: bool) -> Tensor:
    for name, extent in (("row", row), ("col", col)):
        if extent < 0:
            raise RuntimeError(f"{name} must be non-negative, got{extent}")
    d, where = _dtype.int64 if dtype is None else dtype_of(dtype), device_of(device)
    if d not in _INDEX_DTYPES:
        raise refusal("tril_indices" if lower else "triu_indices", d)
    found = np.tril_indices(row, offset, col) if lower else np.triu_indices(row, offset, col)
    t = wrap_sized(np.stack(found).astype(d.np, copy=False), d)
    return allocate(t._array.shape, d, where) if where.key == keys.META else t


tril_indices = factory(
    "tril_indices(int row, int col, int offset=0, OPTIONS) -> Tensor",
    lambda row, col, offset, dtype, layout, device, pin_memory: _triangle_indices(row, col, offset, dtype, device, lower=True),
)
triu_indices = factory(
    "triu_indices(int row, int col, int offset=0, OPTIONS) -> Tensor",
    lambda row, col, offset, dtype, layout, device, pin_memory: _triangle_indices(row, col, offset, dtype, device, lower=False),
)
