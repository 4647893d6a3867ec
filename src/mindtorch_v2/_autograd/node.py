"""The graph: `Node`s joined by edges. An edge leads to a Node, to one `Output` of a node with several, or to a leaf tensor.

A leaf stands for itself in edges, so that a parameter and its graph form no cycle. What kind of target an edge has is read
from the class attribute `_kind`, which tensors have too: cheaper in the engine's loop than asking for the type.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

from .._dispatch import keys
from .._tensor import Tensor
from ..utils.hooks import RemovableHandle, add_hook

__all__ = ["LEAF", "NODE", "OUTPUT", "AccumulateGrad", "Node", "NodeHooks", "Output", "edge_of", "next_sequence", "node_of"]

NODE, OUTPUT, LEAF = 0, 1, 2
ACCUMULATE_SEQUENCE = (1 << 64) - 1  # torch: leaves accumulate before any other node that is ready

next_sequence = itertools.count().__next__
Meta = tuple[tuple[int, ...], Any]


class NodeHooks:
    """The hooks on a node and on the tensors it made. Most nodes have none, and so pay for one attribute."""

    __slots__ = ("post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.pre: dict[int, Callable[..., Any]] = {}
        self.post: dict[int, Callable[..., Any]] = {}
        self.tensor: dict[int, dict[int, Callable[..., Any]]] = {}  # by index of the result
        self.retain: dict[int, Callable[..., Any]] = {}


class Node:
    """One operation to undo. Subclasses are generated, one for each differentiable operator, and named as in torch.

    Attributes start with an underscore because users of `autograd.Function` put theirs on the node.
    """

    _kind = NODE
    _edges: tuple[Any, ...] = ()  # where the gradients of the inputs go; None where none is needed
    _seq: int  # creation order: later nodes run first in backward
    _shape: tuple[int, ...]  # of the forward result, which the incoming gradient must have
    _dtype: Any
    _multi = False  # whether gradients arrive as a list, one for each result
    _metas: list[Meta]  # shape and dtype of each result, when there are several
    _differentiable: tuple[int, ...] | None = None  # those of several results that gradients arrive for; None for all
    _released = False
    _hooks: NodeHooks | None = None
    _outer: Any = None  # a weak reference to the CopySlices that this node is part of
    _makes_views = False  # its results share memory with the tensor that its first edge belongs to
    _views_forbid_inplace = False  # results that are views must not be written: a custom Function made them
    _metadata: dict[Any, Any] | None = None
    _track: Any = None  # where it was made, in an execution trace that was being written then
    _labels: tuple[int, int] | None = None  # of this class in profiles, once it was in one

    def __init_subclass__(cls) -> None:
        cls._labels = None

    def _run(self, grad: Any, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Gradients for those `edges` that are not None, from that of the result, or the list of those of several results."""
        raise NotImplementedError

    def _release(self) -> None:
        """Drop what was saved for backward."""

    def __call__(self, *grads: Any) -> Any:
        out = self._run(list(grads) if self._multi else grads[0], self._edges)
        return out[0] if len(out) == 1 else tuple(out)

    def name(self) -> str:
        """The name that graphs and profiles show."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """(node, index of its result) for each input; (None, 0) where no gradient flows."""
        return tuple(_public_edge(e) for e in self._edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for notes about this node."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    @property
    def requires_grad(self) -> bool:
        return True

    def _sequence_nr(self) -> int:
        return self._seq

    def _set_sequence_nr(self, number: int) -> None:
        self._seq = number

    def _require_hooks(self) -> NodeHooks:
        if self._hooks is None:
            self._hooks = NodeHooks()
        return self._hooks

    def register_hook(self, fn: Callable[[Any, Any], Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; a result replaces the grad_inputs."""
        return add_hook(self._require_hooks().post, fn)

    def register_prehook(self, fn: Callable[[Any], Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs; a result replaces them."""
        return add_hook(self._require_hooks().pre, fn)

    def _meta_of(self, index: int) -> Meta:
        return self._metas[index] if self._multi else (self._shape, self._dtype)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class Output:
    """One result of a node that has several."""

    __slots__ = ("index", "node")
    _kind = OUTPUT

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index


class AccumulateGrad(Node):
    """The end of a path: adds to the `grad` of a leaf. Made when somebody asks for it; the engine uses the leaf itself."""

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable
        self._seq = ACCUMULATE_SEQUENCE
        self._shape = variable._array.shape
        self._dtype = variable.dtype

    def _run(self, grad: Any, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        from .accumulating import accumulate  # cycle with _autograd.accumulating

        accumulate(self.variable, grad)
        return ()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The node that stands for a leaf; the same one for as long as somebody keeps it."""
    extra = leaf._require_extra()
    node: AccumulateGrad | None = None if extra.accumulator is None else extra.accumulator()
    if node is None:
        node = AccumulateGrad(leaf)
        extra.accumulator = weakref.ref(node)
    return node


def _public_edge(edge: Any) -> tuple[Any, int]:
    if edge is None:
        return (None, 0)
    if edge._kind == OUTPUT:
        return (edge.node, edge.index)
    return (accumulator(edge), 0) if edge._kind == LEAF else (edge, 0)


def edge_of(t: Tensor | None) -> Any:
    """Return the edge along which this tensor's gradient goes, or None."""
    if t is None or t._keys & (keys.AUTOGRAD | keys.INFERENCE) != keys.AUTOGRAD:
        return None
    base = t._base
    if base is not None and base._extra is not None and base._extra.rebased:
        from .inplace import refresh_view  # cycle with _autograd.inplace

        refresh_view(t)
    return t if t._node is None else t._node


def node_and_index(edge: Any) -> tuple[Any, int]:
    """The node an edge leads to, and which of its results the edge carries the gradient of."""
    return (edge.node, edge.index) if edge._kind == OUTPUT else (edge, 0)


def node_of(t: Tensor) -> Node | None:
    edge = edge_of(t)
    if edge is None or edge is t:
        return None
    return node_and_index(edge)[0]


def forward_name(node: Node) -> str:
    """The operator a node undoes, as error messages call it: `Exp` for ExpBackward0."""
    return node.name().rstrip("0123456789").removesuffix("Backward") or node.name()
