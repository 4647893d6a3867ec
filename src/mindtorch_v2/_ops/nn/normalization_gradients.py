"""The common part of the gradients of all normalisations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._autograd.differentiate import grad
from ..._autograd.grad_mode import enable_grad
from ..._dispatch.tls import state
from ..._tensor import Tensor, shallow_copy
from ..._transforms.tangents import carry_over

Grads = tuple[Tensor | None, Tensor | None, Tensor | None]  # to the input, the weight and the bias


def normalized_gradient(g: Tensor, x_hat: Tensor, rstd: Tensor, dims: list[int]) -> Tensor:
    """The gradient of (x - mean) * rstd with both taken over `dims`, as differentiable operators."""
    return rstd * (g - g.mean(dims, True) - x_hat * (g * x_hat).mean(dims, True))


def _leaf(t: Tensor, requires_grad: bool) -> Tensor:
    """The tensor, with its tangents, as the start of a graph."""
    made = carry_over(t, shallow_copy(t))
    made.requires_grad = requires_grad
    return made


def _alias(t: Tensor, requires_grad: bool) -> Tensor:
    """The tensor as an input of its own: one that was computed from another is differentiated up to here, and not on to the other."""
    return t.view_as(t) if requires_grad else t


def by_differentiating(
    function: Callable[..., Any], inputs: list[Tensor | None], grads: Sequence[Tensor | None], needs: Sequence[bool]
) -> tuple[Any, ...]:
    """Gradients of a function's results by way of its own graph."""
    again = state.grad_enabled
    with enable_grad():
        start = _alias if again else _leaf
        given = [None if t is None else start(t, n) for t, n in zip(inputs, needs, strict=True)]
        results = function(*given)
        pairs = [(r, g) for r, g in zip(results, grads, strict=True) if r is not None and g is not None and r.requires_grad]
        wanted = [t for t, n in zip(given, needs, strict=True) if n and t is not None]
        found = iter(grad([r for r, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True, create_graph=again))
    return tuple(next(found) if n and t is not None else None for t, n in zip(given, needs, strict=True))
