"""The observers of backward: none, a profiler, an execution trace, or both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Observer", "Plain", "observe"]


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


class Plain(Protocol):
    """An observer for which two calls a node suffice instead of five."""

    clock: Callable[[], float]  # read when a node's whole evaluation begins

    run: Callable[[Any, Any, tuple[Any, ...]], tuple[Any, ...]]  # a node's own computation, as `run_observed`
    end: Callable[[Any, float], None]  # of a node's evaluation that began then
    accumulate: Callable[[Any, dict[Any, Any]], None]  # a leaf's gradient, which is in this dictionary


observer: Observer | None = None
plain: Plain | None = None


def observe(new: Observer | None, as_plain: Plain | None = None) -> None:
    """Set the observer of backward, and its shorter form if it has one. Without an observer, a node pays for a comparison."""
    global observer, plain
    observer, plain = new, as_plain


def run_observed(node: Any, grad: Any, edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """Run a node's computation, in a scope of its own if there is an observer."""
    current = observer  # the same one ends it, even if another is set by then, or none
    if current is None:
        return node._run(grad, edges)
    token = current.begin_run(node, grad)
    try:
        return node._run(grad, edges)
    finally:
        current.end_run(token)
