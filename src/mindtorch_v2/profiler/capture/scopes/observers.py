"""The observers of scopes and backward: the profiler, an execution trace, both, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import _record
from ...._autograd import observing
from .. import tasks
from ..execution_trace.execution_scopes import ExecutionScopes
from ..operators.recorder import Log
from ..source import Findings, Source
from . import scopes
from .node_scopes import NodeScopes, NodeScopesWithRoles, Owner

if TYPE_CHECKING:
    from ...._autograd.observing import Gradients, Target

__all__ = ["ScopesAndBackward", "forget_tasks", "set_execution_trace", "set_profiler"]

_profiler: NodeScopes | None = None
_trace: ExecutionScopes | None = None


class ScopesAndBackward(Source):
    """Records scopes and backward nodes, and knows the asyncio tasks that had scopes.

    `owner` tells the module that has a parameter; `with_roles` has gradients of leaves noted.
    """

    def __init__(self, log: Log, owner: Owner | None, *, with_roles: bool) -> None:
        self._log = log
        self._owner = owner
        self._kind = NodeScopesWithRoles if with_roles else NodeScopes

    def resume(self) -> None:
        set_profiler(self._kind(self._log, self._owner))

    def pause(self, now: float) -> None:
        set_profiler(None)

    def take(self, findings: Findings) -> None:
        findings.tasks = dict(tasks.known)
        forget_tasks()

    def discard(self) -> None:
        set_profiler(None)
        forget_tasks()


def set_profiler(nodes: NodeScopes | None) -> None:
    """Have the profiler see scopes and backward, or not any more."""
    global _profiler
    _profiler = nodes
    _install()


def set_execution_trace(trace: ExecutionScopes | None) -> None:
    """Have an execution trace see scopes and backward, or not any more."""
    global _trace
    _trace = trace
    _install()


def forget_tasks() -> None:
    """End the bookkeeping of asyncio's tasks, if nobody needs it."""
    if _profiler is None and _trace is None:
        tasks.forget()


def _install() -> None:
    if _profiler is not None and _trace is not None:
        both = _Both(_profiler, _trace)
        _record.install(both.begin_scope, both.end_scope)
        observing.observe(both)
    elif _trace is not None:
        _record.install(_trace.begin_scope, _trace.end_scope)
        observing.observe(_trace)
    elif _profiler is not None:
        _record.install(scopes.begin, scopes.end)
        observing.observe(_profiler, _profiler.loop())
    else:
        _record.install(None, None)
        observing.observe(None)


class _Both:
    """The profiler inside of an execution trace: its times are without the other's work, and its events have the other's numbers."""

    def __init__(self, profiler: NodeScopes, trace: ExecutionScopes) -> None:
        self._profiler = profiler
        self._trace = trace

    def begin_scope(self, name: str, args: str | None = None, **facts: Any) -> tuple[Any, Any]:
        token = self._trace.begin_scope(name, args, **facts)
        return scopes.begin(name, args, **facts, function_id=token.function_id), token

    def end_scope(self, tokens: tuple[Any, Any]) -> None:
        scope, token = tokens
        scopes.end(scope)
        self._trace.end(token)

    def begin(self, target: Target, grad: Gradients) -> tuple[Any, Any]:
        token = self._trace.begin(target, grad)
        return self._profiler.begin(target, grad, token.function_id), token

    def end(self, tokens: tuple[Any, Any]) -> None:
        self._profiler.end(tokens[0])
        self._trace.end(tokens[1])

    def begin_run(self, target: Target, grad: Gradients) -> tuple[Any, Any]:
        token = self._trace.begin_run(target, grad)
        return self._profiler.begin_run(target, grad, token.function_id), token

    def end_run(self, tokens: tuple[Any, Any]) -> None:
        self._profiler.end_run(tokens[0])
        self._trace.end_run(tokens[1])
