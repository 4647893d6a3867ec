"""torch._vmap_internals: the `vmap` that autograd uses itself, in which custom Functions run as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._dispatch.tls import state
from ._transforms.vmap import vmap_call

__all__ = ["vmap"]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """`torch.vmap` without its further options."""
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """A function over batches; None among its results stays None if `allow_none_pass_through`.

    A custom Function needs no `setup_context` in it: it is no function transform of the program's.
    """

    def wrapped(*args: Any) -> Any:
        missing: list[int] = []

        def one(*rows: Any) -> Any:
            state.transforms, held = 0, state.transforms
            try:
                found = func(*rows)
            finally:
                state.transforms = held
            if not allow_none_pass_through or not isinstance(found, tuple):
                return found
            missing[:] = [i for i, value in enumerate(found) if value is None]
            return tuple(value for value in found if value is not None)

        found = vmap_call(one, in_dims, out_dims, "error", None, args, {})
        for i in missing:
            found = (*found[:i], None, *found[i:])
        return found

    return wrapped
