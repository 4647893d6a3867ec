"""Activation functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ..._ops.machinery.lookup import aten
from ..._override_points import asking_function
from ..._tensor import Tensor
from ..._types import OptionalDType

__all__ = [
    "celu", "elu", "glu", "gumbel_softmax", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log_softmax", "mish", "relu",
    "relu6", "rrelu", "selu", "sigmoid", "silu", "softmax", "softmin", "softsign", "tanh", "tanhshrink", "threshold",
]  # fmt: skip


def _activation(name: str, options: str = "", doc: str | None = None) -> Callable[..., Tensor]:
    """The function of an operator that has an in-place variant: `name(input, options, inplace=False)`."""
    given = "".join(f", {o.partition(':')[0]}" for o in options.split(", ") if o)
    parameters = f"input: Tensor, {options + ', ' if options else ''}inplace: bool = False"
    line = f"return in_place_(input{given}) if inplace else operator_(input{given})"
    names = {"operator_": getattr(aten, name), "in_place_": getattr(aten, f"{name}_"), "Tensor": Tensor, "__name__": __name__}
    return asking_function(name, parameters, line, names, doc)


celu = _activation("celu", "alpha: float = 1.0")
elu = _activation("elu", "alpha: float = 1.0")
hardsigmoid = _activation("hardsigmoid")
hardswish = _activation("hardswish")
leaky_relu = _activation("leaky_relu", "negative_slope: float = 0.01", "The input, and its negative part times a slope.")
mish = _activation("mish")
relu = _activation("relu", doc="The positive part.")
relu6 = _activation("relu6", doc="The positive part, at most 6.")
rrelu = _activation(
    "rrelu",
    "lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False",
    "Leaky relu whose slopes are drawn while training.",
)
selu = _activation("selu")
silu = _activation("silu")
threshold = _activation("threshold", "threshold: float, value: float", "`value` wherever the input is not above `threshold`.")


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half times the sigmoid of the second."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return aten.glu(input, dim)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """The input held between two values."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    function = aten.hardtanh_ if inplace else aten.hardtanh
    return function(input, min_val, max_val)


def tanhshrink(input: Tensor) -> Tensor:
    """The input minus its hyperbolic tangent."""
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanh(input: Tensor) -> Tensor:
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    return input.sigmoid()


def _implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: OptionalDType = None) -> Tensor:
    """Exponentials that sum to 1 along a dimension."""
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel + 1)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: OptionalDType = None) -> Tensor:
    """Softmax of the negated input."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel + 1)
    negated = -input
    return negated.softmax(dim) if dtype is None else negated.softmax(dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: OptionalDType = None) -> Tensor:
    """The logarithm of softmax, without its rounding."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel + 1)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution; `hard` makes it one-hot with the gradient of the soft one."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=3)
    noise = -aten.empty_like(logits).exponential_().log()
    soft: Tensor = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    chosen = soft.max(dim, keepdim=True)[1]
    one_hot: Tensor = aten.zeros_like(logits).scatter_(dim, chosen, 1.0)
    return one_hot - soft.detach() + soft
