"""Who watches backward: nobody, or the profiler."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Observer", "observe"]


class Observer(Protocol):
    """Sees backward as torch's profiler does: a scope around each node's whole evaluation, and its own computation in it.

    A target is a Node, or the leaf tensor that a gradient is added to. An observer must not keep the gradient: another reference
    to it would keep the engine from taking its memory over.
    """

    def begin(self, target: Any, grad: Any) -> Any:
        """Before the hooks, computation and passing on of a target; returns a token for `end`."""

    def end(self, token: Any) -> None: ...

    def begin_run(self, target: Any, grad: Any) -> Any:
        """Before a target's own computation."""

    def end_run(self, token: Any) -> None: ...


observer: Observer | None = None


def observe(new: Observer | None) -> None:
    """Let somebody watch backward; while nobody does, a node pays for a comparison."""
    global observer
    observer = new


def run_observed(node: Any, grad: Any, edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """A node's computation in a scope of its own, if somebody watches."""
    watching = observer  # who began it ends it, even if another watches then, or nobody
    if watching is None:
        return node._run(grad, edges)  # type: ignore[no-any-return]
    token = watching.begin_run(node, grad)
    try:
        return node._run(grad, edges)  # type: ignore[no-any-return]
    finally:
        watching.end_run(token)
