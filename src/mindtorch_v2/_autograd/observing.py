"""The observers of backward: none, a profiler, an execution trace, or both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .node import Node

__all__ = ["Gradients", "Observer", "Target", "observe", "run_observed"]

Target: TypeAlias = "Node | Tensor"
Gradients: TypeAlias = "Tensor | list[Tensor | None] | None"  # of a node with several results, those of all


class Observer(Protocol):
    """Sees backward as torch's profiler does: a scope around each node's whole evaluation, and its own computation in it.

    A target is a node, or the leaf tensor that a gradient is added to. An observer must not keep the gradient: another reference
    to it would keep the engine from taking its memory over.
    """

    def begin(self, target: Target, grad: Gradients) -> Any:
        """Before the hooks, computation and passing on of a target; returns a token for `end`."""

    def end(self, token: Any) -> None: ...

    def begin_run(self, target: Target, grad: Gradients) -> Any:
        """Before a target's own computation."""

    def end_run(self, token: Any) -> None: ...


observer: Observer | None = None
recorded_loop: Callable[..., None] | None = None


def observe(new: Observer | None, loop: Callable[..., None] | None = None) -> None:
    """Set the observer of backward; `loop` is a loop over nodes that observes the same without calls, if there is one."""
    global observer, recorded_loop
    observer, recorded_loop = new, loop


def run_observed(node: Node, grad: Gradients, edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """Run a node's computation, in a scope of its own if there is an observer."""
    current = observer  # the same one ends it, even if another is set by then, or none
    if current is None:
        return node._run(grad, edges)
    token = current.begin_run(node, grad)
    try:
        return node._run(grad, edges)
    finally:
        current.end_run(token)
