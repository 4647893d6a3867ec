"""Backward: nodes run when all of their gradients have arrived, the most recently made first, as in torch.

No recursion, so that graphs may be deep. Runs on the calling thread; several threads may run at once, and only adding to a
leaf's `grad` is guarded.
"""

from __future__ import annotations

import heapq
import sys
import threading
from collections.abc import Sequence
from typing import Any

from .._dispatch.tls import state
from .._tensor import Tensor
from .node import Node, Output, edge_of

__all__ = ["accumulate_into_leaf", "run"]

_leaf_lock = threading.RLock()
_getrefcount = sys.getrefcount


class _Capture:
    """Gradients that `autograd.grad` wants returned, by where they arrive."""

    def __init__(self, inputs: Sequence[Tensor], *, accumulate: bool) -> None:
        self.accumulate = accumulate  # `backward(inputs=…)`: add to their .grad instead
        self.results: list[Any] = [None] * len(inputs)
        self.leaves: dict[int, list[int]] = {}
        self.nodes: dict[Node, list[tuple[int, int]]] = {}
        for position, t in enumerate(inputs):
            edge = edge_of(t)
            if edge is None:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
            if isinstance(edge, Tensor):
                self.leaves.setdefault(id(edge), []).append(position)
            else:
                node, index = (edge.node, edge.index) if type(edge) is Output else (edge, 0)
                self.nodes.setdefault(node, []).append((position, index))


def run(
    roots: Sequence[Tensor],
    grads: Sequence[Tensor],
    *,
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Tensor] | None = None,
    accumulate: bool = True,
) -> list[Any]:
    """Propagate `grads` from `roots`. With `inputs`, only what leads to them runs, and their gradients are returned."""
    capture = None if inputs is None else _Capture(inputs, accumulate=accumulate)
    previous = state.grad_enabled
    state.grad_enabled = create_graph
    try:
        return _Task(keep_graph, capture).execute(roots, grads)
    finally:
        state.grad_enabled = previous


def _graph(starts: list[Node]) -> tuple[dict[Node, int], list[Node]]:
    """How many gradients each reachable node waits for, and the nodes in an order of discovery."""
    waiting: dict[Node, int] = {}
    stack = list(starts)
    seen = set(stack)
    order = []
    while stack:
        node = stack.pop()
        order.append(node)
        for edge in node.edges:
            if edge is None or isinstance(edge, Tensor):
                continue
            target = edge.node if edge.__class__ is Output else edge
            waiting[target] = waiting.get(target, 0) + 1
            if target not in seen:
                seen.add(target)
                stack.append(target)
    return waiting, order


class _Task:
    """One backward pass."""

    def __init__(self, keep_graph: bool, capture: _Capture | None) -> None:
        self.keep_graph = keep_graph
        self.capture = capture
        self.buffers: dict[Any, list[Any]] = {}
        self.leaves: dict[int, tuple[Tensor, list[Any]]] = {}
        self.waiting: dict[Node, int] = {}
        self.leaf_waiting: dict[int, int] = {}
        self.needed: set[Any] | None = None

    def execute(self, roots: Sequence[Tensor], grads: Sequence[Tensor]) -> list[Any]:
        starts: list[Node] = []
        for root, grad in zip(roots, grads, strict=True):
            edge = edge_of(root)
            if isinstance(edge, Tensor):
                self._deliver_leaf(edge, grad)
                continue
            node, index = (edge.node, edge.index) if edge.__class__ is Output else (edge, 0)
            if node not in self.buffers:
                starts.append(node)
            self._add(node, index, grad)
        self.waiting, order = _graph(starts)
        self._count_leaf_edges(order, roots)
        if self.capture is not None:
            self.needed = self._leading_to_inputs(order)
        self._flush_leaves()
        ready = [(-node.seq, i, node) for i, node in enumerate(starts) if not self.waiting.get(node)]
        heapq.heapify(ready)
        tie = len(starts)
        evaluate = evaluator
        while ready:
            node = heapq.heappop(ready)[2]
            if self.needed is not None and node not in self.needed:
                evaluate_skipped(self, node)
            else:
                evaluate(self, node)
            for edge in node.edges:
                if edge is None or isinstance(edge, Tensor):
                    continue
                target = edge.node if edge.__class__ is Output else edge
                left = self.waiting[target] = self.waiting[target] - 1
                if left == 0:
                    tie += 1
                    heapq.heappush(ready, (-target.seq, tie, target))
            if self.leaves:
                self._flush_leaves()
            if not self.keep_graph:
                node.release()
        return [] if self.capture is None else self.capture.results

    def _count_leaf_edges(self, order: list[Node], roots: Sequence[Tensor]) -> None:
        """A leaf accumulates once, when its last gradient has arrived, so that its hooks see the sum."""
        counts = self.leaf_waiting
        for node in order:
            for edge in node.edges:
                if isinstance(edge, Tensor):
                    counts[id(edge)] = counts.get(id(edge), 0) + 1

    def _leading_to_inputs(self, order: list[Node]) -> set[Any]:
        """The nodes from which some wanted input is reached."""
        assert self.capture is not None
        parents: dict[Any, list[Node]] = {}
        reached: list[Any] = []
        for node in order:
            for edge in node.edges:
                if edge is None:
                    continue
                if isinstance(edge, Tensor):
                    if id(edge) in self.capture.leaves:
                        reached.append(node)
                else:
                    target = edge.node if edge.__class__ is Output else edge
                    parents.setdefault(target, []).append(node)
                    if target in self.capture.nodes:
                        reached.append(node)
        found: set[Any] = set()
        while reached:
            node = reached.pop()
            if node not in found:
                found.add(node)
                reached += parents.get(node, ())
        return found

    # --- gradients on their way -----------------------------------------------------------------------------------

    def _add(self, node: Node, index: int, grad: Tensor) -> None:
        buffer = self.buffers.get(node)
        if buffer is None:
            buffer = self.buffers[node] = [None] * node.outputs
        held = buffer[index]
        buffer[index] = grad if held is None else _sum(buffer, index, grad)

    def _deliver_leaf(self, leaf: Tensor, grad: Tensor) -> None:
        entry = self.leaves.get(id(leaf))
        if entry is None:
            self.leaves[id(leaf)] = (leaf, [grad])
        else:
            entry[1][0] = _sum(entry[1], 0, grad)

    def deliver(self, node: Node, outs: Sequence[Any]) -> None:
        """Pass a node's gradients on along its edges, each brought to the shape and dtype of what it is the gradient of."""
        needed = self.needed
        for edge, grad in zip(node.edges, outs, strict=False):
            if edge is None:
                continue
            if isinstance(edge, Tensor):
                self.leaf_waiting[id(edge)] -= 1
                if grad is not None and (needed is None or id(edge) in self.capture.leaves):  # type: ignore[union-attr]
                    array = grad._array
                    if array.shape != edge._array.shape or grad.dtype is not edge.dtype:
                        grad = fit(grad, edge._array.shape, edge.dtype, node)
                    self._deliver_leaf(edge, grad)
                continue
            if grad is None:
                continue
            target, index = (edge.node, edge.index) if edge.__class__ is Output else (edge, 0)
            shape, dtype = (target.shape, target.dtype) if target.outputs_meta is None else target.outputs_meta[index]
            if grad._array.shape != shape or grad.dtype is not dtype:
                grad = fit(grad, shape, dtype, node)
            self._add(target, index, grad)

    def _flush_leaves(self) -> None:
        """Accumulate into the leaves whose last gradient has arrived."""
        for key in [k for k in self.leaves if not self.leaf_waiting.get(k)]:
            leaf, buffer = self.leaves.pop(key)
            if self.capture is not None and key in self.capture.leaves and not self.capture.accumulate:
                grad = _run_tensor_hooks(leaf, buffer.pop())
                for position in self.capture.leaves[key]:
                    self.capture.results[position] = grad
            else:
                leaf_evaluator(leaf, buffer)

    def grads_of(self, node: Node) -> list[Any]:
        """The gradients that arrived for a node, after the hooks on the tensors they belong to."""
        grads: list[Any] = self.buffers.pop(node, None) or [None] * node.outputs
        if node.tensor_hooks is not None:
            for index, hooks in node.tensor_hooks.items():
                for hook in list(hooks.values()):
                    if grads[index] is not None:
                        changed = hook(grads[index])
                        if changed is not None:
                            grads[index] = checked_hook_result(changed, grads[index])
        if node.retain_grad_hooks is not None:
            for index, keep in node.retain_grad_hooks.items():
                if grads[index] is not None:
                    keep(grads[index])
        if self.capture is not None and node in self.capture.nodes:
            for position, index in self.capture.nodes[node]:
                if self.capture.accumulate:
                    raise RuntimeError("backward(inputs=…) takes leaf tensors; for others use autograd.grad or retain_grad()")
                self.capture.results[position] = grads[index]
        return grads


def evaluate_skipped(task: _Task, node: Node) -> None:
    """A node that leads to no wanted input: its gradient may be wanted itself, but nothing flows on."""
    task.grads_of(node)
    for edge in node.edges:
        if isinstance(edge, Tensor):
            task.leaf_waiting[id(edge)] -= 1


def evaluate(task: _Task, node: Node) -> None:
    """Run one node and pass its gradients on."""
    grads = task.grads_of(node)
    if all([g is None for g in grads]):
        task.deliver(node, (None,) * len(node.edges))
        return
    task.deliver(node, call(node, grads))


def call(node: Node, grads: list[Any]) -> Sequence[Any]:
    """The node's own computation, between its hooks."""
    if node.pre_hooks is not None:
        for hook in list(node.pre_hooks.values()):
            changed = hook(tuple(grads))
            if changed is not None:
                grads = list(changed) if isinstance(changed, tuple) else [changed]
    outs: Sequence[Any] = node.apply(grads)
    if node.post_hooks is not None:
        for hook in list(node.post_hooks.values()):
            changed = hook(tuple(outs), tuple(grads))
            if changed is not None:
                outs = changed if isinstance(changed, tuple) else (changed,)
    return outs


def accumulate_into_leaf(leaf: Tensor, buffer: list[Any]) -> None:
    """Add a gradient to `leaf.grad`. Takes the gradient out of `buffer`, to see whether anyone else holds it."""
    extra = leaf._require_extra()
    if extra.hooks:
        buffer[0] = _run_tensor_hooks(leaf, buffer[0])
    grad = buffer.pop()
    with _leaf_lock:
        held = extra.grad
        if held is None:
            if state.grad_enabled:
                extra.grad = grad.clone()
            elif _getrefcount(grad) == 2 and _owned(grad):
                grad._base = None
                extra.grad = grad
            else:
                extra.grad = grad.detach().clone()
        elif state.grad_enabled:
            extra.grad = held + grad
        else:
            held.add_(grad)
    if extra.post_accumulate_hooks:
        for hook in list(extra.post_accumulate_hooks.values()):
            hook(leaf)


def _run_tensor_hooks(leaf: Tensor, grad: Any) -> Any:
    if leaf._extra is not None and leaf._extra.hooks:
        for hook in list(leaf._extra.hooks.values()):
            changed = hook(grad)
            if changed is not None:
                grad = checked_hook_result(changed, grad)
    return grad


def checked_hook_result(changed: Any, grad: Tensor) -> Tensor:
    if not isinstance(changed, Tensor):
        raise TypeError(f"hooks must return None or a Tensor, not {type(changed).__name__}")
    if changed._array.shape != grad._array.shape:
        raise RuntimeError("hook '<unnamed>' has changed the size of value")
    return changed


def _owned(t: Tensor) -> bool:
    """Whether a gradient that only the engine holds also has its memory to itself, laid out row by row."""
    array = t._array
    return array.flags.c_contiguous and array.flags.writeable and _getrefcount(t._storage) == 2 and t._node is None


def _sum(buffer: list[Any], index: int, grad: Tensor) -> Tensor:
    """Add to a buffered gradient, in place when nobody else can see it."""
    held: Tensor = buffer[index]
    if not state.grad_enabled and _getrefcount(held) == 3 and _owned(held) and grad.dtype is held.dtype:
        return held.add_(grad)  # type: ignore[attr-defined, no-any-return]
    return held + grad  # type: ignore[operator, no-any-return]


def fit(grad: Tensor, shape: tuple[int, ...], dtype: Any, node: Node) -> Tensor:
    """Reduce a gradient to the shape its input had before broadcasting, and cast it to the input's dtype."""
    if grad._array.shape != shape:
        from .._checks import broadcast_shapes

        try:
            fits = broadcast_shapes(shape, grad._array.shape) == grad._array.shape
        except RuntimeError:
            fits = False
        if not fits:
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index 0 - got {list(grad._array.shape)} but expected "
                f"shape compatible with {list(shape)}"
            )
        grad = grad.sum_to_size(shape)  # type: ignore[attr-defined]
    if grad.dtype is not dtype:
        if grad.dtype.is_complex and not dtype.is_complex:
            grad = grad.real  # type: ignore[attr-defined]
        grad = grad.to(dtype)  # type: ignore[attr-defined]
    return grad


# What runs a node and a leaf: the profiler puts recording versions in their place.
evaluator = evaluate
leaf_evaluator = accumulate_into_leaf
