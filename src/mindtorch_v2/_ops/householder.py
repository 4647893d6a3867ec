"""Householder reflectors: compact QR factors, their products, and multiplying by those."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.cpu import linalg as kernels
from .._backends.cpu.dtypes import scalar_name
from .._checks import no_dimensions
from .._tensor import Tensor, wrap
from .declare import not_implemented, op
from .joining import cat
from .matmul import conj, matmul

Array = np.ndarray[Any, Any]


def _geqrf_kernel(self: Array) -> tuple[Array, Array]:
    if self.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    return kernels.geqrf(self)


geqrf = op("geqrf(Tensor self) -> (Tensor a, Tensor tau)", cpu=_geqrf_kernel, grad={"self": not_implemented("geqrf")})


def _householder_kernel(input: Array, tau: Array) -> Array:
    name = "torch.linalg.householder_product"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    m, n = input.shape[-2:]
    if m < n:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if not tau.ndim:
        raise no_dimensions(-1)
    if n < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if input.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and input.ndim is "
            f"equal to {input.ndim}"
        )
    if input.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )
    if input.dtype != tau.dtype:
        raise RuntimeError(f"{name}: tau dtype {scalar_name(tau)} does not match input dtype {scalar_name(input)}")
    return kernels.householder_product(input, tau)


def _reflectors(a: Tensor, k: int) -> list[Tensor]:
    """The vectors of the reflectors, as columns: a one, and below it what the matrix stores."""
    lower = a.narrow(-1, 0, k).tril(-1)
    ones = wrap(np.eye(a.shape[-2], k, dtype=a.dtype.np))
    return list((lower + ones).split(1, -1))


def _reflect(v: Tensor, tau: Tensor, x: Tensor) -> Tensor:
    """(I - tau v vᴴ) x"""
    return x - tau * matmul(v, matmul(v.mH, x))


def _householder_grad(grad: Tensor, input: Tensor, tau: Tensor) -> tuple[Any, Any]:
    """Walk along Q = H₁ … Hₖ E: at each reflector, the gradient from the left meets the product of those on its right."""
    k = tau.shape[-1]
    if not k:
        return input.new_zeros(input.shape), tau.new_zeros(tau.shape)
    vectors = _reflectors(input, k)
    scales = [t.unsqueeze(-1) for t in tau.split(1, -1)]
    rights = [wrap(np.eye(*grad.shape[-2:], dtype=grad.dtype.np))]
    for v, t in zip(reversed(vectors[1:]), reversed(scales[1:]), strict=True):
        rights.append(_reflect(v, t, rights[-1]))
    rights.reverse()
    grad_v, grad_tau, left = [], [], grad
    for v, t, right in zip(vectors, scales, rights, strict=True):
        middle_v = matmul(left, matmul(right.mH, v))
        grad_tau.append(-matmul(v.mH, middle_v))
        grad_v.append(-(conj(t) * middle_v + t * matmul(right, matmul(left.mH, v))))
        left = _reflect(v, conj(t), left)
    lower = cat(grad_v, -1).tril(-1)
    if input.shape[-1] > k:
        lower = cat([lower, lower.new_zeros((*lower.shape[:-1], input.shape[-1] - k))], -1)
    return lower, cat(grad_tau, -1).squeeze(-2)


linalg_householder_product = op(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    cpu=_householder_kernel,
    grad={("input", "tau"): _householder_grad},
    variants="function",
)
orgqr = op("orgqr(Tensor self, Tensor input2) -> Tensor", composite=lambda self, input2: linalg_householder_product(self, input2))


def _ormqr_kernel(self: Array, input2: Array, input3: Array, left: bool, transpose: bool) -> Array:
    name = "torch.ormqr"
    side = -2 if left else -1
    for label, x in (("input", self), ("other", input3)):
        if x.ndim < 2:
            raise RuntimeError(f"{name}: {label} must have at least 2 dimensions.")
    if not input2.ndim:
        raise no_dimensions(-1)
    if input3.shape[side] < input2.shape[-1]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if input3.shape[side] != self.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    if input2.shape[-1] > self.shape[-1] or input2.shape[-1] != min(input3.shape[side], self.shape[-1]):
        raise RuntimeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    if self.ndim - input2.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {input2.ndim} and input.ndim "
            f"is equal to {self.ndim}"
        )
    if self.ndim != input3.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got other.ndim equal to {input3.ndim} "
            f"and input.ndim is equal to {self.ndim}"
        )
    for label, x in (("tau", input2), ("other", input3)):
        if x.dtype != self.dtype:
            raise RuntimeError(
                f"{name}: Expected input and {label} to have the same dtype, but input has dtype {scalar_name(self)} and {label} has "
                f"dtype {scalar_name(x)}"
            )
    return kernels.ormqr(self, input2, input3, left, transpose)


def _ormqr_grad(
    grad: Tensor, self: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool, needs: Any
) -> tuple[Any, Any, Any]:
    grad_other = ormqr(self, input2, grad, left, not transpose) if needs[2] else None
    if not (needs[0] or needs[1]):
        return None, None, grad_other
    if left:
        grad_q = matmul(input3, grad.mH) if transpose else matmul(grad, input3.mH)
    else:
        grad_q = matmul(grad.mH, input3) if transpose else matmul(input3.mH, grad)
    k = input2.shape[-1]
    grad_self, grad_tau = _householder_grad(grad_q, self.narrow(-1, 0, k), input2)
    if self.shape[-1] > k:
        grad_self = cat([grad_self, grad_self.new_zeros((*grad_self.shape[:-1], self.shape[-1] - k))], -1)
    return grad_self, grad_tau, grad_other


ormqr = op(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    cpu=_ormqr_kernel,
    grad={("self", "input2", "input3"): _ormqr_grad},
)
