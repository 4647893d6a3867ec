"""Window functions of signal processing: hann_window and its siblings, computed in the window's own precision as torch does."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from ... import _dtype
from ..._backends.cpu.machinery.dtype_rules import refusal
from ..._creation import device_of, dtype_of, refuse_pinned
from ..._dispatch import keys
from ..._memory_format import strided
from ..._scipy import ufuncs
from ..._tensor import Tensor, wrap
from ..._types import OptionalDevice, OptionalDType, OptionalLayout
from ..machinery.declare import public
from ..machinery.factory import factory
from ..machinery.lookup import aten
from ..machinery.out import write_out

Array = np.ndarray[Any, Any]


def _checked_dtype(name: str, window_length: int, dtype: OptionalDType) -> _dtype.dtype:
    if window_length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
    d = dtype_of(dtype)
    if d.is_complex:
        raise refusal("arange_cpu", d)
    if not d.is_floating_point:
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={d.cpp_name}, device=cpu, layout=Strided (default), "
            "requires_grad=false (default), pinned_memory=false, memory_format=(nullopt))"
        )
    return d


def _window(
    name: str, compute: Callable[..., Any], window_length: int, periodic: bool, dtype: OptionalDType, device: OptionalDevice
) -> Tensor:
    """A periodic window is a symmetric one of a point more, without its last."""
    d = _checked_dtype(name, window_length, dtype)
    if window_length <= 1:
        made = np.ones(window_length, d.np)
    else:
        points = window_length + periodic
        work = np.dtype(np.float32) if d.itemsize < 4 else d.np
        made = compute(np.arange(points, dtype=work), points)[:window_length].astype(d.np, copy=False)
    where = device_of(device)
    return wrap(np.ascontiguousarray(made)) if where.key == keys.CPU else wrap(made).to(where)


def _raised_cosine(alpha: float, beta: float) -> Callable[..., Any]:
    def compute(x: Array, points: int) -> Array:
        x *= x.dtype.type(2 * pi / (points - 1))
        np.cos(x, out=x)
        x *= x.dtype.type(-beta)
        x += x.dtype.type(alpha)
        return x

    return compute


def _triangle(x: Array, points: int) -> Array:
    x *= x.dtype.type(2 / (points - 1))
    half = ((points - 1) >> 1) + 1
    x[half:] *= -1
    x[half:] += 2
    return x


def _blackman(x: Array, points: int) -> Array:
    one = x.dtype.type
    x *= one(pi / (points - 1))
    return np.cos(x * one(4)) * one(0.08) - np.cos(x * one(2)) * one(0.5) + one(0.42)


def _kaiser(beta: float) -> Callable[..., Any]:
    def compute(x: Array, points: int) -> Array:
        one = x.dtype.type
        alpha = (points - 1) / 2
        ratio = (x - one(alpha)) / one(alpha)
        values = ufuncs.i0(one(beta) * np.sqrt(np.maximum(1 - ratio * ratio, 0)))
        return (values / ufuncs.i0(one(beta))).astype(x.dtype)

    return compute


def _declare(name: str, extra: tuple[str, ...], compute: Callable[..., Any]) -> None:
    """`name(window_length)` is periodic; further overloads add `periodic` and the shape's parameters."""
    factory(
        f"{name}(int window_length, OPTIONS) -> Tensor",
        lambda window_length, dtype, layout, device, pin_memory: _window(name, compute(), window_length, True, dtype, device),
    )
    overloads = ["periodic", *("_".join(["periodic", *extra[: i + 1]]) for i in range(len(extra)))]
    if extra == ("beta",):
        overloads[1] = "beta"  # torch: kaiser_window's overload is named for beta alone
    for i, overload in enumerate(overloads):
        parameters = "".join(f", float {p}" for p in extra[:i])
        factory(f"{name}.{overload}(int window_length, bool periodic{parameters}, OPTIONS) -> Tensor", _composite(name, compute, i))


def _composite(name: str, compute: Callable[..., Any], parameters: int) -> Callable[..., Any]:
    def composite(window_length: int, periodic: bool, *rest: Any) -> Tensor:
        dtype, _, device, _ = rest[parameters:]
        return _window(name, compute(*rest[:parameters]), window_length, periodic, dtype, device)

    return composite


_declare("hann_window", (), lambda: _raised_cosine(0.5, 0.5))
_declare("hamming_window", ("alpha", "beta"), lambda alpha=0.54, beta=0.46: _raised_cosine(alpha, beta))
_declare("bartlett_window", (), lambda: _triangle)
_declare("blackman_window", (), lambda: _blackman)
_declare("kaiser_window", ("beta",), lambda beta=12.0: _kaiser(beta))


# --- the public functions: one signature for all overloads ------------------------------------------------------------


def _call(name: str, arguments: tuple[Any, ...], dtype: OptionalDType, layout: OptionalLayout, device: OptionalDevice, pin_memory: bool, requires_grad: bool,
          out: Tensor | None) -> Tensor:  # fmt: skip
    if layout is not None and layout is not strided:
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {layout}")
    if pin_memory:
        refuse_pinned()
    made: Tensor = getattr(aten, name)(*arguments, dtype=dtype, device=device)
    if out is not None:
        write_out(out, made)
        made = out
    if requires_grad:
        made.requires_grad = True
    return made


@public("function")
def hann_window(window_length: int, periodic: bool = True, *, dtype: OptionalDType = None, layout: OptionalLayout = None, device: OptionalDevice = None,
                pin_memory: bool = False, requires_grad: bool = False, out: Tensor | None = None) -> Tensor:  # fmt: skip
    """The Hann window: half of one minus a cosine."""
    return _call("hann_window", (window_length, periodic), dtype, layout, device, pin_memory, requires_grad, out)


@public("function")
def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: OptionalDType = None,
                   layout: OptionalLayout = None, device: OptionalDevice = None, pin_memory: bool = False, requires_grad: bool = False,
                   out: Tensor | None = None) -> Tensor:  # fmt: skip
    """The Hamming window: alpha less beta times a cosine."""
    return _call("hamming_window", (window_length, periodic, alpha, beta), dtype, layout, device, pin_memory, requires_grad, out)


@public("function")
def bartlett_window(window_length: int, periodic: bool = True, *, dtype: OptionalDType = None, layout: OptionalLayout = None, device: OptionalDevice = None,
                    pin_memory: bool = False, requires_grad: bool = False, out: Tensor | None = None) -> Tensor:  # fmt: skip
    """The Bartlett window: a triangle."""
    return _call("bartlett_window", (window_length, periodic), dtype, layout, device, pin_memory, requires_grad, out)


@public("function")
def blackman_window(window_length: int, periodic: bool = True, *, dtype: OptionalDType = None, layout: OptionalLayout = None, device: OptionalDevice = None,
                    pin_memory: bool = False, requires_grad: bool = False, out: Tensor | None = None) -> Tensor:  # fmt: skip
    """The Blackman window: three terms of a cosine series."""
    return _call("blackman_window", (window_length, periodic), dtype, layout, device, pin_memory, requires_grad, out)


@public("function")
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: OptionalDType = None, layout: OptionalLayout = None,
                  device: OptionalDevice = None, pin_memory: bool = False, requires_grad: bool = False, out: Tensor | None = None) -> Tensor:  # fmt: skip
    """The Kaiser window: a Bessel function of the distance from the middle."""
    return _call("kaiser_window", (window_length, periodic, float(beta)), dtype, layout, device, pin_memory, requires_grad, out)
