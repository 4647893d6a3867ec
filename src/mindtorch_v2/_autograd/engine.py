"""Backward: nodes run when all of their gradients have arrived, the most recently made first, as in torch.

No recursion, so that graphs may be deep. Runs on the calling thread; several threads may run at once.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from heapq import heapify
from typing import Any

from .._dispatch.program import call_program
from .._dispatch.quiet import guard
from .._dispatch.tls import state
from .._tensor import Tensor
from . import anomaly, observing
from .node import LEAF, OUTPUT, edge_of, node_and_index
from .node_loop import observed_loop, put_gradient, unobserved_loop

__all__ = ["is_whole_pass", "queue_callback", "run", "will_run"]

MAX_DEPTH = 50  # backward calls nested in one thread before the next moves to a thread (and Python stack) of its own

_next_id = itertools.count(1).__next__


class Capture:
    """The tensors whose gradients are wanted, and which nodes lead to them."""

    def __init__(self, edges: Sequence[Any], *, accumulate: bool) -> None:
        self.results: list[Any] = [None] * len(edges)
        self.positions: dict[Any, list[tuple[int, int]]] = {}  # target → position in results, index of the target's result
        self.targets: set[Any] = set()
        self.needed: set[Any] = set()  # what is to run
        self.wanted: set[Any] = set()  # what gradients are to be passed on to
        for position, edge in enumerate(edges):
            target, index = node_and_index(edge)
            self.targets.add(target)
            if accumulate:
                self.needed.add(target)  # runs itself, so that hooks and `grad` of the inputs see the gradient
            else:
                self.positions.setdefault(target, []).append((position, index))

    def find_needed(self, starts: Sequence[Any]) -> None:
        """Mark the nodes from which some wanted tensor is reached. Called once, before any node runs."""
        parents: dict[Any, list[Any]] = {}
        stack, seen = list(starts), set(starts)
        while stack:
            node = stack.pop()
            for edge in node._edges:
                if edge is None:
                    continue
                target = edge.node if edge._kind == OUTPUT else edge
                parents.setdefault(target, []).append(node)
                if target not in seen and target._kind != LEAF:
                    seen.add(target)
                    stack.append(target)
        reached = [parent for target in self.targets for parent in parents.get(target, ())]
        found: set[Any] = set()
        while reached:
            node = reached.pop()
            if node not in found:
                found.add(node)
                reached += parents.get(node, ())
        self.needed |= found
        self.wanted = self.needed | self.targets

    def store(self, target: Any, grad: Any) -> None:
        for position, index in self.positions.get(target, ()):
            self.results[position] = grad[index] if target._kind != LEAF and target._multi else grad


def run(
    roots: Sequence[Any],
    grads: Sequence[Any],
    *,
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] | None = None,
    accumulate: bool = True,
) -> list[Any]:
    """Propagate `grads` from the edges `roots`. With the edges `inputs`, only what leads to them runs.

    Returns the gradients of the inputs, unless `accumulate` asks for them to be added to `grad`.
    """
    capture = None if inputs is None else Capture(inputs, accumulate=accumulate)
    tls = state.__dict__  # this thread's: one lookup instead of a dozen
    depth = tls.get("backward_depth", 0)
    if depth >= MAX_DEPTH:
        return _in_new_thread(roots, grads, keep_graph, create_graph, capture)
    previous = tls.get("grad_enabled", True), tls.get("backward_id", 0), tls.get("backward_waiting")
    off = tls.get("subclass_override_off", 0), tls.get("program_override_off", 0)
    of_outer_passes = len(_callbacks.pending)
    quiet = None
    try:  # from the first change on: an interrupt may come with any call, and must not leave the mode behind
        tls["grad_enabled"] = create_graph
        tls["backward_depth"] = depth + 1
        tls["backward_id"] = _next_id()
        tls["subclass_override_off"], tls["program_override_off"] = off[0] + 1, off[0]  # formulas ask no subclasses (`program`)
        quiet = guard()
        _propagate(roots, grads, keep_graph, create_graph, capture)
    finally:
        quiet = None  # noqa: F841 - it ends here
        tls["grad_enabled"], tls["backward_id"], tls["backward_waiting"] = previous
        try:
            if len(_callbacks.pending) > of_outer_passes:
                _run_callbacks(of_outer_passes)
        finally:
            tls["backward_depth"] = depth
            tls["subclass_override_off"], tls["program_override_off"] = off
    return [] if capture is None else capture.results


def will_run(t: Tensor) -> bool:
    """Whether the pass that runs on this thread reaches a tensor, and wants its gradient."""
    waiting, capture = state.backward_waiting
    edge = edge_of(t)
    if edge is None:
        return False
    target = edge.node if edge._kind == OUTPUT else edge
    return target in waiting and (capture is None or target in capture.wanted)


def is_whole_pass() -> bool:
    """Whether the pass that runs on this thread goes to all leaves, and not to given inputs alone."""
    waiting = state.backward_waiting
    return waiting is None or waiting[1] is None


def _count_gradients(starts: Sequence[Any]) -> dict[Any, int]:
    """Count the gradients that each reachable node and leaf waits for."""
    waiting = dict.fromkeys(starts, 0)
    stack = [s for s in starts if s._kind != LEAF]
    while stack:
        for edge in stack.pop()._edges:
            if edge is None:
                continue
            kind = edge._kind
            if kind == OUTPUT:
                edge = edge.node
            if edge in waiting:
                waiting[edge] += 1
            else:
                waiting[edge] = 1
                if kind != LEAF:
                    stack.append(edge)
    return waiting


def _propagate(roots: Sequence[Any], grads: Sequence[Any], keep_graph: bool, create_graph: bool, capture: Capture | None) -> None:
    """Run what the roots lead to."""
    buffers: dict[Any, Any] = {}  # target → the sum of its gradients so far, or a list of such sums for several results
    for edge, grad in zip(roots, grads, strict=True):
        put_gradient(buffers, edge, grad)
    starts = list(buffers)
    waiting = _count_gradients(starts)
    state.backward_waiting = (waiting, capture)
    if capture is not None:
        capture.find_needed([s for s in starts if s._kind != LEAF])
    nodes: list[tuple[int, Any]] = []
    leaves: list[Any] = []
    for start in starts:
        if not waiting[start]:
            if start._kind == LEAF:
                leaves.append(start)
            else:
                nodes.append((-start._seq, start))
    heapify(nodes)
    observer = observing.observer
    if anomaly.state.enabled:
        loop, call = observed_loop, anomaly.checked_call
    elif observer is None:
        loop, call = unobserved_loop, None
    else:
        loop, call = observing.recorded_loop or observed_loop, observing.run_observed
    loop(nodes, leaves, waiting, buffers, keep_graph, create_graph, capture, observer, call)


# --- nesting and callbacks ------------------------------------------------------------------------------------------


class _Callbacks(threading.local):
    pending: list[Callable[[], Any]]

    def __init__(self) -> None:
        self.pending = []


_callbacks = _Callbacks()


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call back when the backward pass that is running on this thread ends."""
    if not state.backward_depth:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    _callbacks.pending.append(callback)


def _run_callbacks(first: int) -> None:
    pending = _callbacks.pending
    try:
        while len(pending) > first:  # a callback may queue others
            call_program(pending.pop(first))
    finally:
        del pending[first:]


def _in_new_thread(roots: Any, grads: Sequence[Any], keep_graph: bool, create_graph: bool, capture: Capture | None) -> list[Any]:
    """Go on with a fresh Python stack: backward may call itself more often than Python's recursion limit allows.

    Modes and the rest of this thread's state hold there too.
    """
    error: list[BaseException] = []
    held = {name: list(value) if isinstance(value, list) else value for name, value in vars(state).items()}

    def work() -> None:
        vars(state).update(held, grad_enabled=create_graph, backward_depth=1, backward_id=_next_id())
        try:
            try:
                _propagate(roots, grads, keep_graph, create_graph, capture)
            finally:
                _run_callbacks(0)
        except BaseException as e:
            error.append(e)

    thread = threading.Thread(target=work, name="nested backward")
    thread.start()
    thread.join()
    if error:
        raise error[0]
    return [] if capture is None else capture.results
