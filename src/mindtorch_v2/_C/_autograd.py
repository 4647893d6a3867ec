"""torch._C._autograd: saved tensors and the hooks that care for them."""

from __future__ import annotations

from .._autograd.node import Node
from .._autograd.saved import SavedTensor
from .._dispatch.tls import state

__all__ = ["Node", "SavedTensor"]


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether hooks for saved tensors may be used on this thread."""
    return state.hooks_disabled is None
