"""`debug_unwrap`, and `functionalize`, which is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .._transforms.batched import BatchedStorage

__all__ = ["debug_unwrap", "functionalize"]


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The value behind a tensor inside `vmap`, to look at in a debugger; what is computed from it is not mapped."""
    while isinstance(tensor._storage, BatchedStorage):
        tensor = tensor._storage.value
        if not recurse:
            break
    return tensor


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Refused: nothing is traced here, so nothing would see the function without its writes."""
    raise NotImplementedError(
        "functionalize rewrites a function for tracing, and nothing is traced here; call the function as it is: in-place operators and "
        "views are differentiated and mapped"
    )
