"""Householder reflectors: compact QR factors, their products, and multiplying by those."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._backends.cpu.linalg import factorizations as kernels
from ..._backends.cpu.linalg.householder import reflector_gradients
from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._checks import no_dimensions
from ..._dispatch import dispatcher, keys
from ..._dispatch.tls import state
from ..._tensor import Tensor
from ..machinery.computing import computed
from ..machinery.declare import not_implemented, op
from ..machinery.lookup import aten
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


def _product_gradients(grad: Tensor, result: Tensor, input: Tensor, tau: Tensor, *, adjoint: bool = False) -> tuple[Any, Any]:
    """Gradients of the reflectors behind `result`, which is Q X, or Qᴴ X where `adjoint`, with Q = H₁ … Hₖ and any X.

    A change of Hᵢ = I - τ v vᴴ changes the loss by tr(dHᵢ M), where M is the product of what stands behind Hᵢ, the gradient, and what
    stands before Hᵢ. From one reflector to the next, M loses a factor on one side, by its inverse I - σ v vᴴ, and gets one on the other.
    """
    if not tau.numel():
        return None, None
    if not state.grad_enabled and not dispatcher.active_modes() and _all_on_cpu(grad, result, input, tau):
        return _gradients_at_once(grad, result, input, tau, adjoint)
    k = tau._array.shape[-1]
    vectors = input.tril(-1)
    vectors.diagonal(0, -2, -1).fill_(1)
    first = vectors.narrow(-1, 0, k)
    inverse = tau / ((first * conj(first)).sum(-2) * tau - 1)
    middle = matmul(grad, result.mH) if adjoint else matmul(result, grad.mH)
    order = range(k - 1, -1, -1) if adjoint else range(k)

    def part(i: int) -> tuple[Tensor, Tensor]:
        return vectors.narrow(-1, i, 1), inverse.narrow(-1, i, 1)

    middle = _reflect(middle, order[0], *part(order[0]), left=not adjoint)
    # where gradients alone differ between the samples of a vmap, so does what they are written to
    grad_input, grad_tau = (middle.new_zeros(t.shape) if middle._keys & keys.BATCHED else aten.zeros_like(t) for t in (input, tau))
    for i, following in itertools.zip_longest(order, order[1:]):
        v, t = vectors.narrow(-1, i, 1), tau.narrow(-1, i, 1)
        column, scale = _reflector_gradients(middle, i, v, t)
        grad_input.select(-1, i).copy_(column.squeeze(-1))
        grad_tau.select(-1, i).copy_(scale.squeeze(-1))
        if following is not None:
            middle = _reflect(middle, following, *part(following), left=not adjoint)
            middle = _reflect(middle, i, v, t, left=adjoint)
    return grad_input.tril_(-1), grad_tau


def _gradients_at_once(*given: Any) -> tuple[Tensor, Tensor]:
    """The same in one kernel: half of the time and less."""
    input, tau = given[2:4]
    found = computed(reflector_gradients, *given)
    grad_input: Tensor = aten.zeros_like(input)
    grad_input._array[...] = found[0]._array
    writes = tau._array.shape[-1]
    grad_input._storage.version, found[1]._storage.version = writes + 1, writes  # as many as the parts make
    return grad_input, found[1]


def _all_on_cpu(*tensors: Tensor) -> bool:
    return all(t._keys & ~keys.AUTOGRAD == keys.CPU for t in tensors)


def _reflect(x: Tensor, i: int, v: Tensor, t: Tensor, *, left: bool) -> Tensor:
    """`x` times I - t v vᴴ from one side, where v is zero before its element i.

    What that leaves as it is, is left alone, unless somebody wants to differentiate all this.
    """
    if state.grad_enabled:
        adjoint = v.mH
        if left:
            return x - t.unsqueeze(-1) * v * matmul(adjoint, x)
        return x - matmul(x, t.unsqueeze(-1) * v) * adjoint
    rest = x._array.shape[-1] - i
    if left:
        below = v.narrow(-2, i, rest)
        onto = matmul(v.narrow(-2, i, rest).mH, x.narrow(-2, i, rest))
        x.narrow(-2, i, rest).sub_(t.unsqueeze(-1) * below * onto)
    else:
        below = v.narrow(-2, i, rest)
        onto = matmul(x.narrow(-1, i, rest), t.unsqueeze(-1) * v.narrow(-2, i, rest))
        x.narrow(-1, i, rest).sub_(onto * below.mH)
    return x


def _reflector_gradients(middle: Tensor, i: int, v: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of one reflector's vector, as a column, and of its scale."""
    rest = middle._array.shape[-1] - i
    v, t = v.narrow(-2, i, rest), t.unsqueeze(-1)
    row = matmul(v.mH, middle.narrow(-2, i, rest))
    column = matmul(middle.narrow(-1, i, rest), v)
    grad_v = conj(-t * row).squeeze(-2) - (t * column).squeeze(-1)
    grad_t = -matmul(row.narrow(-1, i, rest), v)
    return grad_v.unsqueeze(-1), conj(grad_t).squeeze(-1)


linalg_householder_product = op(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    cpu=_householder_kernel,
    grad={("input", "tau"): lambda grad, result, input, tau: _product_gradients(grad, result, input, tau)},
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
    grad: Tensor, result: Tensor, self: Tensor, input2: Tensor, left: bool, transpose: bool, needs: Sequence[bool]
) -> tuple[Any, Any, Any]:
    grad_other = ormqr(self, input2, grad, left, not transpose) if needs[2] else None
    if not (needs[0] or needs[1]):
        return None, None, grad_other
    if not left:
        grad, result = grad.mH, result.mH
    # what stands to the left of Q stands to the right of its adjoint
    return (*_product_gradients(grad, result, self, input2, adjoint=transpose == left), grad_other)


ormqr = op(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    cpu=_ormqr_kernel,
    grad={("self", "input2", "input3"): _ormqr_grad},
)
