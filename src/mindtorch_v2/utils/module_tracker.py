"""The modules that are running: in the forward pass, and in the backward pass of what they computed."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .._autograd.engine import queue_callback
from .._dispatch.tls import state
from .._tensor import Tensor
from ..autograd.graph import register_multi_grad_hook
from ..nn.modules.hooks import register_module_forward_hook, register_module_forward_pre_hook
from .hooks import RemovableHandle

if TYPE_CHECKING:
    from ..nn.modules.module import Module

__all__ = ["ModuleTracker"]

logger = logging.getLogger(__name__)


def tensors_in(value: object) -> Iterator[Tensor]:
    """The tensors of nested lists, tuples and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item)


class ModuleTracker:
    """While entered, `parents` has the names of the modules that run now, and always "Global".

    A module is named by its class, those inside of it by their attribute: `Net.encoder.0`. In a backward pass a module runs from
    the gradients of its results to those of its inputs. Where its inputs want no gradient, it is left when the pass ends.
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._named_inside: weakref.WeakSet[Any] = weakref.WeakSet()
        self._resets_after_backward = False
        self._handles: list[RemovableHandle] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running on this thread."""
        return state.backward_depth > 0

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._before_forward),
            register_module_forward_hook(self._after_forward),
        ]
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _name(self, module: Module) -> str:
        name = self._names.setdefault(module, type(module).__name__)
        if module not in self._named_inside:
            for child_name, child in module.named_children():
                self._names[child] = f"{name}.{child_name}"
                self._name(child)
            self._named_inside.add(module)
        return name

    def _before_forward(self, module: Module, inputs: object) -> None:
        name = self._name(module)
        self._enter(name)
        self._on_gradients(inputs, lambda _: self._leave(name))

    def _after_forward(self, module: Module, inputs: object, output: object) -> None:
        name = self._name(module)
        self._leave(name)
        self._on_gradients(output, lambda _: self._enter_backward(name))

    def _on_gradients(self, value: object, call: Callable[[Any], None]) -> None:
        tensors = [tensor for tensor in tensors_in(value) if tensor.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, call))

    def _enter_backward(self, name: str) -> None:
        if not self._resets_after_backward:
            queue_callback(self._reset)
            self._resets_after_backward = True
        self._enter(name)

    def _enter(self, name: str) -> None:
        if name in self.parents:
            logger.info("module %s is entered while it runs already: its work is counted once", name)
        self.parents.add(name)

    def _leave(self, name: str) -> None:
        if name not in self.parents:
            logger.info("module %s is left without having been entered", name)
        self.parents.discard(name)

    def _reset(self) -> None:
        self.parents = {"Global"}
        self._resets_after_backward = False
