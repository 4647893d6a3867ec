"""torch._functorch.eager_transforms."""

from __future__ import annotations

from typing import Any

from .._transforms.gradients import _chosen, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ..func.debugging import debug_unwrap, functionalize

__all__ = ["debug_unwrap", "functionalize", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


def _slice_argnums(args: tuple[Any, ...], argnums: Any, as_tuple: bool = True) -> tuple[Any, ...]:
    """The arguments that `argnums` names."""
    found = _chosen(args, argnums)
    return (found,) if as_tuple and isinstance(argnums, int) else found
