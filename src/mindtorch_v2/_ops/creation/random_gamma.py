"""Gamma and Dirichlet variates, and how they move with their parameters."""

from __future__ import annotations

from ... import _dtype
from ..._backends.cpu.creation import random_gamma as kernels
from ..._backends.cpu.elementwise import sample_gradients
from ..._backends.cpu.machinery.dtype_rules import refusal
from ..._types import Array, OptionalGenerator
from ..machinery.declare import not_implemented, op


def _checked(array: Array, kernel: str) -> None:
    d = _dtype.FROM_NUMPY[array.dtype]
    if not d.is_floating_point or d.itemsize < 4:
        raise refusal(kernel, d)


def _standard_gamma_kernel(self: Array, generator: OptionalGenerator) -> Array:
    _checked(self, "gamma_cpu")
    return kernels.standard_gamma(self, generator)


def _dirichlet_kernel(self: Array, generator: OptionalGenerator) -> Array:
    _checked(self, "dirichlet")
    return kernels.dirichlet(self, generator)


def _gamma_gradient(self: Array, output: Array) -> Array:
    _checked(self, "_standard_gamma_grad_cpu")
    return sample_gradients.gamma_gradient(self, output)


def _dirichlet_gradient(x: Array, alpha: Array, total: Array) -> Array:
    _checked(x, "_dirichlet_grad_cpu")
    return sample_gradients.dirichlet_gradient(x, alpha, total)


_standard_gamma = op(
    "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
    cpu=_standard_gamma_kernel,
    shape=lambda self: self.shape,
    grad={"self": lambda grad, self, result: grad * _standard_gamma_grad(self, result)},
    variants="function",
)
_standard_gamma_grad = op(
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    cpu=_gamma_gradient,
    shape=lambda self: self.shape,
    grad={"self": not_implemented("_standard_gamma_grad")},
    variants="function",
)
_sample_dirichlet = op(
    "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
    cpu=_dirichlet_kernel,
    shape=lambda self: self.shape,
    variants="function",
)
_dirichlet_grad = op(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
    cpu=_dirichlet_gradient,
    shape=lambda x: x.shape,
    variants="function",
)
