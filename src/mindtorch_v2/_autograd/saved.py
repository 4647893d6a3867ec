"""Saved values: how nodes hand them out, saved-tensor hooks, and the node of an operator without a derivative."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from .._dispatch import keys
from .._dispatch.entry import NUMBERS
from .._dispatch.program import call_program
from .._dispatch.quiet import call_traced
from .._dispatch.tls import state
from .._tensor import Tensor, wrap
from .inplace import check_inplace, rebase_history, written_view
from .leaf import outside
from .node import LEAF, Node, Output, edge_of, next_sequence
from .saved_errors import inference_error, released_error, version_error

if TYPE_CHECKING:
    from .._types import TensorOrTensors

__all__ = ["OperatorNode", "Packed", "SavedTensor", "mark_not_implemented", "pack", "reattach", "saved_property", "unpack"]

Hooks = tuple[Callable[[Any], Any], Callable[[Any], Any]]


class OperatorNode(Node):
    """Base of the generated nodes. `s_x`, `v_x`: a saved tensor and its version; `f_x`: another argument or a fact."""

    _kept: tuple[str, ...] = ()  # names of saved tensors
    _facts: tuple[str, ...] = ()
    _results: Mapping[str, int] = MappingProxyType({})  # names of saved results, and which they are

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_raw_saved_") and name[len("_raw_saved_") :] in self._kept:
            return SavedTensor(self, name[len("_raw_saved_") :])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def public_name(name: str) -> str:
    """torch's name for a saved value: `_saved_self`, and `_saved_self_sym_sizes` for a shape."""
    for fact, theirs in (("_shape", "_sym_sizes"), ("_strides", "_sym_strides")):
        if name.endswith(fact):
            return f"_saved_{name.removesuffix(fact)}{theirs}"
    return f"_saved_{name}"


def saved_property(name: str, *, is_list: bool) -> property:
    """`node._saved_self` and the like. `is_list`: an argument that is a list of ints, which may be given as one."""
    if is_list:
        return property(lambda node: (value,) if isinstance(value := read_saved(node, name), int) else value)
    return property(lambda node: read_saved(node, name))


def read_saved(node: OperatorNode, name: str) -> Any:
    if name in node._facts:
        return getattr(node, "f_" + name)
    if node._released:
        raise released_error()
    value = getattr(node, "s_" + name)
    value = unpack(node, value)
    if (
        isinstance(value, Tensor)
        and not isinstance(getattr(node, "s_" + name), Packed)
        and value._storage.version != getattr(node, "v_" + name)
    ):
        raise version_error(node, value, getattr(node, "v_" + name))
    if value.__class__ in NUMBERS:
        return wrap(np.asarray(value))  # torch: a number that stands for a tensor is saved as one
    if name in node._results and value is not None:
        return reattach(value, node, node._results[name])
    return value


def reattach(value: Any, node: Node, index: int) -> Any:
    """A saved result as part of the graph again, for double backward."""
    if value is None:
        return None
    if isinstance(value, list):
        return [attached(t, Output(node, i)) for i, t in enumerate(value)]
    if node._outer is not None:
        # the result was written into a view: its history is that of the view, through the base
        node = written_view(node) or node
    return attached(value, Output(node, index) if node._multi else node)


def attached(t: Tensor, edge: Any) -> Tensor:
    """The same elements at another place in the graph."""
    new = outside(t)
    new._keys |= keys.AUTOGRAD
    new._node = edge
    if t._keys & keys.DUAL:
        from .._transforms.tangents import carry_over  # cycle with _transforms.tangents

        carry_over(t, new)
    return new


# --- saved-tensor hooks: only while somebody uses them -----------------------------------------------------------------


class Packed:
    """A saved tensor with its version, or what a user's pack hook made of it."""

    __slots__ = ("edge", "payload", "unpack_hook", "version")

    def __init__(self, t: Tensor, hooks: Hooks | None) -> None:
        self.version = t._storage.version
        self.edge = edge_of(t)
        self.unpack_hook: Callable[[Any], Any] | None = None
        self.payload: Any = t
        if hooks is not None:
            self.register(hooks)

    def register(self, hooks: Hooks) -> None:
        """Give the tensor into the care of hooks."""
        t = self.payload
        previous, state.grad_enabled = state.grad_enabled, False
        try:
            self.payload = call_traced(hooks[0], t)
        finally:
            state.grad_enabled = previous
        self.unpack_hook = hooks[1]
        if t._storage.version != self.version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be "
                "modified by in-place operations in order to avoid unexpected side-effects. Please open an issue if you need to "
                "perform in-place operations on the input to a pack hook."
            )

    def open(self, node: Node, made_by: Node | Output | None = None) -> Tensor:
        """The tensor again; `made_by` is its edge where the tensor was kept outside of the graph."""
        if self.unpack_hook is None:
            t: Tensor = self.payload
            if t._storage.version != self.version:
                raise version_error(node, t, self.version, made_by)
            return t
        out = call_program(self.unpack_hook, self.payload)
        if not isinstance(out, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(out).__name__}"
            )
        if self.edge is None:
            return out
        if self.edge._kind == LEAF and out is self.edge:
            return out
        return attached(out, self.edge)


def pack(value: Any) -> Any:
    """Hand a tensor (or each of a list) to the innermost pack hook."""
    if isinstance(value, Tensor):
        if value._keys & keys.INFERENCE:
            raise inference_error()
        return Packed(value, state.saved_hooks[-1] if state.saved_hooks else None)
    if isinstance(value, list | tuple):
        return [pack(v) for v in value]
    return value


def unpack(node: Node, value: Any) -> Any:
    if isinstance(value, Packed):
        return value.open(node)
    if isinstance(value, list):
        return [unpack(node, v) for v in value]
    return value


def make_packed(node: Any) -> None:
    """Turn a node that keeps plain tensors into one whose tensors hooks may care for."""
    for name in node._kept:
        value = getattr(node, "s_" + name)
        if isinstance(value, Tensor):
            packed = Packed(value, None)
            packed.version = getattr(node, "v_" + name)
            setattr(node, "s_" + name, packed)
    node.__class__ = node._packed_class()


class SavedTensor:
    """`node._raw_saved_x`: the place of a saved tensor, to register hooks on it after the fact."""

    def __init__(self, node: Node | None = None, name: str = "") -> None:
        if node is None:
            raise RuntimeError(
                "Trying to create a SavedTensor object from Python is forbidden; a node has them, as in y.grad_fn._raw_saved_self"
            )
        self._node = node
        self._name = name

    def register_hooks(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        """Replace the saved tensor by what `pack_hook` returns; `unpack_hook` makes a tensor of it when needed."""
        node, name = self._node, self._name
        if node._released:
            raise released_error()
        value = getattr(node, "s_" + name)
        if value is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if isinstance(value, Tensor):
            make_packed(node)
            value = getattr(node, "s_" + name)
        if value.unpack_hook is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a time."
            )
        value.register((pack_hook, unpack_hook))


class NotImplementedNode(Node):
    """Backward of an operator without a derivative."""

    op_name = ""

    def _run(self, grad: Tensor, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        raise RuntimeError(f"derivative for aten::{self.op_name} is not implemented")

    def name(self) -> str:
        return "torch::autograd::NotImplemented"


def edges_of(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the edges along which gradients of tensor arguments, and of lists of them, would go."""
    edges: list[Any] = []
    for x in inputs:
        if isinstance(x, Tensor):
            edges.append(edge_of(x))
        elif isinstance(x, list | tuple):
            edges += [edge_of(t) for t in x if isinstance(t, Tensor)]
    return tuple(edges)


def _not_implemented(op_name: str, t: Tensor, edges: tuple[Any, ...]) -> NotImplementedNode:
    node = NotImplementedNode()
    node.op_name = op_name
    node._edges = edges
    node._seq = next_sequence()
    node._shape, node._dtype = t._array.shape, t.dtype
    return node


def mark_not_implemented(op_name: str, result: TensorOrTensors, inputs: tuple[Any, ...]) -> None:
    """Give the floating results of an operator without a derivative a node that says so."""
    edges = edges_of(inputs)
    for t in result if isinstance(result, list | tuple) else (result,):
        if isinstance(t, Tensor) and t.dtype.inexact and not any(t is x for x in inputs):
            t._keys |= keys.AUTOGRAD
            t._node = _not_implemented(op_name, t, edges)


def mark_written(op_name: str, written: Tensor, edges: tuple[Any, ...]) -> None:
    """The same for a tensor that such an operator wrote to."""
    if written.dtype.inexact and any(e is not None for e in edges):
        rebase_history(written, _not_implemented(op_name, written, edges))


def mark_written_list(op_name: str, result: None, inputs: tuple[Any, ...]) -> None:
    """The same for the tensors of the first argument, which is a list."""
    edges = edges_of(inputs)
    if any(e is not None for e in edges):
        for t in inputs[0]:
            check_inplace(t)
            mark_written(op_name, t, edges)


def refuse(op_name: str, argument: str) -> None:
    raise RuntimeError(
        f"The function '{op_name}' is not differentiable with respect to argument '{argument}'. This input cannot have "
        "requires_grad True."
    )
