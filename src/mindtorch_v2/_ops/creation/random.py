"""Operators that draw from a generator."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _dtype
from ..._backends.cpu.creation import random as kernels
from ..._backends.cpu.creation import random_counts
from ..._backends.cpu.creation.copying import CPP_NAMES
from ..._backends.cpu.machinery.dtype_rules import refusal, refuse, unimplemented
from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._checks import broadcast_shapes
from ..._creation import allocate, device_of, dtype_of, empty_array
from ..._dispatch import keys
from ..._dtype_info import finfo
from ..._memory_format import contiguous_format
from ..._tensor import Tensor, wrap_sized
from ..._types import Array, OptionalDevice, OptionalDType, OptionalGenerator, OptionalLayout, OptionalMemoryFormat, Shape
from ..machinery.declare import op, public
from ..machinery.factory import factory, public_function
from . import constants
from .constants import like

_ZERO = {"self": lambda grad: constants.zeros_like(grad)}

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


def _floating(array: Array, kernel: str) -> None:
    d = _dtype.FROM_NUMPY[array.dtype]
    if not d.inexact:
        raise refusal(kernel, d)


def _uniform(self: Array, from_: float, to: float, generator: OptionalGenerator) -> None:
    _floating(self, "check_uniform_bounds")
    if not _FITS_ANY_DTYPE <= from_ <= to <= -_FITS_ANY_DTYPE:
        _check_ends(_dtype.FROM_NUMPY[self.dtype], from_, to)
    kernels.uniform_(self, from_, to, generator)


_FITS_ANY_DTYPE = -32752.0  # half of what float16 holds: no difference of two such numbers overflows


def _check_ends(d: _dtype.dtype, from_: float, to: float) -> None:
    largest = finfo(d).max
    for name, end in (("from", from_), ("to", to)):
        if not -largest <= end <= largest:
            raise RuntimeError(f"{name} is out of bounds for {CPP_NAMES.get(d.name, d.name)}")
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_:g} > to={to:g}")
    if to - from_ > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{d.scalar_name}>::max(), but found to={to:g} and from={from_:g} which "
            "result in to-from to exceed the limit"
        )


def _normal(self: Array, mean: float, std: float, generator: OptionalGenerator) -> None:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if not self.size:
        return
    _floating(self, "normal_kernel_cpu")
    kernels.normal_(self, mean, std, generator)


def _rand(
    size: Sequence[int],
    generator: OptionalGenerator,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    return allocate(size, dtype_of(dtype), device_of(device)).uniform_(0, 1, generator=generator)


def _randn(
    size: Sequence[int],
    generator: OptionalGenerator,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    return allocate(size, dtype_of(dtype), device_of(device)).normal_(0, 1, generator=generator)


def _rand_array(size: Sequence[int], generator: OptionalGenerator, dtype: OptionalDType) -> Array:
    array = empty_array(size, dtype_of(dtype))
    _uniform(array, 0.0, 1.0, generator)
    return array


def _randn_array(size: Sequence[int], generator: OptionalGenerator, dtype: OptionalDType) -> Array:
    array = empty_array(size, dtype_of(dtype))
    _normal(array, 0.0, 1.0, generator)
    return array


rand = factory("rand(SymInt[] size, RANDOM) -> Tensor", _rand, cpu=_rand_array)
randn = factory("randn(SymInt[] size, RANDOM) -> Tensor", _randn, cpu=_randn_array)


# --- integers -------------------------------------------------------------------------------------------------------


def _integers(self: Array, low: int, high: int | None, generator: OptionalGenerator) -> None:
    refuse("check_random_bounds handles only integral, floating-point and boolean types", self, "c")
    d = _dtype.FROM_NUMPY[self.dtype]
    if high is None:
        # torch: up to the dtype's largest value; the whole range of int64 takes every bit of its 64
        high = _largest(d) + (0 if d.inexact else 1)
    elif low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if d.category <= _dtype.INTEGER:
        for name, bound in (("from", low), ("to - 1", high - 1)):
            if not _smallest(d) <= bound <= _largest(d):
                raise RuntimeError(f"{name} is out of bounds for {d.cpp_name}")
    # torch: a modulus from 2**28 would favour small results noticeably, so that 64 bits are drawn
    kernels.random_(self, low, high - low, generator, wide=high - low >= 1 << 28)


@functools.cache  # `iinfo` takes 1 µs
def _smallest(d: _dtype.dtype) -> int:
    return 0 if d is _dtype.bool_ else int(np.iinfo(d.np).min)


@functools.cache
def _largest(d: _dtype.dtype) -> int:
    if d.is_floating_point:
        return {"float16": 1 << 11, "bfloat16": 1 << 8, "float32": 1 << 24, "float64": 1 << 53}[d.name]
    return 1 if d is _dtype.bool_ else int(np.iinfo(d.np).max)


random_from = op(
    "random_.from(Tensor(a!) self, int from_, int? to, *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, from_, to, generator: _integers(self, from_, to, generator),
    grad=_ZERO,
    variants="method",
)
random_to = op(
    "random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, to, generator: _integers(self, 0, to, generator),
    node="RandomBackward1",
    grad=_ZERO,
    variants="method",
)
random = op(
    "random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, generator: kernels.random_(
        self, 0, _largest(_dtype.FROM_NUMPY[self.dtype]) + 1, generator, wide=self.dtype.name in ("int64", "float64", "uint64")
    ),
    node="RandomBackward2",
    grad=_ZERO,
    refuses=("random_kernel_cpu", "c"),
    variants="method",
)


def _randint(
    low: int,
    high: int,
    size: Sequence[int],
    generator: OptionalGenerator,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    t = allocate(size, _dtype.int64 if dtype is None else dtype_of(dtype), device_of(device))
    return t.random_(int(low), int(high), generator=generator)


def _randint_array(low: int, high: int, size: Sequence[int], generator: OptionalGenerator, dtype: OptionalDType) -> Array:
    array = empty_array(size, _dtype.int64 if dtype is None else dtype_of(dtype))
    _integers(array, int(low), int(high), generator)
    return array


_randint_low = factory("randint.low(SymInt low, SymInt high, SymInt[] size, RANDOM) -> Tensor", _randint, cpu=_randint_array)
_randint_high = factory(
    "randint(SymInt high, SymInt[] size, RANDOM) -> Tensor",
    lambda high, *rest: _randint(0, high, *rest),
    cpu=lambda high, size, generator, dtype: _randint_array(0, high, size, generator, dtype),
)
_randint_from = public_function(_randint_low.op)


@public("function")
def randint(*args: Any, low: float | None = None, high: float | None = None, size: Shape | None = None, **options: Any) -> Tensor:
    """Integers low ≤ x < high (low is 0 when only one bound is given)."""
    given = list(args)
    if size is None:
        if not given:
            raise TypeError("randint() received an invalid combination of arguments: the size is missing")
        size = given.pop()
    bounds = given + [b for b in (low, high) if b is not None] if low is None or not given else [low, *given]
    if len(bounds) == 1:
        return _randint_high(bounds[0], size, **options)
    if len(bounds) != 2:
        raise TypeError(f"randint() takes a bound or two and a size, not {len(args)} positional arguments")
    return _randint_from(*bounds, size, **options)


def _randperm(
    n: int,
    generator: OptionalGenerator,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    d, where = _dtype.int64 if dtype is None else dtype_of(dtype), device_of(device)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if d in _dtype.NOT_COUNTED:
        raise refusal("randperm", d)
    if n > (1 << {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[d.name] if d.is_floating_point else _largest(d)) + 1:
        raise RuntimeError(
            f"value cannot be converted to type {d.name + '_t' if d.category == _dtype.INTEGER else d.name} without overflow"
        )
    if where.type == "meta":
        return allocate((n,), d, where)
    return wrap_sized(kernels.randperm(int(n), generator).astype(d.np, copy=False), d)


randperm = factory("randperm(SymInt n, RANDOM) -> Tensor", _randperm)


# --- after another tensor -------------------------------------------------------------------------------------------


def _rand_like(
    self: Tensor,
    generator: OptionalGenerator,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
    memory_format: OptionalMemoryFormat,
) -> Tensor:
    return like(self, dtype, device, memory_format).uniform_(0, 1, generator=generator)


def _randn_like(
    self: Tensor,
    generator: OptionalGenerator,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
    memory_format: OptionalMemoryFormat,
) -> Tensor:
    return like(self, dtype, device, memory_format).normal_(0, 1, generator=generator)


def _randint_like(
    self: Tensor,
    low: int,
    high: int,
    generator: OptionalGenerator,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
    memory_format: OptionalMemoryFormat,
) -> Tensor:
    return like(self, dtype, device, memory_format).random_(int(low), int(high), generator=generator)


_randint_like_low = factory("randint_like.low_dtype(Tensor self, SymInt low, SymInt high, RANDOM_LIKE) -> Tensor", _randint_like)
_randint_like_high = factory(
    "randint_like(Tensor self, SymInt high, RANDOM_LIKE) -> Tensor", lambda self, high, *rest: _randint_like(self, 0, high, *rest)
)
_randint_like_from = public_function(_randint_like_low.op)


@public("function")
def randint_like(input: Tensor, *bounds: Any, low: float | None = None, high: float | None = None, **options: Any) -> Tensor:
    """Integers low ≤ x < high (low is 0 when only one bound is given), in the shape of another tensor."""
    given = [b for b in (low, *bounds, high) if b is not None]
    if len(given) == 1:
        return _randint_like_high(input, given[0], **options)
    if len(given) != 2:
        raise TypeError(f"randint_like() takes a bound or two, not {len(given)}")
    return _randint_like_from(input, *given, **options)


rand_like = factory("rand_like(Tensor self, RANDOM_LIKE) -> Tensor", _rand_like)
randn_like = factory("randn_like(Tensor self, RANDOM_LIKE) -> Tensor", _randn_like)


# --- coin flips -----------------------------------------------------------------------------------------------------


def _coins(self: Array, p: float, generator: OptionalGenerator) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    kernels.bernoulli_scalar(self, p, generator)


def _bernoulli_tensor(self: Array, p: Array, generator: OptionalGenerator) -> None:
    if self.size:
        refuse("bernoulli_tensor_cpu_self_", self, "c")
        kernels.bernoulli_tensor(self, p, generator)


bernoulli_float_ = op(
    "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, p, generator: _coins(self, p, generator),
    node="BernoulliBackward2",
    grad=_ZERO,
    variants="method",
    refuses=("bernoulli_scalar_cpu_", "c"),
)
bernoulli_tensor_ = op(
    "bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
    cpu=_bernoulli_tensor,
    node="BernoulliBackward1",
    grad={"self": lambda grad: constants.zeros_like(grad), "p": lambda p: constants.zeros_like(p)},
    variants="method",
)
bernoulli = op(
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    composite=lambda self, generator: bernoulli_tensor_(
        like(self, memory_format=contiguous_format), self.detach(), generator=generator
    ),
    grad={"self": lambda grad: constants.zeros_like(grad)},
    tags=("any_out_dtype",),  # torch: it is `out` that is drawn
)
bernoulli_p = op(
    "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    composite=lambda self, p, generator: bernoulli_float_(like(self, memory_format=contiguous_format), p, generator=generator),
    tags=("no_derivative",),
)


# --- other distributions, in place ----------------------------------------------------------------------------------


def _checked(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def _exponential(self: Array, lambd: float, generator: OptionalGenerator) -> None:
    _checked(lambd > 0, f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    _checked(
        self.dtype.kind not in "biuc",
        f"Exponential distribution is a continuous probability distribution. dtype must be a floating point but you specified {scalar_name(self)}",
    )
    kernels.exponential_(self, lambd, generator)


def _geometric(self: Array, p: float, generator: OptionalGenerator) -> None:
    _checked(0 < p < 1, f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if self.dtype == np.bool_:
        raise unimplemented("geometric_cpu", self)
    kernels.geometric_(self, p, generator)


def _log_normal(self: Array, mean: float, std: float, generator: OptionalGenerator) -> None:
    _checked(std > 0, f"log_normal_ expects std > 0.0, but found std={std:g}")
    _floating(self, "log_normal_cpu")
    kernels.log_normal_(self, mean, std, generator)


def _cauchy(self: Array, median: float, sigma: float, generator: OptionalGenerator) -> None:
    _checked(sigma > 0, f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    _checked(
        self.dtype.kind not in "biuc",
        f"Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified {scalar_name(self)}",
    )
    kernels.cauchy_(self, median, sigma, generator)


exponential_ = op(
    "exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, lambd, generator: _exponential(self, lambd, generator),
    grad=_ZERO,
    variants="method",
)
geometric_ = op(
    "geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, p, generator: _geometric(self, p, generator),
    grad=_ZERO,
    variants="method",
    refuses=("geometric_cpu", "c"),
)
log_normal_ = op(
    "log_normal_(Tensor(a!) self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, mean, std, generator: _log_normal(self, mean, std, generator),
    grad=_ZERO,
    variants="method",
    refuses=("log_normal_cpu", "bic"),
)
cauchy_ = op(
    "cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor(a!)",
    cpu=lambda self, median, sigma, generator: _cauchy(self, median, sigma, generator),
    grad=_ZERO,
    variants="method",
)


# --- samples with parameters of their own ---------------------------------------------------------------------------


def _check_std(std: Tensor) -> None:
    if std.dtype.is_complex:
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if std.numel() and std.device.type != "meta" and not std.min().ge(0).item():
        raise RuntimeError("normal expects all elements of std >= 0.0")


def _noise(t: Tensor, std: float, generator: OptionalGenerator) -> Tensor:
    """Fill new memory; torch does it below the operators, so that no `aten::normal_` shows in `aten::normal`."""
    if t._keys & keys.CPU:
        _normal(t._array, 0, std, generator)
    return t


def _normal_tensor_float(mean: Tensor, std: float, generator: OptionalGenerator) -> Tensor:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    return _noise(like(mean, memory_format=contiguous_format), std, generator).add_(mean)


def _normal_float_tensor(mean: float, std: Tensor, generator: OptionalGenerator) -> Tensor:
    _check_std(std)
    noise = _noise(like(std, memory_format=contiguous_format), 1, generator)
    return noise.mul_(std).add_(mean)


def _normal_tensor_tensor(mean: Tensor, std: Tensor, generator: OptionalGenerator) -> Tensor:
    _check_std(std)
    shape = broadcast_shapes(mean._array.shape, std._array.shape)
    noise = _noise(allocate(shape, mean.dtype, mean.device), 1, generator)
    return noise.mul_(std).add_(mean)


_NORMAL_GRAD = {
    "mean": lambda mean_shape, grad: constants.zeros(mean_shape, dtype=grad.dtype, device=grad.device),
    "std": lambda std_shape, grad: constants.zeros(std_shape, dtype=grad.dtype, device=grad.device),
}
normal_tensor_float = op(
    "normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
    composite=_normal_tensor_float,
    node="NormalBackward1",
    grad={"mean": _NORMAL_GRAD["mean"]},
    variants="",
)
normal_float_tensor = op(
    "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    composite=_normal_float_tensor,
    node="NormalBackward2",
    grad={"std": _NORMAL_GRAD["std"]},
    variants="",
)
normal_tensor_tensor = op(
    "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
    composite=_normal_tensor_tensor,
    node="NormalBackward3",
    grad=_NORMAL_GRAD,
    variants="",
)


def _normal_floats(
    mean: float,
    std: float,
    size: Sequence[int],
    generator: OptionalGenerator,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    return allocate(size, dtype_of(dtype), device_of(device)).normal_(mean, std, generator=generator)


_normal_floats_op = factory("normal.float_float(float mean, float std, SymInt[] size, RANDOM) -> Tensor", _normal_floats)
_normal_of_size = public_function(_normal_floats_op.op)


@public("function")
def normal(
    mean: Any,
    std: Any = 1.0,
    size: Shape | None = None,
    *,
    generator: OptionalGenerator = None,
    out: Tensor | None = None,
    **options: Any,
) -> Tensor:
    """Normal numbers with these means and standard deviations, tensors or numbers; of a size when both are numbers."""
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        chosen = (
            normal_tensor_tensor
            if isinstance(mean, Tensor) and isinstance(std, Tensor)
            else normal_tensor_float
            if isinstance(mean, Tensor)
            else normal_float_tensor
        )
        return chosen(mean, std, generator=generator, out=out)
    if size is None:
        raise TypeError("normal() received an invalid combination of arguments: numbers need a size")
    return _normal_of_size(mean, std, size, generator=generator, out=out, **options)


_INVALID_WEIGHTS = "probability tensor contains either `inf`, `nan` or element < 0"
_NO_WEIGHT = "invalid multinomial distribution (sum of probabilities <= 0)"


def _check_weights(self: Tensor) -> None:
    weights = self._array
    _checked(bool((weights >= 0).all()) and bool(np.isfinite(weights).all()), _INVALID_WEIGHTS)
    _checked(bool((weights.sum(-1) > 0).all()), _NO_WEIGHT)


def _multinomial(self: Tensor, num_samples: int, replacement: bool, generator: OptionalGenerator) -> Tensor:
    ndim = self.dim()
    _checked(1 <= ndim <= 2, "prob_dist must be 1 or 2 dim")
    _checked(
        self.dtype.is_floating_point, f"multinomial only supports floating-point dtypes for input, got: {self.dtype.scalar_name}"
    )
    _checked(self.shape[-1] <= 1 << 24, "number of categories cannot exceed 2^24")
    _checked(num_samples > 0, "cannot sample n_sample <= 0 samples")
    _checked(
        replacement or num_samples <= self.shape[-1], "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
    )
    if replacement and num_samples > 1:
        weights = self._array
        _checked(bool((weights >= 0).all()), "invalid multinomial distribution (encountering probability entry < 0)")
        finite = bool(np.isfinite(weights).all())
        _checked(finite, "invalid multinomial distribution (encountering probability entry = infinity or NaN)")
        _checked(
            bool(self.shape[-1]) or (ndim == 2 and not weights.shape[0]),
            "invalid multinomial distribution (sum of probabilities <= 0)",
        )
        return wrap_sized(kernels.with_replacement(weights, num_samples, generator))
    _check_weights(self)
    # the largest of weights over exponential variates are a sample without replacement
    race = self.div(like(self).exponential_(1, generator=generator))
    if num_samples == 1:
        return race.argmax(-1, True)
    return race.topk(num_samples, -1)[1]


_multinomial_op = op(
    "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
    composite=lambda self, num_samples, replacement, generator: _multinomial(self.detach(), num_samples, replacement, generator),
)


@public("function method")
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: OptionalGenerator = None, out: Tensor | None = None
) -> Tensor:
    """Indices drawn by weights, `num_samples` from each row."""
    if out is not None and out.dtype is not _dtype.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.scalar_name}")
    return _multinomial_op(input, num_samples, replacement, generator=generator, out=out)


def _counts_of(self: Array, kernel: str, smallest: int) -> None:
    d = _dtype.FROM_NUMPY[self.dtype]
    if not d.is_floating_point or d.itemsize < smallest:
        raise refusal(kernel, d)


def _poisson(self: Array, generator: OptionalGenerator) -> Array:
    _counts_of(self, "poisson_cpu", 2)
    return random_counts.poisson(self, generator)


def _binomial(count: Array, prob: Array, generator: OptionalGenerator) -> Array:
    for name, operand in (("count", count), ("prob", prob)):
        d = _dtype.FROM_NUMPY[operand.dtype]
        if not d.is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {d.scalar_name}")
    _counts_of(count, "binomial_cpu", 4)
    if prob.dtype != count.dtype:
        found, wanted = (scalar_name(x) for x in (prob, count))
        raise RuntimeError(f"Found dtype {found} but expected {wanted}")
    return random_counts.binomial(count, prob, generator)


poisson = op(
    "poisson(Tensor self, Generator? generator=None) -> Tensor",
    cpu=lambda self, generator: _poisson(self, generator),
    shape=lambda self: self.shape,
    grad=_ZERO,
    variants="function",
)
binomial = op(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    cpu=lambda count, prob, generator: _binomial(count, prob, generator),
    variants="function",
)
