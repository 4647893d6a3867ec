"""Operators that draw from a generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtype
from .._backends.cpu import random as kernels
from .._creation import allocate, device_of, dtype_of
from .._tensor import Tensor, wrap
from . import creation
from .creation import factory, like
from .declare import op, public

_ZERO = {"self": lambda grad: creation.zeros_like(grad)}

uniform_ = op(
    "uniform_(Tensor(a!) self, float from_=0., float to=1., *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, from_, to, generator: _uniform(self, from_, to, generator),
    grad=_ZERO,
    variants="method",
)
normal_ = op(
    "normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, mean, std, generator: _normal(self, mean, std, generator),
    grad=_ZERO,
    variants="method",
)


def _uniform(self: Any, from_: float, to: float, generator: Any) -> None:
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_:g} > to={to:g}")
    kernels.uniform_(self, from_, to, generator)


def _normal(self: Any, mean: float, std: float, generator: Any) -> None:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    kernels.normal_(self, mean, std, generator)


def _rand(size: Any, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return allocate(size, dtype_of(dtype), device_of(device)).uniform_(0, 1, generator=generator)  # type: ignore[no-any-return]


def _randn(size: Any, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return allocate(size, dtype_of(dtype), device_of(device)).normal_(0, 1, generator=generator)  # type: ignore[no-any-return]


rand = factory("rand(int[] size, RANDOM) -> Tensor", _rand)
randn = factory("randn(int[] size, RANDOM) -> Tensor", _randn)


# --- integers -------------------------------------------------------------------------------------------------------


def _integers(self: Any, low: int, high: int, generator: Any) -> None:
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    kernels.random_(self, low, high - low, generator)


random_from = op(
    "random_.from(Tensor(a!) self, int from_, int? to, *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, from_, to, generator: _integers(self, from_, _end_of(self.dtype) if to is None else to, generator),
    grad=_ZERO,
    variants="method",
)
random_to = op(
    "random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, to, generator: _integers(self, 0, to, generator),
    grad=_ZERO,
    variants="method",
)
random = op(
    "random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, generator: kernels.random_(self, 0, _end_of(self.dtype), generator),
    grad=_ZERO,
    variants="method",
)


def _end_of(dtype: Any) -> int:
    """One more than the largest integer that `random_` without bounds draws: all of it are exact in the dtype."""
    d = _dtype.FROM_NUMPY[dtype]
    if d.is_floating_point:
        return {"float16": 1 << 11, "bfloat16": 1 << 8, "float32": 1 << 24, "float64": 1 << 53}[d.name] + 1
    return 2 if d is _dtype.bool_ else int(np.iinfo(dtype).max) + 1


def _randint(low: Any, high: Any, size: Any, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    t = allocate(size, _dtype.int64 if dtype is None else dtype_of(dtype), device_of(device))
    return t.random_(int(low), int(high), generator=generator)  # type: ignore[no-any-return]


_randint_low = factory("randint.low(int low, int high, int[] size, RANDOM) -> Tensor", _randint)
_randint_high = factory("randint(int high, int[] size, RANDOM) -> Tensor", lambda high, *rest: _randint(0, high, *rest))
_randint_from = creation.public_function(_randint_low.op)  # type: ignore[attr-defined]


@public("function")
def randint(*args: Any, low: Any = None, high: Any = None, size: Any = None, **options: Any) -> Tensor:
    """Integers low ≤ x < high (low is 0 when only one bound is given)."""
    given = list(args)
    if size is None:
        if not given:
            raise TypeError("randint() received an invalid combination of arguments: the size is missing")
        size = given.pop()
    bounds = given + [b for b in (low, high) if b is not None] if low is None or not given else [low, *given]
    if len(bounds) == 1:
        return _randint_high(bounds[0], size, **options)  # type: ignore[no-any-return]
    if len(bounds) != 2:
        raise TypeError(f"randint() takes a bound or two and a size, not {len(args)} positional arguments")
    return _randint_from(*bounds, size, **options)  # type: ignore[no-any-return]


def _randperm(n: Any, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    d, where = _dtype.int64 if dtype is None else dtype_of(dtype), device_of(device)
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got {n}")
    if where.type == "meta":
        return allocate((n,), d, where)
    return wrap(kernels.randperm(int(n), generator).astype(d.np, copy=False), d)


randperm = factory("randperm(int n, RANDOM) -> Tensor", _randperm)


# --- after another tensor -------------------------------------------------------------------------------------------


def _rand_like(self: Tensor, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Tensor:
    return like(self, dtype, device, memory_format).uniform_(0, 1, generator=generator)  # type: ignore[no-any-return]


def _randn_like(self: Tensor, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Tensor:
    return like(self, dtype, device, memory_format).normal_(0, 1, generator=generator)  # type: ignore[no-any-return]


rand_like = factory("rand_like(Tensor self, RANDOM_LIKE) -> Tensor", _rand_like)
randn_like = factory("randn_like(Tensor self, RANDOM_LIKE) -> Tensor", _randn_like)


# --- coin flips -----------------------------------------------------------------------------------------------------


def _coins(self: Any, p: float, generator: Any) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    kernels.bernoulli_scalar(self, p, generator)


bernoulli_float_ = op(
    "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, p, generator: _coins(self, p, generator),
    grad=_ZERO,
    variants="method",
)
bernoulli_tensor_ = op(
    "bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, p, generator: kernels.bernoulli_tensor(self, p, generator),
    grad={"self": lambda grad: creation.zeros_like(grad), "p": lambda p: creation.zeros_like(p)},
    variants="method",
)
bernoulli = op(
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    composite=lambda self, generator: like(self).bernoulli_(self.detach(), generator=generator),
    grad={"self": lambda grad: creation.zeros_like(grad)},
)
bernoulli_p = op(
    "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    composite=lambda self, p, generator: like(self).bernoulli_(p, generator=generator),
)
