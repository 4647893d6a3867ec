"""Roles of memory while a memory timeline is recorded: which is a parameter's, a gradient's, an optimizer's.

Nothing is asked of operators. Looked at are all objects when the recording begins and ends, parameters that die in between, leaves
when a gradient has been added to them, and optimizers after each step. Only addresses are kept.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...._storage import UntypedStorage
from ...._tensor import Tensor
from ....nn.modules.module import Module
from ....nn.parameter import Parameter
from ....optim.optimizer import Optimizer, register_optimizer_step_post_hook
from ....utils.hooks import RemovableHandle
from ...model.session import BUFFER, GRADIENT, OPTIMIZER_STATE, PARAMETER
from ..late_exceptions import begin_without_handlers, kept
from ..operators import recorder
from ..source import Findings, Source
from . import live_objects

__all__ = ["KINDS", "TensorRoles", "note_leaf", "noted", "now"]

KINDS = (Tensor, Optimizer, Module)  # what memory is known by

Column = np.ndarray[Any, np.dtype[Any]]
Known = list[tuple[Any, int]]  # tensors, if they are such, and what they are

# time, address, role, over and over
_notes: list[Any] = []
# storages whose address and role are noted: parameters and state are met at each step, and would fill the list
_noted: dict[int, tuple[weakref.ref[UntypedStorage], tuple[int, int]]] = {}


class TensorRoles(Source):
    """Notes the role of each tensor that is there when the recording begins, of those that come, and of those at the end."""

    def __init__(self) -> None:
        self._hook: RemovableHandle | None = None

    def begin(self) -> None:
        _notes.clear()
        _noted.clear()
        _note(_of_everything())
        self._hook = register_optimizer_step_post_hook(lambda optimizer, args, kwargs: _note(_of_optimizer(optimizer)))
        Parameter.__del__ = _note_dying

    def end(self) -> None:
        if "__del__" in vars(Parameter):
            del Parameter.__del__
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def take(self, findings: Findings) -> None:
        """Times, addresses and roles."""
        try:
            _note(_of_everything())
        except MemoryError:
            findings.owners_known = False
        findings.roles = noted()
        _notes.clear()
        _noted.clear()

    def discard(self) -> None:
        self.end()
        _notes.clear()
        _noted.clear()


def noted(since: int = 0) -> tuple[Column, Column, Column]:
    """Times in nanoseconds, addresses and roles, from a row on."""
    notes = _notes[3 * since : len(_notes) - len(_notes) % 3]
    return recorder.nanoseconds(notes[0::3]), np.array(notes[1::3], np.int64), np.array(notes[2::3], np.int8)


def now(objects: Iterable[Any] | None = None) -> dict[int, int]:
    """Return the role of the memory at each address; if two things, the one that comes first in the order of roles.

    `objects` are the instances of `KINDS` that live, if they are known.
    """
    found = [(id(t._storage.array), role) for t, role in _of_objects(live_objects.find(*KINDS) if objects is None else objects)]
    return dict(sorted(found, reverse=True))


def note_leaf(leaf: Tensor) -> None:
    """Note a tensor to which a gradient was added."""
    _note(_of_tensor(leaf))


def _note_dying(parameter: Parameter) -> None:
    try:
        _note_made(parameter)
    except BaseException as error:
        request: Any = kept(error)
        _note_made(parameter)
        request = None  # noqa: F841 - it is made here


begin_without_handlers(_note_dying)


def _note_made(parameter: Parameter) -> None:
    if hasattr(parameter, "_extra"):  # else it was never made
        _note(_of_tensor(parameter))


def _note(known: Known) -> None:
    for tensor, role in known:
        if not isinstance(tensor, Tensor):
            continue  # there is no gradient; a number among an optimizer's state
        storage = tensor._storage
        note = id(storage.array), role
        noted = _noted.get(id(storage))
        if noted is None or noted[1] != note or noted[0]() is not storage:
            _notes.extend((recorder.clock(), *note))
            _noted[id(storage)] = weakref.ref(storage), note


# These return lists, since with stacks on each step of a generator would be told to the tracer.


def _of_everything() -> Known:
    return _of_objects(live_objects.find(Tensor, Optimizer))


def _of_objects(objects: Iterable[Any]) -> Known:
    known: Known = []
    for found in objects:
        if isinstance(found, Optimizer):
            known += _of_optimizer(found)
        elif isinstance(found, Module):
            known += [(buffer, BUFFER) for buffer in list(vars(found).get("_buffers", {}).values())]
        elif hasattr(found, "_extra"):  # else it is a tensor that is half made, by another thread
            known += _of_tensor(found)
    return [(tensor, role) for tensor, role in known if isinstance(tensor, Tensor) and hasattr(tensor, "_storage")]


def _of_tensor(tensor: Tensor) -> Known:
    known: Known = [(tensor, PARAMETER)] if isinstance(tensor, Parameter) else []
    return known if tensor._extra is None else [*known, (tensor._extra.grad, GRADIENT)]


def _of_optimizer(optimizer: Optimizer) -> Known:
    """Return what an optimizer updates, from which gradients, and what it keeps for it."""
    attributes = vars(optimizer)  # of which there are none while it is made
    known: Known = []
    for group in list(attributes.get("param_groups", ())):
        for parameter in group["params"]:
            known += ((parameter, PARAMETER), (parameter.grad, GRADIENT))
    for state in list(attributes.get("state", {}).values()):
        for value in list(state.values()) if isinstance(state, dict) else [state]:
            known += ((value, OPTIMIZER_STATE),)
    return known
