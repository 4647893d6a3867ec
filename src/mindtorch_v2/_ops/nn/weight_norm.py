"""Weight normalisation: a direction and a length instead of a weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._dispatch.tls import state
from ..._tensor import Tensor
from ..machinery.declare import op
from ..reductions.norms import norm_except_dim

Array = np.ndarray[Any, Any]


def _other_axes(v: Array, dim: int) -> tuple[int, ...]:
    return tuple(i for i in range(v.ndim) if i != dim)


def _forward(v: Array, g: Array, dim: int) -> tuple[Array, Array]:
    norms = np.sqrt(np.square(v).sum(_other_axes(v, dim), keepdims=True))
    return v * (g / norms), norms


def _backward(grad_w: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    dims = [i for i in range(v.dim()) if i != dim]
    along = (grad_w * v).sum(dims, keepdim=True)
    return g / norms * (grad_w - v * (along / (norms * norms))), along / norms


def _backward_kernel(grad_w: Array, saved_v: Array, saved_g: Array, saved_norms: Array, dim: int) -> tuple[Array, Array]:
    along = (grad_w * saved_v).sum(_other_axes(saved_v, dim), keepdims=True) / saved_norms
    return saved_g / saved_norms * (grad_w - saved_v * (along / saved_norms)), along


def _gradients(grads: Sequence[Tensor | None], v: Tensor, g: Tensor, norms: Tensor, dim: int) -> tuple[Any, Any]:
    """By the kernel, or by operators when derivatives of the gradients may be asked for: of the norms too, which are taken anew."""
    if grads[0] is None:
        return None, None
    if state.grad_enabled:
        return _backward(grads[0], v, g, norm_except_dim(v, 2, dim), dim)
    return _weight_norm_interface_backward(grads[0], v, g, norms, dim)


_weight_norm_interface_backward = op(
    "_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) -> (Tensor, Tensor)",
    cpu=_backward_kernel,
    shape=lambda saved_v, saved_g: (saved_v.shape, saved_g.shape),
    variants="function",
)
_weight_norm_interface = op(
    "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
    cpu=_forward,
    rows=True,
    nondifferentiable=("result1",),
    grad={("v", "g"): lambda grads, v, g, result1, dim: _gradients(grads, v, g, result1, dim)},
    variants="function",
)
_weight_norm = op(
    "_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor",
    composite=lambda v, g, dim: (
        _weight_norm_interface(v, g, dim)[0] if dim in (0, v.dim() - 1) else v * (g / norm_except_dim(v, 2, dim))
    ),
    variants="function",
)
