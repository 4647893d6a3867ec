"""Gradients of products of Householder reflectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..reductions.sums import sum_dims
from .factorizations import adjoint as adjoint_of
from .matmul import product

Array = np.ndarray[Any, Any]


def reflector_gradients(grad: Array, result: Array, input: Array, tau: Array, adjoint: bool) -> tuple[Array, Array]:
    """Compute what `_ops.linalg.householder` computes by operators, to the last bit."""
    batch, k = tau.shape[:-1], tau.shape[-1]
    if len(batch) > 1:
        one, two, three = (x.reshape(-1, *x.shape[-2:]) for x in (grad, result, input))
        found = reflector_gradients(one, two, three, tau.reshape(-1, k), adjoint)
        return found[0].reshape(input.shape), found[1].reshape(tau.shape)
    vectors = np.tril(input, -1)
    diagonal = np.arange(min(input.shape[-2:]))
    vectors[..., diagonal, diagonal] = 1
    complex_ = input.dtype.kind == "c"
    first = vectors[..., :k]
    squares = first * (first.conj() if complex_ else first)
    inverse = tau / (sum_dims(squares, -2, False, None) * tau - 1)
    middle = product(grad, adjoint_of(result)) if adjoint else product(result, adjoint_of(grad))
    grad_input, grad_tau = np.zeros(input.shape, input.dtype), np.zeros(tau.shape, tau.dtype)
    order = range(k - 1, -1, -1) if adjoint else range(k)

    def parts(i: int) -> tuple[Array, Array, Array]:
        v = vectors[..., i:, i, None]
        return v, adjoint_of(v), inverse[..., i, None, None]

    v, above, scale = parts(order[0])
    _reflect(middle, order[0], v, above, scale, left=not adjoint)
    for n, i in enumerate(order):
        t = tau[..., i, None, None]
        row = product(above, middle[..., i:, :])
        column = product(middle[..., i:], v)
        grad_v, grad_t = -t * row, -product(row[..., i:], v)
        if complex_:
            grad_v, grad_t = grad_v.conj(), grad_t.conj()
        np.subtract(grad_v[..., 0, i + 1 :], (t * column)[..., i + 1 :, 0], out=grad_input[..., i + 1 :, i])
        grad_tau[..., i] = grad_t[..., 0, 0]
        if n + 1 < k:
            following = parts(order[n + 1])
            _reflect(middle, order[n + 1], *following, left=not adjoint)
            _reflect(middle, i, v, above, t, left=adjoint)
            v, above, scale = following
    return grad_input, grad_tau


def _reflect(x: Array, i: int, v: Array, above: Array, t: Array, *, left: bool) -> None:
    """`x` times I - t v vᴴ from one side, in place, where v holds the elements from i on and `above` is its adjoint."""
    if left:
        part = x[..., i:, :]
        part -= t * v * product(above, part)
    else:
        part = x[..., i:]
        part -= product(part, t * v) * above
