"""In-place operators and views: what may be written, and how the history of a base and its views is kept true.

Writing to a view changes its base. The base then gets a `CopySlices` node around the operator's own; its views read their
history anew from the base (`refresh_view`) when they are older than the last write.
"""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

from .._checks import contiguous_strides
from .._dispatch import keys, registry
from .._tensor import Tensor
from .._types import OptionalDType
from .leaf import move_retain_grad
from .node import LEAF, OUTPUT, Node, edge_of, forward_name, next_sequence, node_and_index
from .observing import run_observed
from .saved_errors import released_error

__all__ = ["CopySlices", "check_inplace", "rebase_history", "refresh_view"]

A = keys.AUTOGRAD


def check_inplace(t: Tensor) -> None:
    """Refuse to write where autograd could not follow."""
    base = t._base
    # torch: so is a view made before its base joined the graph, until somebody reads the view's history
    is_leaf = t._node is None or t._node is _STALE
    if base is not None:
        _check_view(t, base)
    if is_leaf and t._keys & A:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def _check_view(t: Tensor, base: Tensor) -> None:
    if t._node is None and t._keys & A and base._keys & A:
        raise RuntimeError(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use case "
            "is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace "
            "either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want "
            "the inplace to be tracked)."
        )
    edge = edge_of(t)
    if edge is not None and edge is not t:
        node, index = node_and_index(edge)
        made_by = f"Output {index} of {forward_name(node)} is a view and is being modified inplace. "
        if node._views_forbid_inplace:
            raise RuntimeError(
                made_by + "This view was created inside a custom Function (or because an input was returned as-is) and the "
                "autograd logic to handle view+inplace would override the custom backward associated with the custom Function, "
                "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the "
                "custom Function."
            )
        if _is_part(edge, edge_of(base)):
            raise RuntimeError(
                made_by + "This view is the output of a function that returns multiple views. Such functions do not allow the "
                "output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
            )
    if base._node is None and base._keys & A:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def _is_part(edge: Any, base_edge: Any) -> bool:
    """Whether a view was made of one of several results of one operator, such as `chunk`: directly, or by further views of it."""
    end = None if base_edge is None else node_and_index(base_edge)
    while edge is not None and edge._kind != LEAF and node_and_index(edge) != end:
        if edge._kind == OUTPUT:
            return True
        if not edge._makes_views:
            return False
        edge = edge._edges[0] if edge._edges else None
    return False


def rebase_history(t: Tensor, node: Node, reads_self: bool = True) -> None:
    """Make `node` the history of a tensor that was just written in place.

    `reads_self`: the node's first edge leads to what was overwritten.
    """
    base = t._base
    if base is None:
        if not t._keys & A:
            _tell_views(t, 0)
        _set_node(t, node)
        t._require_extra().rebased = next_sequence()
        return
    if not base._keys & A:
        _tell_views(base, 1)
    copy = CopySlices(base, t, node, reads_self)
    _set_node(base, copy)
    base._require_extra().rebased = next_sequence()
    _set_node(t, AsStridedBackward0(copy._geometry, copy, t.dtype))


def _set_node(t: Tensor, node: Node) -> None:
    """Give a tensor a new history; the gradient to keep is that of the new value."""
    if t._extra is not None and t._extra.retains_grad:
        move_retain_grad(t, node)
    t._keys |= A
    t._node = node


_STORAGE_OF_ONE = 2  # reference counts of a storage with one tensor, as `getrefcount(t._storage)` gives it


def _tell_views(base: Tensor, known_views: int) -> None:
    """A tensor starts to require grad by an in-place write: so do its views.

    A tensor does not know its views. They are searched for only if its storage has more owners than the tensors at hand.
    """
    if sys.getrefcount(base._storage) <= _STORAGE_OF_ONE + known_views:
        return
    for other in gc.get_referrers(base):
        if isinstance(other, Tensor) and other._base is base and not other._keys & A:
            other._keys |= A
            other._node = _STALE


class _Stale(Node):
    """History of a view that is read from its base at the next use."""

    _seq = -1


_STALE = _Stale()


class Geometry:
    """Shape, strides and offset of a view in its base, in elements of each; what is pending in one of them and not in the other."""

    __slots__ = ("base_dtype", "base_shape", "base_strides", "dtype", "offset", "pending", "shape", "strides")

    def __init__(self, base: Tensor, view: Tensor) -> None:
        self.shape = view._array.shape
        self.strides = view.stride()
        self.dtype, self.base_dtype = view.dtype, base.dtype
        start = base.storage_offset() * base.dtype.itemsize // view.dtype.itemsize
        self.offset = view.storage_offset() - start
        self.base_shape = base._array.shape
        self.base_strides = base.stride()
        self.pending = (view._keys ^ base._keys) & keys.PENDING

    def piece_of(self, whole: Tensor) -> Tensor:
        """The part of a tensor, laid out as the base is, that the view is of the base."""
        if self.dtype is not self.base_dtype:
            count = whole._storage.nbytes() // whole.dtype.itemsize
            if self.dtype.is_complex:
                whole = registry.entry("view_as_complex")(whole.as_strided((count // 2, 2), (2, 1), 0))
            else:
                whole = registry.entry("view_as_real")(whole.as_strided((count,), (1,), 0))
        piece = whole.as_strided(self.shape, self.strides, self.offset)
        if self.pending & keys.CONJUGATE:
            piece = piece.conj()
        return piece._neg_view() if self.pending & keys.NEGATIVE else piece


class CopySlices(Node):
    """Backward of writing to a view, seen from the base."""

    def __init__(self, base: Tensor, view: Tensor, inner: Node, reads_self: bool) -> None:
        self._geometry = Geometry(base, view)
        self._inner = inner
        inner._outer = weakref.ref(self)
        self._reads_self = reads_self
        self._edges = (edge_of(base), *(inner._edges[1:] if reads_self else inner._edges))
        self._seq = next_sequence()
        self._shape = base._array.shape
        self._dtype = base.dtype

    def _run(self, grad: Tensor, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        if self._released:
            raise released_error()
        if grad is None:
            return (None,) * len(edges)
        g = self._geometry
        # laid out as the base is, so that the view's strides fit
        whole = grad.new_empty_strided(g.base_shape, g.base_strides).copy_(grad)
        piece = g.piece_of(whole)
        inner = run_observed(self._inner, piece.clone(), (edges[0], *edges[1:]) if self._reads_self else edges[1:])
        of_self, others = (inner[0], inner[1:]) if self._reads_self else (None, inner)
        if edges[0] is None:
            return (None, *others)
        if of_self is None:
            piece.zero_()
        else:
            piece.copy_(of_self)
        return (whole, *others)

    def _release(self) -> None:
        self._inner._release()
        self._released = True

    def name(self) -> str:
        return "torch::autograd::CopySlices"


class AsStridedBackward0(Node):
    """Backward of a view whose own history was replaced by its base's."""

    def __init__(self, geometry: Geometry, edge: Any, dtype: OptionalDType) -> None:
        self._geometry = geometry
        self._edges = (edge,)
        self._seq = next_sequence()
        self._shape = geometry.shape
        self._dtype = dtype

    def _run(self, grad: Tensor, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        if grad is None:
            return (None,)
        from .._ops.shapes.reshaping import as_strided_backward, overlaps  # cycle with _ops.shapes.reshaping

        g = self._geometry
        if overlaps(g.shape, g.strides) or overlaps(g.base_shape, g.base_strides):
            return (as_strided_backward(grad, g.base_shape, g.base_strides, g.shape, g.strides, g.offset),)
        if _row_by_row(g):
            whole = grad.new_zeros(g.base_shape, dtype=g.base_dtype)
        else:
            whole = grad.new_empty_strided(g.base_shape, g.base_strides, dtype=g.base_dtype).zero_()
        g.piece_of(whole).copy_(grad)
        return (whole,)


def written_view(node: Node) -> Node | None:
    """The history of the view that an operator wrote in place, where `node` is the operator's own node in a CopySlices."""
    outer = None if node._outer is None else node._outer()
    if outer is None:
        return None
    return AsStridedBackward0(outer._geometry, outer, outer._dtype)


def _row_by_row(g: Geometry) -> bool:
    return tuple(g.base_strides) == tuple(contiguous_strides(g.base_shape))


def refresh_view(t: Tensor) -> None:
    """Read a view's history from its base if the base was written in place after the view was made."""
    base, edge = t._base, t._node
    if base is None or base._extra is None or edge is None:
        return
    if node_and_index(edge)[0]._seq < base._extra.rebased:
        _set_node(t, AsStridedBackward0(Geometry(base, t), edge_of(base), t.dtype))
