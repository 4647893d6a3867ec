"""What the runtime knows of tensors while a memory timeline is recorded: which memory is a parameter's, a gradient's, an optimizer's.

Nothing is asked of operators. Looked at are all objects when the recording begins and ends, parameters that die in between, leaves
when a gradient has been added to them, and optimizers after each step. Only addresses are kept.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .._storage import UntypedStorage
from .._tensor import Tensor
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..optim.optimizer import Optimizer, register_optimizer_step_post_hook
from ..utils.hooks import RemovableHandle
from . import living, recorder
from .session import BUFFER, GRADIENT, OPTIMIZER_STATE, PARAMETER

__all__ = ["KINDS", "begin", "end", "note_leaf", "now", "take"]

KINDS = (Tensor, Optimizer, Module)  # what memory is known by

Column = np.ndarray[Any, np.dtype[Any]]
Known = Iterator[tuple[UntypedStorage, int]]  # storages and what they are

# time, address, role, over and over
_notes: list[Any] = []
# storages whose address and role are noted: parameters and state are met at each step, and would fill the list
_noted: weakref.WeakKeyDictionary[UntypedStorage, tuple[int, int]] = weakref.WeakKeyDictionary()
_hook: RemovableHandle | None = None


def begin() -> None:
    """Note what is there, and what comes from here on."""
    global _hook
    _notes.clear()
    _noted.clear()
    _note(_of_everything())
    if _hook is None:
        _hook = register_optimizer_step_post_hook(lambda optimizer, args, kwargs: _note(_of_optimizer(optimizer)))
        Parameter.__del__ = lambda parameter: _note(_of_parameter(parameter))  # type: ignore[attr-defined]


def end() -> None:
    """Note what is there at the end, and no more."""
    global _hook
    if _hook is not None:
        _hook.remove()
        _hook = None
        del Parameter.__del__  # type: ignore[attr-defined]
        _note(_of_everything())


def take() -> tuple[Column, Column, Column]:
    """Times in seconds, addresses and roles."""
    notes = _notes[: len(_notes) - len(_notes) % 3]
    _notes.clear()
    _noted.clear()
    return np.array(notes[0::3], np.float64), np.array(notes[1::3], np.int64), np.array(notes[2::3], np.int8)


def now(objects: Iterable[Any] | None = None) -> dict[int, int]:
    """What the memory at each address is known to be now; if two things, the one that comes first in the order of roles.

    `objects` are the instances of `KINDS` that live, if they are known.
    """
    found = [(id(storage.array), role) for storage, role in _of_objects(living.objects(*KINDS) if objects is None else objects)]
    return dict(sorted(found, reverse=True))


def note_leaf(leaf: Any) -> None:
    """Note a tensor to which a gradient was added."""
    _note(_of_tensor(leaf))


def _note(known: Known) -> None:
    for storage, role in known:
        note = id(storage.array), role
        if _noted.get(storage) != note:
            _noted[storage] = note
            _notes.extend((recorder.clock(), *note))


def _of_everything() -> Known:
    return _of_objects(living.objects(Tensor, Optimizer))


def _of_objects(objects: Iterable[Any]) -> Known:
    for found in objects:
        if isinstance(found, Optimizer):
            yield from _of_optimizer(found)
        elif isinstance(found, Module):
            yield from _of_module(found)
        elif isinstance(found, Tensor):
            yield from _of_tensor(found)


def _of_tensor(tensor: Any) -> Known:
    return _of_parameter(tensor) if isinstance(tensor, Parameter) else _of_gradient(tensor)


def _of_parameter(parameter: Any) -> Known:
    yield from _storage(parameter, PARAMETER)
    yield from _of_gradient(parameter)


def _of_gradient(tensor: Any) -> Known:
    extra = getattr(tensor, "_extra", None)  # it may be half made, or about to die
    if extra is not None:
        yield from _storage(extra.grad, GRADIENT)


def _of_optimizer(optimizer: Any) -> Known:
    """What an optimizer updates, from which gradients, and what it keeps for it."""
    known = vars(optimizer)  # which is empty while it is made
    for group in list(known.get("param_groups", ())):
        for parameter in group["params"]:
            yield from _of_parameter(parameter)
    for state in list(known.get("state", {}).values()):
        for value in list(state.values()) if isinstance(state, dict) else [state]:
            yield from _storage(value, OPTIMIZER_STATE)


def _of_module(module: Any) -> Known:
    for buffer in list(vars(module).get("_buffers", {}).values()):
        yield from _storage(buffer, BUFFER)


def _storage(tensor: Any, role: int) -> Known:
    storage = getattr(tensor, "_storage", None) if isinstance(tensor, Tensor) else None
    if storage is not None and hasattr(storage, "array"):  # that of a tensor which is being made may have none yet
        yield storage, role
