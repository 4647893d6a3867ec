"""torch.optim.swa_utils: averages of a model's weights over its training."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from .._autograd.grad_mode import no_grad
from .._creation import tensor
from .._dtype import int64
from .._tensor import Tensor
from .._types import OptionalDevice
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from .lr_scheduler.scheduler import LRScheduler, per_group, within_step
from .optimizer import Optimizer
from .steps import each, group_by_device_and_dtype

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Tensors = tuple[Tensor, ...] | list[Tensor]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Tensors, Tensors, Any], None]:
    """A function that moves lists of averages towards the current values, by `1 - decay`."""
    _check_decay(decay)

    def ema_update(ema_param_list: Tensors, current_param_list: Tensors, _: Tensor | int) -> None:
        with no_grad():
            if ema_param_list[0].dtype.inexact:
                each("lerp_")(ema_param_list, current_param_list, 1 - decay)
                return
            for average, current in zip(ema_param_list, current_param_list, strict=True):
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[[Tensors, Tensors, Any], None]:
    """A function that adds current values to lists of means over `num_averaged` values."""

    def swa_update(averaged_param_list: Tensors, current_param_list: Tensors, num_averaged: Tensor | int) -> None:
        with no_grad():
            if averaged_param_list[0].dtype.inexact:
                each("lerp_")(averaged_param_list, current_param_list, 1 / (num_averaged + 1))
                return
            changes = each("sub")(current_param_list, averaged_param_list)
            if isinstance(num_averaged, Tensor):
                each("addcdiv_")(averaged_param_list, changes, [num_averaged + 1] * len(averaged_param_list))
            else:
                each("add_")(averaged_param_list, changes, alpha=1.0 / (num_averaged + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """A function that gives an average moved towards the current value, by `1 - decay`."""
    _check_decay(decay)

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Tensor:
        with no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """A function that gives the mean over `num_averaged` values with the current value added."""

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Tensor:
        with no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's, by default their mean over all updates."""

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: OptionalDevice = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[Tensors, Tensors, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's result."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the parameters of `model` to the averages; buffers are copied, unless they are averaged too."""
        if self.use_buffers:
            own: Iterable[Tensor] = itertools.chain(self.module.parameters(), self.module.buffers())
            others: Iterable[Tensor] = itertools.chain(model.parameters(), model.buffers())
        else:
            own, others = self.parameters(), model.parameters()
        averages, currents = [], []
        first = bool(self.n_averaged == 0)
        for average, current in zip(own, others, strict=False):
            averages.append(average.detach())
            currents.append(current.detach().to(average.device))
            if first:
                averages[-1].copy_(currents[-1])
        if not first:
            self._average(averages, currents)
        if not self.use_buffers:
            for buffer, current in zip(self.module.buffers(), model.buffers(), strict=True):
                buffer.detach().copy_(current.detach().to(buffer.device))
        self.n_averaged += 1

    def _average(self, averages: list[Tensor], currents: list[Tensor]) -> None:
        if self.multi_avg_fn is not None:
            for (device, _), ((group, others), _places) in group_by_device_and_dtype([averages, currents]).items():
                self.multi_avg_fn(group, others, self.n_averaged.to(device))
            return
        average_of = get_swa_avg_fn() if self.avg_fn is None else self.avg_fn
        for average, current in zip(averages, currents, strict=True):
            average.copy_(average_of(average, current, self.n_averaged.to(average.device)))


def update_bn(loader: Iterable[Any], model: Module, device: OptionalDevice = None) -> None:
    """Compute the running statistics of a model's batch norms anew, as means over all batches of `loader`.

    Of batches that are lists or tuples, the first element is the input.
    """
    momenta = {module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)}
    if not momenta:
        return
    for norm in momenta:
        norm.reset_running_stats()
        norm.momentum = None
    was_training = model.training
    model.train()
    with no_grad():
        for batch in loader:
            inputs = batch[0] if isinstance(batch, list | tuple) else batch
            model(inputs if device is None else inputs.to(device))
    for norm, momentum in momenta.items():
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """The rate goes to `swa_lr` in `anneal_epochs` epochs, and stays."""

    _transient = ("optimizer", "anneal_func")

    def __init__(
        self, optimizer: Optimizer, swa_lr: float, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1
    ) -> None:
        for lr, group in zip(per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ANNEALING:
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _set_anneal_func(self, anneal_strategy: str) -> None:
        self._anneal_strategy = anneal_strategy
        self.anneal_func = ANNEALING[anneal_strategy]

    @within_step
    def get_lr(self) -> list[Any]:
        """The rates for the step that is made."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            lr, target = group["lr"], group["swa_lr"]
            start = target if before == 1 else (lr - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates

    def _share(self, step: int) -> float:
        """How much of `swa_lr` is in the rate after a number of steps."""
        return self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        super().load_state_dict(state_dict)
        self._set_anneal_func(self._anneal_strategy)


def _along_cosine(t: float) -> float:
    return (1 - math.cos(math.pi * t)) / 2


def _along_line(t: float) -> float:
    return t


ANNEALING = {"cos": _along_cosine, "linear": _along_line}
