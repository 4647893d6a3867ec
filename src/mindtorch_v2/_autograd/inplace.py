"""In-place operators and views: what may be written, and how the history of a base and its views is kept true.

Writing to a view changes its base. The base then gets a `CopySlices` node around the operator's own, and every view of it
reads its history anew from the base (`refresh_view`), which is noticed by comparing `rebased` counts.
"""

from __future__ import annotations

from typing import Any


from .._dispatch import keys
from .._tensor import Tensor, wrap
from .node import Node, Output, edge_of, next_sequence

__all__ = ["CopySlices", "check_inplace", "rebase_history", "refresh_view"]


def check_inplace(t: Tensor) -> None:
    """Refuse to write where autograd could not follow."""
    if t._node is None and t._keys & keys.AUTOGRAD:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    base = t._base
    if base is None:
        return
    if base._node is None and base._keys & keys.AUTOGRAD:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if type(t._node) is Output and t._node.node.outputs > 1:
        name = t._node.node.name()
        raise RuntimeError(
            f"Output {t._node.index} of {name} is a view and is being modified inplace. This view is the output of a function "
            "that returns multiple views. Such functions do not allow the output views to be modified inplace. You should "
            "replace the inplace operation by an out-of-place one."
        )


def original_of(t: Tensor) -> Tensor:
    """The value before an in-place operator, for a formula that needs it."""
    return wrap(t._array.copy(order="K"), t.dtype)


def rebase_history(t: Tensor, node: Node) -> None:
    """Make `node` the history of a tensor that was just written in place."""
    t._keys |= keys.AUTOGRAD
    base = t._base
    (t if base is None else base)._require_extra().rebased += 1
    if base is None:
        _move_retain_grad(t, node)
        t._node = node
        return
    copy = CopySlices(base, t, node)
    base._keys |= keys.AUTOGRAD
    base._node = copy
    refresh_view(t)


def _move_retain_grad(t: Tensor, node: Node) -> None:
    if t._extra is not None and t._extra.retains_grad:
        from .leaf import move_retain_grad

        move_retain_grad(t, node)


class Geometry:
    """Shape, strides and offset of a view in its base, all in elements."""

    __slots__ = ("base_shape", "base_strides", "offset", "shape", "strides")

    def __init__(self, base: Tensor, view: Tensor) -> None:
        self.shape = view._array.shape
        self.strides = view.stride()
        self.offset = view.storage_offset() - base.storage_offset()
        self.base_shape = base._array.shape
        self.base_strides = base.stride()


class CopySlices(Node):
    """Backward of writing to a view, seen from the base."""

    def __init__(self, base: Tensor, view: Tensor, inner: Node) -> None:
        self.geometry = Geometry(base, view)
        self.inner = inner
        self.edges = (edge_of(base), *inner.edges[1:])
        self.seq = next_sequence()
        self.shape = base._array.shape
        self.dtype = base.dtype

    def apply(self, grads: list[Any]) -> tuple[Any, ...]:
        grad = grads[0]
        if grad is None:
            return (None,) * len(self.edges)
        g = self.geometry
        whole = grad.new_zeros(1).as_strided(g.base_shape, (0,) * len(g.base_shape)).clone() if not grad.numel() else _like_base(grad, g)
        piece = whole.as_strided(g.shape, g.strides, g.offset + whole.storage_offset())
        inner = self.inner.apply([piece.clone()])
        if self.edges[0] is not None:
            if inner[0] is None:
                piece.zero_()
            else:
                piece.copy_(inner[0])
        return (whole if self.edges[0] is not None else None, *inner[1:])

    def release(self) -> None:
        self.inner.release()

    def name(self) -> str:
        return "CopySlices"


def _like_base(grad: Tensor, g: Geometry) -> Tensor:
    """A copy of the gradient laid out as the base is, so that the view's strides fit it."""
    empty = grad.new_empty_strided(g.base_shape, g.base_strides)
    return empty.copy_(grad)


class AsStridedBackward0(Node):
    """Backward of a view whose own history was replaced by its base's."""

    def __init__(self, base: Tensor, view: Tensor) -> None:
        self.geometry = Geometry(base, view)
        self.edges = (edge_of(base),)
        self.seq = next_sequence()
        self.shape = view._array.shape
        self.dtype = view.dtype

    def apply(self, grads: list[Any]) -> tuple[Any, ...]:
        from .._ops.shape import as_strided_backward

        grad = grads[0]
        if grad is None:
            return (None,)
        g = self.geometry
        return (as_strided_backward(grad, g.base_shape, g.base_strides, g.shape, g.strides, g.offset),)


def refresh_view(t: Tensor) -> None:
    """Read a view's history from its base if either was written in place since it was last read."""
    base = t._base
    if base is None:
        return
    extra = t._require_extra()
    base_rebased = base._require_extra().rebased
    if extra.rebased == base_rebased:
        return
    extra.rebased = base_rebased
    if base._keys & keys.AUTOGRAD:
        t._keys |= keys.AUTOGRAD
        t._node = AsStridedBackward0(base, t)


