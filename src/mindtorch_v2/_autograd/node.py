"""The graph: `Node`s joined by edges. An edge leads to a Node, to one `Output` of a node with several, or to a leaf tensor."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..utils.hooks import RemovableHandle

__all__ = ["AccumulateGrad", "Node", "Output", "edge_of", "next_sequence", "node_of"]

next_sequence = itertools.count().__next__


class Node:
    """One operation to undo. Subclasses are generated, one for each differentiable operator, and named as in torch."""

    edges: tuple[Any, ...]  # where the gradients of the inputs go; None where none is needed
    seq: int  # creation order: later nodes run first in backward
    shape: tuple[int, ...]  # of the forward result, which the incoming gradient must have
    dtype: Any
    outputs: int = 1
    outputs_meta: list[Any] | None = None  # shape and dtype of each result (None for one left out), when there are several
    released: bool = False
    saved_names: tuple[str, ...] = ()
    pre_hooks: dict[int, Callable[..., Any]] | None = None
    post_hooks: dict[int, Callable[..., Any]] | None = None
    tensor_hooks: dict[int, dict[int, Callable[..., Any]]] | None = None
    retain_grad_hooks: dict[int, Callable[..., Any]] | None = None
    _metadata: dict[str, Any] | None = None

    def apply(self, grads: list[Any]) -> tuple[Any, ...]:
        """Gradients for `edges` from those of the results."""
        raise NotImplementedError

    def __call__(self, *grads: Any) -> Any:
        out = self.apply(list(grads))
        return out[0] if len(out) == 1 else tuple(out)

    def release(self) -> None:
        """Drop what was saved for backward."""
        if self.saved_names:
            self.released = True
            for name in self.saved_names:
                setattr(self, "s_" + name, None)

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """(node, index of its result) for each input; (None, 0) where no gradient flows."""
        return tuple(_public_edge(e) for e in self.edges)

    @property
    def metadata(self) -> dict[str, Any]:
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    def _sequence_nr(self) -> int:
        return self.seq

    def register_hook(self, fn: Callable[[Any, Any], Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; a result replaces the grad_inputs."""
        if self.post_hooks is None:
            self.post_hooks = {}
        handle = RemovableHandle(self.post_hooks)
        self.post_hooks[handle.id] = fn
        return handle

    def register_prehook(self, fn: Callable[[Any], Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs; a result replaces them."""
        if self.pre_hooks is None:
            self.pre_hooks = {}
        handle = RemovableHandle(self.pre_hooks)
        self.pre_hooks[handle.id] = fn
        return handle

    def meta_of(self, index: int) -> tuple[tuple[int, ...], Any]:
        return (self.shape, self.dtype) if self.outputs_meta is None else self.outputs_meta[index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            return self.saved(name[len("_saved_") :])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def saved(self, name: str) -> Any:
        """What the formula kept under this name; `_saved_self`, `_saved_result`, … read it."""
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '_saved_{name}'")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class Output:
    """One result of a node that has several."""

    __slots__ = ("index", "node")

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index


class AccumulateGrad(Node):
    """The end of a path: adds to the `grad` of a leaf. Made when somebody asks for it; the engine uses the leaf itself."""

    edges = ()

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable
        self.seq = (1 << 64) - 1
        self.shape = variable._array.shape
        self.dtype = variable.dtype

    def apply(self, grads: list[Any]) -> tuple[Any, ...]:
        from .engine import accumulate_into_leaf

        accumulate_into_leaf(self.variable, grads)
        return ()


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The node that stands for a leaf; the same one for as long as the leaf lives."""
    extra = leaf._require_extra()
    if extra.accumulator is None:
        extra.accumulator = AccumulateGrad(leaf)
    node: AccumulateGrad = extra.accumulator
    return node


def _public_edge(edge: Any) -> tuple[Any, int]:
    if edge is None:
        return (None, 0)
    if type(edge) is Output:
        return (edge.node, edge.index)
    if isinstance(edge, Tensor):
        return (accumulator(edge), 0)
    return (edge, 0)


def edge_of(t: Tensor | None) -> Any:
    """Where the gradient of this tensor goes, or None."""
    if t is None or not t._keys & 8:
        return None
    if t._base is not None and t._base._extra is not None:
        from .inplace import refresh_view

        refresh_view(t)
    return t if t._node is None else t._node


def node_of(t: Tensor) -> Node | None:
    edge = edge_of(t)
    if edge is None or edge is t:
        return None
    return edge.node if type(edge) is Output else edge
