"""`LRScheduler`: puts the learning rates of an epoch into an optimiser."""

from __future__ import annotations

import functools
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from ..optimizer import Optimizer
from ..steps import to_scalar

__all__ = ["EPOCH_DEPRECATION_WARNING", "LRScheduler"]

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is "
    "used instead of the new chainable form, where available. Please open an issue if you are unable to replicate your use "
    "case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_MORE = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
STEP_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure to call "
    f"`optimizer.step()` before `lr_scheduler.step()`. {_MORE}"
)
WRONG_ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call them in the "
    "opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the first "
    f"value of the learning rate schedule. {_MORE}"
)
NOT_INITIAL = (
    "when resuming scheduler with last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a "
    "checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for a fresh training run (not "
    "recommended)"
)


def copied(value: float | Tensor) -> float | Tensor:
    """A tensor of its own, or the number."""
    return value.clone() if isinstance(value, Tensor) else value


def set_rate(group: dict[str, Any], lr: float | Tensor) -> None:
    """Set a group's rate; one that is a tensor keeps its identity."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(to_scalar(lr))
    else:
        group["lr"] = lr


def rates_of(optimizer: Optimizer) -> list[Any]:
    """The present rates of all groups."""
    return [copied(group["lr"]) for group in optimizer.param_groups]


def check_optimizer(given: object) -> None:
    if not isinstance(given, Optimizer):
        raise TypeError(f"{type(given).__name__} is not an Optimizer")


def per_group(name: str, optimizer: Optimizer, value: float | list[float] | tuple[float, ...]) -> list[Any]:
    """A value for each group, from one for all or a list."""
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        value = [value] * count
    elif len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups has {count}."
        )
    return [copied(v) for v in value]


def attributes_of(function: object) -> dict[str, Any] | None:
    """What a state dict has of something callable: nothing of functions, the attributes of objects."""
    return None if isinstance(function, types.FunctionType) else function.__dict__.copy()


class LRScheduler:
    """Base: `get_lr` gives the rates of all groups for `last_epoch`; `step` puts them into the optimiser."""

    _get_lr_called_within_step = False
    _is_initial = False  # whether the first rates are being set
    # what is not part of `state_dict`
    _transient: tuple[str, ...] = ("optimizer",)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if "initial_lr" not in group:
                if last_epoch != -1:
                    raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] {NOT_INITIAL}")
                group["initial_lr"] = copied(group["lr"])
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _notice_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {k: v for k, v in self.__dict__.items() if k not in self._transient}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates that the last `step` set."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates for `last_epoch`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go on by one epoch, or to a given one."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(STEP_OVERRIDDEN, UserWarning, stacklevel=2)
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(WRONG_ORDER, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        if epoch is None:
            self.last_epoch += 1
            self._set_rates(self.get_lr)
        else:
            self.last_epoch = epoch
            self._set_rates(getattr(self, "_get_closed_form_lr", self.get_lr))  # schedules of users may have one or not

    def _set_rates(self, compute: Callable[[], list[Any]]) -> None:
        self._get_lr_called_within_step = True
        try:
            rates = compute()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, lr)
        self._last_lr: list[Any] = rates_of(self.optimizer)

    def _rates(self) -> list[Any]:
        """The present rates, to compute the next from."""
        return rates_of(self.optimizer)


class _LRScheduler(LRScheduler):
    """The name of `LRScheduler` in older programs."""


def within_step(get_lr: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Warn when `get_lr` is called by anybody but `step`."""

    @functools.wraps(get_lr)
    def run(self: LRScheduler) -> list[Any]:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", UserWarning, stacklevel=2
            )
        return get_lr(self)

    return run


def _notice_steps(optimizer: Any) -> None:
    """Have the optimiser know that it was stepped, to warn when the schedule is stepped first."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    step, reference = optimizer.step.__func__, weakref.ref(optimizer)

    @functools.wraps(step)
    def run(*args: Any, **kwargs: Any) -> Any:
        stepped: Any = reference()
        stepped._opt_called = True
        return step.__get__(stepped, type(stepped))(*args, **kwargs)

    run._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = run
