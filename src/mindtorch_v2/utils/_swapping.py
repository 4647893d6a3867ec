"""`torch.utils.swap_tensors`: two tensors exchange everything but their identity."""

from __future__ import annotations

import weakref

from .._pickling import own_slots
from .._tensor import Tensor

__all__ = ["swap_tensors"]

_SLOTS = ("_array", "_base", "_extra", "_geometry", "_identity", "_keys", "_node", "_storage", "device", "dtype")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange elements, storage, gradient, class and attributes of two tensors; whoever refers to one sees the other's.

    Do not swap a parameter between a forward pass and its backward pass.
    """
    for t, name in ((t1, "t1"), (t2, "t2")):
        if any(r for r in weakref.getweakrefs(t) if r() is not None):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = own_slots(type(t1))
    if set(slots) != set(own_slots(type(t2))):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for name in ("__class__", "__dict__"):
        _swap(t1, t2, name)
    for name in (*_SLOTS, *slots):
        _swap_slot(t1, t2, name)
    for t in (t1, t2):
        if t._extra is not None:
            t._extra.accumulator = None  # it is the other's, and a new one is made when somebody asks


def _swap(t1: Tensor, t2: Tensor, name: str) -> None:
    first, second = getattr(t1, name), getattr(t2, name)
    setattr(t1, name, second)
    setattr(t2, name, first)


def _swap_slot(t1: Tensor, t2: Tensor, name: str) -> None:
    """As `_swap`, of what either may not have."""
    values = [getattr(t, name) if hasattr(t, name) else None for t in (t1, t2)]
    there = [hasattr(t, name) for t in (t1, t2)]
    for t, value, has, had in ((t1, values[1], there[1], there[0]), (t2, values[0], there[0], there[1])):
        if has:
            setattr(t, name, value)
        elif had:
            delattr(t, name)
