"""What transforms by backward need of autograd: inputs of their own, gradients, and results that belong to what is around them.

Tensors at one level of `vmap` share one graph, however deep transforms nest there. Each transform makes its own inputs; gradients
with respect to these follow no other paths. What a transform returns stays in the graph only if it depends on something that required
grad before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._autograd import engine
from .._autograd.node import LEAF, OUTPUT, edge_of
from .._dispatch import keys, registry
from .._dispatch.tls import state
from .._tensor import Tensor, shallow_copy
from ..utils import _pytree as pytree
from .batched import BatchedStorage, batched, lifted
from .tangents import carry_over

__all__ = ["Tape"]


class Tape:
    """One transform by backward: its inputs, and the grad mode around it."""

    def __init__(self) -> None:
        self.outer_mode = state.grad_enabled
        self.level = state.level  # whose graph this is
        self.inputs: list[Tensor] = []
        self._own: set[Any] = set()
        self._outside: dict[Any, bool] = {}  # nodes → whether they lead out of this transform

    def __enter__(self) -> Tape:
        self._held = state.grad_enabled, state.records_below, state.inference
        if state.saved_hooks:
            raise RuntimeError(
                "torch.func transforms don't yet support saved tensor hooks. Please open an issue with your use case."
            )
        self._hooks, state.hooks_disabled = (
            state.hooks_disabled,
            "torch.func transforms don't yet support saved tensor hooks. Please open an issue with your use case.",
        )
        state.grad_enabled, state.inference = True, False
        state.records_below = state.records_below and self.outer_mode
        state.transforms += 1
        return self

    def __exit__(self, *exc: object) -> None:
        state.transforms -= 1
        state.hooks_disabled = self._hooks
        state.grad_enabled, state.records_below, state.inference = self._held

    def differentiable(self, tree: Any, what: str = "") -> Any:
        """The tree with tensors of this transform's own, which require grad."""
        return pytree.tree_map(self._input, tree)

    def _input(self, x: object) -> Tensor:
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        x = lifted(x, state.level)
        if x._keys & keys.AUTOGRAD:
            made: Tensor = registry.entry("alias")(x)
        else:
            if not x.dtype.inexact:
                raise RuntimeError("only Tensors of floating point dtype can require gradients")
            made = carry_over(x, shallow_copy(x))
            made._keys = made._keys & ~keys.INFERENCE | keys.AUTOGRAD
            self._own.add(made)
        self.inputs.append(made)
        return made

    def outer(self, tree: Any) -> Any:
        """The tree as seen from around this transform."""
        return pytree.tree_map(self._out, tree)

    def _out(self, t: Any) -> Any:
        if not isinstance(t, Tensor):
            if t is None:
                return None
            raise RuntimeError(f"Expected tensors, got unsupported type {type(t)}")
        storage = t._storage
        if isinstance(storage, BatchedStorage) and storage.level is not self.level and self._is_inside(storage):
            return self._with_outer_value(t, storage)
        if not t._keys & keys.AUTOGRAD or (self.outer_mode and self._leads_out(edge_of(t))):
            return t
        return carry_over(t, shallow_copy(t))

    def _is_inside(self, storage: BatchedStorage) -> bool:
        """Whether a tensor belongs to a `vmap` inside of this transform."""
        return self.level is None or storage.level.number > self.level.number

    def _with_outer_value(self, t: Tensor, storage: BatchedStorage) -> Tensor:
        value = self._out(storage.value)
        if value is storage.value:
            return t
        made = carry_over(t, batched(value, storage.bdim, storage.level))
        made._keys |= t._keys & keys.AUTOGRAD
        made._node = t._node
        return made

    def _is_tracked(self, t: Tensor) -> bool:
        """Whether a tensor requires grad in this transform's graph."""
        storage = t._storage
        if isinstance(storage, BatchedStorage) and storage.level is not self.level and self._is_inside(storage):
            return self._is_tracked(storage.value)
        return bool(t._keys & keys.AUTOGRAD)

    def _leads_out(self, edge: Any) -> bool:
        """Whether a path leads from an edge to a leaf that is not an input of this transform."""
        if edge is None:
            return False
        start = edge.node if edge._kind == OUTPUT else edge
        known = self._outside
        stack = [start]
        while stack:
            node = stack[-1]
            if node in known:
                stack.pop()
                continue
            if node._kind == LEAF:
                known[node] = node not in self._own
                stack.pop()
                continue
            targets = [e.node if e._kind == OUTPUT else e for e in node._edges if e is not None]
            if any(known.get(t) for t in targets):
                known[node] = True
                stack.pop()
                continue
            waiting = [t for t in targets if t not in known]
            if waiting:
                stack += waiting
            else:
                known[node] = False
                stack.pop()
        return known[start]

    def gradients(self, outputs: Sequence[Tensor], grads: Sequence[Tensor], *, keep_graph: bool) -> list[Any]:
        """Gradients of the inputs; None for those that the outputs do not depend on."""
        pairs = [(edge_of(o), g) for o, g in zip(outputs, grads, strict=True)]
        pairs = [(edge, g) for edge, g in pairs if edge is not None]
        if not pairs:
            return [None] * len(self.inputs)
        create = self.outer_mode and (any(self._leads_out(e) for e, _ in pairs) or any(self._is_tracked(g) for _, g in pairs))
        held = state.below
        if state.level is self.level:  # what is below goes on recording, whether this graph is or not
            state.below = state.grad_enabled if held is None else held
        elif self.level is not None:
            create = self.outer_mode  # this graph is below, and hands its mode down
        try:
            return engine.run(
                [e for e, _ in pairs],
                [g for _, g in pairs],
                keep_graph=keep_graph or create,
                create_graph=create,
                inputs=[edge_of(x) for x in self.inputs],
                accumulate=False,
            )
        finally:
            state.below = held
