"""Modules as functions of tuples of parameters, as `functorch` had them before `torch.func.functional_call`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .._functions import functions
from .._tensor import Tensor
from ..func.modules import functional_call
from ..nn.modules.module import Module
from ..nn.parameter import Parameter

if TYPE_CHECKING:
    from .._types import OptionalDevice

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functional_init",
    "functional_init_with_buffers",
    "make_functional",
    "make_functional_with_buffers",
]

Tensors = tuple[Tensor, ...]


class FunctionalModuleWithBuffers(Module):
    """A module that is called with its parameters and buffers before its arguments."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str], buffer_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    @staticmethod
    def _create_from(
        model: Module, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
        params, buffers = _state(model, disable_autograd_tracking)
        made = FunctionalModuleWithBuffers(_empty(model), tuple(params), tuple(buffers))
        return made, tuple(params.values()), tuple(buffers.values())

    def forward(self, params: Iterable[Tensor], buffers: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        state = dict(zip(self.param_names, params, strict=True)) | dict(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(Module):
    """A module without buffers that is called with its parameters before its arguments."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(param_names)

    @staticmethod
    def _create_from(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, Tensors]:
        params, _ = _state(model, disable_autograd_tracking)
        return FunctionalModule(_empty(model), tuple(params)), tuple(params.values())

    def forward(self, params: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        return functional_call(self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs)


def _state(model: Module, detached: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    params: dict[str, Any] = dict(model.named_parameters())
    if detached:
        params = {name: p.detach() for name, p in params.items()}
    return params, dict(model.named_buffers())


def _empty(model: Module) -> Module:
    """A copy whose parameters need no memory, and which shares those that are shared: calls replace them."""
    memo: dict[int, Any] = {id(p): Parameter(p.detach().to("meta"), p.requires_grad) for p in model.parameters()}
    memo |= {id(b): b.to("meta") for b in model.buffers()}
    return copy.deepcopy(model, memo)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, Tensors]:
    """A module as a function, and its parameters."""
    if list(model.buffers()):
        raise RuntimeError("make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead.")
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """A module as a function, its parameters, and its buffers."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def _stacked(rows: Sequence[Tensors]) -> Tensors:
    return tuple(functions["stack"](list(column)).detach() for column in zip(*rows, strict=True))


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """One of several modules of a kind as a function, and their stacked parameters and buffers."""
    if len(models) == 0:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    made = [make_functional_with_buffers(m) for m in models]
    return made[0][0], _stacked([m[1] for m in made]), _stacked([m[2] for m in made])


def _models(
    model_class: type[Module], shape: tuple[int, ...], device: OptionalDevice, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Module]:
    if len(shape) >= 2:
        raise ValueError("NYI: ensemble_shape with more than 1 element")
    if shape and shape[0] <= 0:
        raise ValueError(f"num_models {shape[0]} should be > 0")
    return [model_class(*args, **kwargs).to(device) for _ in range(shape[0] if shape else 1)]


def functional_init(
    model_class: type[Module], ensemble_shape: tuple[int, ...] = (), device: OptionalDevice = "cpu"
) -> Callable[..., Any]:
    """A function that makes modules, stacked as `ensemble_shape` says: their weights, a function of these, and their names."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        models = _models(model_class, ensemble_shape, device, args, kwargs)
        made = [FunctionalModule._create_from(m) for m in models]
        weights = _stacked([m[1] for m in made]) if ensemble_shape else made[0][1]
        return weights, lambda weights, data: made[0][0](weights, *data), made[0][0].param_names

    return wrapped


def functional_init_with_buffers(
    model_class: type[Module], ensemble_shape: tuple[int, ...] = (), device: OptionalDevice = "cpu"
) -> Callable[..., Any]:
    """As `functional_init`, with buffers."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        models = _models(model_class, ensemble_shape, device, args, kwargs)
        made = [make_functional_with_buffers(m) for m in models]
        function = made[0][0]
        weights, buffers = made[0][1:]
        if ensemble_shape:
            weights, buffers = _stacked([m[1] for m in made]), _stacked([m[2] for m in made])
        return (
            weights,
            buffers,
            lambda weights, buffers, data: function(weights, buffers, *data),
            function.param_names,
            function.buffer_names,
        )

    return wrapped
