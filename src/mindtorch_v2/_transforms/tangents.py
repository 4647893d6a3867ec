"""Dual tensors: a tensor with its tangents, the derivatives that forward mode carries along.

A tangent belongs to a level. Levels nest: a tangent may have tangents itself, of levels further out. A level that ends takes its
tangents with it.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from .._autograd.node import LEAF, Node, edge_of, next_sequence
from .._dispatch import keys
from .._dispatch.tls import state
from .._tensor import Tensor, shallow_copy

__all__ = ["begin_level", "carry_over", "end_level", "levels_of", "set_tangent", "stripped", "tangent_of"]

_numbers = itertools.count(1)
_members: dict[int, list[weakref.ref[Tensor]]] = {}  # tensors with a tangent, by level


def begin_level() -> int:
    """A new level, further in than all that there are."""
    number = next(_numbers)
    _members[number] = []
    return number


def end_level(number: int) -> None:
    """Drop all tangents of a level."""
    for reference in _members.pop(number, ()):
        t = reference()
        if t is not None and t._extra is not None and t._extra.tangents:
            t._extra.tangents.pop(number, None)
            if not t._extra.tangents:
                t._keys &= ~keys.DUAL


def is_open(number: int) -> bool:
    return number in _members


def set_tangent(t: Tensor, level: int, tangent: Tensor) -> None:
    extra = t._require_extra()
    if extra.tangents is None:
        extra.tangents = {}
    extra.tangents[level] = tangent
    t._keys |= keys.DUAL
    _members[level].append(weakref.ref(t))


def tangent_of(t: object, level: int) -> Tensor | None:
    if not isinstance(t, Tensor) or not t._keys & keys.DUAL or t._extra is None or t._extra.tangents is None:
        return None
    return t._extra.tangents.get(level)


def levels_of(t: object) -> tuple[int, ...]:
    """The levels at which a tensor has a tangent."""
    if not isinstance(t, Tensor) or not t._keys & keys.DUAL or t._extra is None:
        return ()
    return tuple(t._extra.tangents or ())


class _Same(Node):
    """Backward of another handle on a leaf."""

    def _run(self, grad: Tensor, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        return (grad,)

    def name(self) -> str:
        return "AliasBackward0"


def stripped(t: Tensor, level: int) -> Tensor:
    """The same tensor, at the same place in the graph, without tangents of this level and of those further in."""
    if not any(number >= level for number in levels_of(t)):
        return t
    new = shallow_copy(t)
    new._base = t._base
    new._keys = t._keys & ~keys.DUAL
    if t._keys & keys.AUTOGRAD:
        edge = edge_of(t)
        if edge is not None and edge._kind == LEAF:
            node = _Same()
            node._edges, node._seq = (edge,), next_sequence()
            node._shape, node._dtype = t._array.shape, t.dtype
            edge = node
        new._node = edge
    carry_over(t, new, below=level)
    return new


def carry_over(source: Tensor, target: Tensor, *, below: int | None = None) -> Tensor:
    """Give a tensor the tangents of another one, of the levels below one or of all."""
    for number in levels_of(source):
        if below is None or number < below:
            assert source._extra is not None
            assert source._extra.tangents is not None
            set_tangent(target, number, source._extra.tangents[number])
    return target


class suspended:  # noqa: N801 - a context manager, as those of contextlib
    """Inside, grad mode is this."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        self.held, state.grad_enabled = state.grad_enabled, self.mode

    def __exit__(self, *exc: object) -> None:
        state.grad_enabled = self.held
