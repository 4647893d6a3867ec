"""Saved values: version checks, saved-tensor hooks, and the errors that backward raises about them."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from .._dispatch import keys
from .._dispatch.tls import state
from .._tensor import Tensor, shallow_copy
from .node import Node, Output, edge_of, next_sequence

__all__ = ["mark_not_implemented", "note_creation", "pack", "reattach", "released_error", "unpack", "version_error"]


def released_error() -> RuntimeError:
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
        "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
        "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
        "after calling backward."
    )


def version_error(node: Node, t: Tensor, expected: int) -> RuntimeError:
    made_by = edge_of(t)
    if type(made_by) is Output:
        source = f", which is output {made_by.index} of {made_by.node.name()},"
    elif isinstance(made_by, Node):
        source = f", which is output 0 of {made_by.name()},"
    elif getattr(node, "s_result", None) is t:
        source = f", which is output 0 of {node.name()},"
    else:
        source = ""
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{t.dtype.scalar_name}Tensor {list(t._array.shape)}]{source} is at version {t._storage.version}; expected version {expected} "
        "instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True)."
    )


def check_versions(node: Node, tensors: list[Any], versions: list[Any]) -> None:
    for t, version in zip(tensors, versions, strict=True):
        if t is not None and t._storage.version != version:
            raise version_error(node, t, version)


def reattach(value: Any, node: Node, index: int) -> Any:
    """A saved result as part of the graph again, for double backward."""
    if isinstance(value, list):
        return [_attached(t, Output(node, i)) for i, t in enumerate(value)]
    if value is None:
        return None
    return _attached(value, node if node.outputs_meta is None else Output(node, index))


def _attached(t: Tensor, edge: Any) -> Tensor:
    new = shallow_copy(t)
    new._keys |= keys.AUTOGRAD
    new._node = edge
    return new


# --- saved-tensor hooks and anomaly mode: only while somebody uses them ------------------------------------------------


class Packed:
    """A saved tensor in the care of a user's pack and unpack hooks."""

    __slots__ = ("edge", "meta", "payload", "unpack_hook", "version", "was_tensor")

    def __init__(self, t: Tensor, hooks: tuple[Callable[..., Any], Callable[..., Any]] | None) -> None:
        self.version = t._storage.version
        self.unpack_hook = None if hooks is None else hooks[1]
        self.edge = edge_of(t)
        if hooks is None:
            self.payload: Any = t
        else:
            if self.edge is t:
                self.payload = hooks[0](t)
            else:
                with_no_grad = shallow_copy(t)
                self.payload = hooks[0](with_no_grad)
            if t._storage.version != self.version:
                raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be modified by in-place operations.")

    def open(self, node: Node) -> Tensor:
        if self.unpack_hook is None:
            t: Tensor = self.payload
            if t._storage.version != self.version:
                raise version_error(node, t, self.version)
            return t
        out = self.unpack_hook(self.payload)
        if not isinstance(out, Tensor):
            raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(out).__name__}")
        if self.edge is None:
            return out
        attached = shallow_copy(out)
        attached._keys |= keys.AUTOGRAD
        attached._node = None if isinstance(self.edge, Tensor) else self.edge
        return self.edge if isinstance(self.edge, Tensor) and not state.grad_enabled and out is self.edge else attached


def pack(value: Any) -> Any:
    """Hand a tensor (or each of a list) to the innermost pack hook."""
    if isinstance(value, Tensor):
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


def note_creation(node: Node) -> None:
    """In anomaly mode, remember where the forward call was made."""
    from .anomaly import enabled

    if enabled():
        node.metadata["traceback_"] = traceback.format_stack()[:-2]


def read_saved(node: Any, name: str) -> Any:
    """The value behind `node._saved_<name>`."""
    if name in node.saved_names:
        if node.released:
            raise released_error()
        value = getattr(node, "s_" + name)
        if isinstance(value, Packed | list):
            return unpack(node, value)
        if isinstance(value, Tensor) and value._storage.version != getattr(node, "v_" + name):
            raise version_error(node, value, getattr(node, "v_" + name))
        if name.startswith("result") and isinstance(value, Tensor):
            return reattach(value, node, 0)
        return value
    if name in node.facts:
        return getattr(node, name)
    raise AttributeError(f"'{type(node).__name__}' object has no attribute '_saved_{name}'")


class NotImplementedNode(Node):
    """Backward of an operator without a derivative."""

    op_name = ""

    def apply(self, grads: list[Any]) -> tuple[Any, ...]:
        raise RuntimeError(f"derivative for {self.op_name} is not implemented")

    def name(self) -> str:
        return "NotImplemented"


def mark_not_implemented(op_name: str, result: Any, inputs: tuple[Any, ...]) -> None:
    """Give the floating results of an operator without a derivative a node that says so."""
    edges: list[Any] = []
    for x in inputs:
        if isinstance(x, Tensor):
            edges.append(edge_of(x))
        elif isinstance(x, list | tuple):
            edges += [edge_of(t) for t in x if isinstance(t, Tensor)]
    for t in result if isinstance(result, list | tuple) else (result,):
        if isinstance(t, Tensor) and t.dtype.inexact and not any(t is x for x in inputs):
            node = NotImplementedNode()
            node.op_name = op_name
            node.edges = tuple(edges)
            node.seq = next_sequence()
            node.shape, node.dtype = t._array.shape, t.dtype
            t._keys |= keys.AUTOGRAD
            t._node = node
