"""Backward: nodes run when all of their gradients have arrived, the most recently made first, as in torch.

No recursion, so that graphs may be deep. Runs on the calling thread; several threads may run at once, and only adding to a
leaf's `grad` is guarded.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush, heappushpop
from typing import Any

from .._dispatch import keys
from .._dispatch.program import call_program
from .._dispatch.quiet import guard
from .._dispatch.tls import state
from .._forking import new_lock
from .._tensor import Tensor
from . import anomaly, observing
from .fitting import fit
from .gradient_memory import clone_for, is_alone, take_over
from .hook_calls import run_post_hooks, run_pre_hooks, run_result_hooks, run_tensor_hooks
from .node import LEAF, NODE, OUTPUT, edge_of, node_and_index

__all__ = ["accumulate", "is_whole_pass", "queue_callback", "run", "will_run"]

MAX_DEPTH = 50  # backward calls nested in one thread before the next moves to a thread (and Python stack) of its own

_leaf_lock = new_lock()
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
        _put(buffers, edge, grad)
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
    _run_nodes(nodes, leaves, waiting, buffers, keep_graph, create_graph, capture)


def _run_nodes(
    ready: list[tuple[int, Any]],
    leaves: list[Any],
    waiting: dict[Any, int],
    buffers: dict[Any, Any],
    keep_graph: bool,
    create_graph: bool,
    capture: Capture | None,
) -> None:
    """Run the nodes of a heap and those that become ready, latest made first. Leaves are finished as soon as they are ready.

    What every node needs is written out here: a call for each of a node's steps would cost a tenth of a small one.
    """
    observer = observing.observer
    plain = None if anomaly.state.enabled else observing.plain
    call = _caller(observer, plain)
    node: Any = None
    following: Any = None  # the ready node that runs next, kept out of the heap: a chain never touches it
    scope: Any = None
    sums: list[tuple[Any, Any]] = []  # edges and gradients to add to what is there
    try:
        while True:
            if leaves:
                _finish_leaves(leaves, buffers, capture, observer, plain)
            if following is None:
                if not ready:
                    return
                node = heappop(ready)[1]
            elif ready and -ready[0][0] > following._seq:
                node = heappushpop(ready, (-following._seq, following))[1]
            else:
                node = following
            following = None

            edges = node._edges
            grad = buffers.pop(node, None)
            if observer is not None:
                scope = observer.begin(node, grad) if plain is None else plain.clock()
            if grad is None and node._multi:
                grad = [None] * len(node._metas)
            if capture is None and node._hooks is None:
                outs = node._run(grad, edges) if call is None else call(node, grad, edges)
            else:
                edges, outs = _run_hooked(node, grad, call, capture)
                if outs is None:
                    if observer is not None:
                        _end(node, scope, observer, plain)
                        scope = None
                    continue
            grad = None

            # pass each gradient on, brought to the shape and dtype of what it is the gradient of; as in torch, all are brought to it
            # before what was saved is freed, and summed after
            at = -1  # counted by hand: `enumerate` takes 60 ns
            for edge in edges:
                at += 1
                if edge is None:
                    continue
                target = edge
                kind = edge._kind
                out = outs[at]
                if out is not None:
                    if kind == NODE:
                        shape = edge._shape
                        dtype = edge._dtype
                    elif kind == LEAF:
                        shape = edge._array.shape
                        dtype = edge.dtype
                    else:
                        target = edge.node
                        shape, dtype = target._metas[edge.index]
                    if out._array.shape != shape or out.dtype is not dtype:
                        out = fit(out, shape, dtype, node, at)
                    if target is edge and edge not in buffers:
                        buffers[edge] = out
                    else:
                        sums.append((edge, out))
                elif kind == OUTPUT:
                    target = edge.node
                left = waiting[target] - 1
                if left:
                    waiting[target] = left
                elif kind == LEAF:
                    leaves.append(target)
                elif following is None:
                    following = target
                elif target._seq > following._seq:
                    heappush(ready, (-following._seq, following))
                    following = target
                else:
                    heappush(ready, (-target._seq, target))
            if not keep_graph:
                node._release()
            if sums:
                for edge, out in sums:
                    held = buffers.pop(edge, None)  # an Output is no key
                    if held is None:
                        _put(buffers, edge, out)
                    else:
                        buffers[edge] = _sum(held, out, create_graph, outs)
                sums.clear()
            outs = out = held = None
            if observer is not None:
                if plain is None:
                    observer.end(scope)
                else:
                    plain.end(node, scope)
                scope = None
    except BaseException:
        if scope is not None and observer is not None:
            _end(node, scope, observer, plain)
        raise


def _run_hooked(node: Any, grad: Any, call: Any, capture: Capture | None) -> tuple[tuple[Any, ...], Any]:
    """Run a node where hooks change its gradients, or where not all are wanted.

    Returns the edges along which gradients go, and the gradients, None if none of them is wanted.
    """
    edges = node._edges
    hooks = node._hooks
    if hooks is not None:
        grad = run_result_hooks(node, grad)
    if capture is not None:
        if node in capture.positions:
            capture.store(node, grad)
        if node not in capture.needed:
            return (), None
        wanted = capture.wanted
        edges = tuple([e if e is not None and (e.node if e._kind == OUTPUT else e) in wanted else None for e in edges])
    if hooks is not None and hooks.pre:
        grad = run_pre_hooks(node, grad)
    outs = node._run(grad, edges) if call is None else call(node, grad, edges)
    if hooks is not None and hooks.post:
        outs = run_post_hooks(node, outs, grad)
    return edges, outs


def _caller(observer: observing.Observer | None, plain: observing.Plain | None) -> Any:
    """The function that computes a node's gradients, None for the node's own."""
    if plain is not None:
        return plain.run
    if anomaly.state.enabled:
        return anomaly.checked_call
    return None if observer is None else observing.run_observed


def _end(node: Any, scope: Any, observer: observing.Observer, plain: observing.Plain | None) -> None:
    if plain is None:
        observer.end(scope)
    else:
        plain.end(node, scope)


def _put(buffers: dict[Any, Any], edge: Any, grad: Any) -> None:
    """Add a gradient to what has arrived for an edge's target."""
    if edge._kind == OUTPUT:
        node, index = edge.node, edge.index
        buffer = buffers.get(node)
        if buffer is None:
            buffer = buffers[node] = [None] * len(node._metas)
        held, buffer[index] = buffer[index], None
        buffer[index] = grad if held is None else _sum(held, grad, state.grad_enabled)
    else:
        held = buffers.pop(edge, None)
        buffers[edge] = grad if held is None else _sum(held, grad, state.grad_enabled)


FOREIGN = keys.BATCHED | keys.DUAL  # a gradient with one of these is not added to one without it in place


def _sum(held: Tensor, grad: Tensor, create_graph: bool, outs: Sequence[Any] = ()) -> Tensor:
    """Add to a buffered gradient, in place when nobody else can see it but the gradients `outs` that the node has just made."""
    # the caller's variable and the argument here; torch: a view is added out of place, because it shares its memory with its base
    seen = 2 + sum([out is held for out in outs])
    if (
        not create_graph
        and held.dtype is grad.dtype
        and held._base is None
        and is_alone(held, seen, held._array)
        and not grad._keys & FOREIGN
    ):
        return held.add_(grad)
    return held + grad


# --- leaves ---------------------------------------------------------------------------------------------------------


def _finish_leaves(
    leaves: list[Tensor],
    buffers: dict[Any, Any],
    capture: Capture | None,
    observer: observing.Observer | None,
    plain: observing.Plain | None,
) -> None:
    """Finish these leaves, and leave the list empty."""
    for leaf in leaves:
        if plain is None or capture is not None or leaf._extra is None or leaf._extra.hooks:
            _finish_leaf(leaf, buffers, capture, observer)
        else:
            plain.accumulate(leaf, buffers)
    leaves.clear()


def _finish_leaf(leaf: Tensor, buffers: dict[Any, Any], capture: Capture | None, observer: observing.Observer | None) -> None:
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


def accumulate(leaf: Tensor, grad: Any) -> None:
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


def _in_new_thread(roots: Any, grads: Any, keep_graph: bool, create_graph: bool, capture: Capture | None) -> list[Any]:
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
