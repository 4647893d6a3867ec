"""What the runtime knows of tensors while a memory timeline is recorded: which memory is a parameter's, a gradient's, an optimizer's.

Nothing is asked of operators. Looked at are all objects when the recording begins and ends, parameters that die in between, leaves
when a gradient has been added to them, and optimizers after each step. Only addresses are kept.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable
from typing import Any

import numpy as np

from .._tensor import Tensor
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..optim.optimizer import Optimizer, register_optimizer_step_post_hook
from ..utils.hooks import RemovableHandle
from . import recorder
from .session import BUFFER, GRADIENT, OPTIMIZER_STATE, PARAMETER

__all__ = ["begin", "end", "note_leaf", "now", "take"]

Column = np.ndarray[Any, np.dtype[Any]]

# time, address, role, over and over
_notes: list[Any] = []
_hook: RemovableHandle | None = None


def begin() -> None:
    """Note what is there, and what comes from here on."""
    global _hook
    _notes.clear()
    _look_at_everything()
    if _hook is None:
        _hook = register_optimizer_step_post_hook(lambda optimizer, args, kwargs: _note_optimizer(optimizer))
        Parameter.__del__ = _note_tensor  # type: ignore[attr-defined]


def end() -> None:
    """Note what is there at the end, and no more."""
    global _hook
    if _hook is not None:
        _hook.remove()
        _hook = None
        del Parameter.__del__  # type: ignore[attr-defined]
        _look_at_everything()


def take() -> tuple[Column, Column, Column]:
    """Times in seconds, addresses and roles."""
    notes = _notes[: len(_notes) - len(_notes) % 3]
    _notes.clear()
    return np.array(notes[0::3], np.float64), np.array(notes[1::3], np.int64), np.array(notes[2::3], np.int8)


def now() -> dict[int, int]:
    """What the memory at each address is known to be now; if two things, the one that comes first in the order of roles."""
    objects = _objects(Tensor, Optimizer, Module)
    first = len(_notes)
    _look_at(found for found in objects if not isinstance(found, Module))
    notes = _notes[first:]
    if _hook is None:
        del _notes[first:]  # nobody records
    known = dict(sorted(zip(notes[1::3], notes[2::3], strict=True), reverse=True))
    for module in objects:
        if isinstance(module, Module):
            for buffer in list(vars(module).get("_buffers", {}).values()):
                if isinstance(buffer, Tensor):
                    known.setdefault(id(buffer._storage.array), BUFFER)
    return known


def note_leaf(leaf: Any) -> None:
    """Note a tensor to which a gradient was added."""
    if isinstance(leaf, Parameter):
        _note_tensor(leaf)
    else:
        _note_gradient(leaf)


def _look_at_everything() -> None:
    _look_at(_objects(Tensor, Optimizer))


def _objects(*kinds: type) -> list[Any]:
    """The objects of these kinds that live."""
    # objects are many and types few
    objects = gc.get_objects()
    wanted = {kind for kind in set(map(type, objects)) if issubclass(kind, kinds)}
    return [found for found in objects if type(found) in wanted]


def _look_at(objects: Iterable[Any]) -> None:
    for found in objects:
        if isinstance(found, Optimizer):
            _note_optimizer(found)
        elif isinstance(found, Parameter):
            _note_tensor(found)
        else:
            with contextlib.suppress(AttributeError):  # half made, by another thread
                _note_gradient(found)


def _note_tensor(parameter: Any) -> None:
    """Note a parameter and its gradient. It may be half made, or about to die."""
    try:
        _note(parameter, PARAMETER)
        _note_gradient(parameter)
    except AttributeError:
        pass


def _note_gradient(tensor: Any) -> None:
    if tensor._extra is not None:
        _note(tensor._extra.grad, GRADIENT)


def _note_optimizer(optimizer: Optimizer) -> None:
    """Note what an optimizer updates, from which gradients, and what it keeps for it."""
    try:
        groups, states = optimizer.param_groups, optimizer.state
    except AttributeError:  # half made
        return
    for group in list(groups):
        for parameter in group["params"]:
            _note_tensor(parameter)
    for state in list(states.values()):
        for value in _values(state):
            _note(value, OPTIMIZER_STATE)


def _values(state: Any) -> Iterable[Any]:
    return list(state.values()) if isinstance(state, dict) else [state]


def _note(tensor: Any, role: int) -> None:
    if isinstance(tensor, Tensor):
        _notes.extend((recorder.clock(), id(tensor._storage.array), role))
