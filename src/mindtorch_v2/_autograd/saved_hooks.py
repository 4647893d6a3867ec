"""Hooks that saved tensors go through on their way into the graph and out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch import dispatcher, keys
from .._dispatch.tls import state
from .._tensor import Tensor

__all__ = ["saved_tensors_hooks"]


class saved_tensors_hooks:  # noqa: N801
    """Inside, what is saved for backward goes through `pack_hook`, and through `unpack_hook` when backward needs it."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if state.hooks_disabled is not None:
            raise RuntimeError(state.hooks_disabled)
        state.saved_hooks.append((self.pack_hook, self.unpack_hook))
        dispatcher.activate(keys.SAVED_HOOKS)

    def __exit__(self, *exc: object) -> None:
        if state.saved_hooks:  # a hook that leaves the context once more than it entered it has no further effect
            dispatcher.deactivate(keys.SAVED_HOOKS)
            state.saved_hooks.pop()
