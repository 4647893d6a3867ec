"""The end of a backward pass at a leaf: its hooks see the sum of its gradients, which is captured or added to `grad`.

Several threads may run backward at once; adding to a leaf's `grad` is guarded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._dispatch import keys
from .._dispatch.program import call_program
from .._dispatch.tls import state
from .._forking import new_lock
from .._tensor import Tensor
from .gradient_memory import clone_for, is_alone, take_over
from .hook_calls import run_post_hooks, run_pre_hooks, run_tensor_hooks
from .observing import Observer

if TYPE_CHECKING:
    from .engine import Capture

__all__ = ["accumulate", "finish_leaf", "finish_leaves"]

_leaf_lock = new_lock()


def finish_leaves(leaves: list[Tensor], buffers: dict[Any, Any], capture: Capture | None, observer: Observer | None) -> None:
    """Finish these leaves, and leave the list empty."""
    for leaf in leaves:
        finish_leaf(leaf, buffers, capture, observer)
    leaves.clear()


def finish_leaf(leaf: Tensor, buffers: dict[Any, Any], capture: Capture | None, observer: Observer | None) -> None:
    """A leaf's last gradient has arrived: hooks on it see the sum, then it is captured or added to `grad`."""
    scope = None if observer is None else observer.begin(leaf, buffers.get(leaf))
    try:
        if leaf._extra is None:
            leaf._require_extra()
        elif leaf._extra.hooks:
            buffers[leaf] = run_tensor_hooks(leaf._extra.hooks, buffers.get(leaf))
        if capture is not None:
            capture.store(leaf, buffers.get(leaf))
        if capture is None or leaf in capture.needed:
            token = None if observer is None else observer.begin_run(leaf, buffers.get(leaf))
            try:
                accumulate(leaf, buffers.pop(leaf, None))
            finally:
                if observer is not None:
                    observer.end_run(token)
    finally:
        if observer is not None:
            observer.end(scope)


def accumulate(leaf: Tensor, grad: Tensor | None) -> None:
    """Add a gradient to `leaf.grad`, taking its memory over when nobody else has it."""
    if not leaf._keys & keys.AUTOGRAD:
        return  # it stopped requiring grad after the graph was made
    extra = leaf._require_extra()
    node = None if extra.accumulator is None else extra.accumulator()
    if node is not None and node._hooks is not None and node._hooks.pre:
        grad = run_pre_hooks(node, grad)
    if grad is not None:
        with _leaf_lock:
            held = extra.grad
            if held is None:
                # torch: a gradient is kept in the layout of its leaf
                extra.grad = (
                    take_over(grad, leaf) if not state.grad_enabled and is_alone(grad, 1, leaf._array) else clone_for(leaf, grad)
                )
            elif state.grad_enabled:
                extra.grad = held + grad
            else:
                held.add_(grad)
        if extra.post_accumulate_hooks:
            for hook in list(extra.post_accumulate_hooks.values()):
                if call_program(hook, leaf) is not None:
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    if node is not None and node._hooks is not None and node._hooks.post:
        run_post_hooks(node, (), grad)
