"""torch._functorch.vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .._transforms.batched import Level, batched, unwrapped
from .._transforms.vmap import entered, vmap
from ..utils import _pytree as pytree

__all__ = ["restore_vmap", "vmap"]


def restore_vmap(func: Callable[..., Any], in_dims: Any, batch_size: int, randomness: str) -> Callable[..., tuple[Any, Any]]:
    """A function that maps `func`, and returns where its results have the batch instead of moving it: None for those without."""

    def inner(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        level = Level(batch_size, randomness)
        with entered(level):
            flat, spec = pytree.tree_flatten(args)
            dims = pytree._broadcast_to_and_flatten(in_dims, spec)
            if dims is None:
                raise ValueError("in_dims does not have the structure of the arguments")
            given = pytree.tree_unflatten([a if d is None else batched(a, d, level) for a, d in zip(flat, dims, strict=True)], spec)
            outputs = func(*given, **kwargs)
        flat, spec = pytree.tree_flatten(outputs)
        parts = [unwrapped(t, level) if isinstance(t, Tensor) else (t, None) for t in flat]
        return pytree.tree_unflatten([v for v, _ in parts], spec), pytree.tree_unflatten([d for _, d in parts], spec)

    return inner
