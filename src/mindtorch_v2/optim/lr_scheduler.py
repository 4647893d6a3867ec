"""Schedules of learning rates."""

from __future__ import annotations

import math
import types
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from .._tensor import Tensor
from .optimizer import Optimizer

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR",
    "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip

Factor = Callable[[int], float]


def _set_lr(group: dict[str, Any], lr: Any) -> None:
    """A learning rate that is a tensor keeps its identity."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(lr)
    else:
        group["lr"] = lr


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _check_optimizer(given: Any) -> None:
    if not isinstance(given, Optimizer):
        raise TypeError(f"{type(given).__name__} is not an Optimizer")


class LRScheduler:
    """Base: `get_lr` gives the rates of all groups for `last_epoch`; `step` puts them into the optimiser."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if "initial_lr" not in group:
                if last_epoch != -1:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                    )
                group["initial_lr"] = _copied(group["lr"])
        self.optimizer = optimizer
        self.base_lrs = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._count_steps_of(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first epoch."""
        self._step_count = 0
        self.step()

    def _count_steps_of(self, optimizer: Optimizer) -> None:
        """Notice whether the optimiser was stepped, to warn when the schedule is stepped first."""
        optimizer._opt_called = False

        def stepped(opt: Any, args: Any, kwargs: Any) -> None:
            opt._opt_called = True

        optimizer.register_step_post_hook(stepped)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates that the last `step` set."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates for `last_epoch`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go on by one epoch, or to a given one."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call them in "
                "the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping "
                "the first value of the learning rate schedule. See more details at "
                "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            warnings.warn(
                "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
                "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is "
                "used instead of the new chainable form, where available. Please open an issue if you are unable to replicate your use "
                "case: https://github.com/pytorch/pytorch/issues/new/choose.",
                UserWarning,
                stacklevel=2,
            )
            self.last_epoch = epoch
            rates = self._get_closed_form_lr()
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            _set_lr(group, lr)
        self._last_lr: list[Any] = [_copied(group["lr"]) for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> list[Any]:
        """The rates from `last_epoch` alone, where a formula exists."""
        return self.get_lr()

    def _rates(self) -> list[Any]:
        """The present rates of all groups."""
        return [_copied(group["lr"]) for group in self.optimizer.param_groups]


class LambdaLR(LRScheduler):
    """The initial rate times a function of the epoch."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1) -> None:
        self.lr_lambdas = _per_group(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Without functions; objects that can be called keep their attributes."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [None if isinstance(f, types.FunctionType) else f.__dict__.copy() for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        state = dict(state_dict)
        saved = state.pop("lr_lambdas")
        self.__dict__.update(state)
        for f, attributes in zip(self.lr_lambdas, saved, strict=True):
            if attributes is not None:
                f.__dict__.update(attributes)

    def get_lr(self) -> list[Any]:
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(LambdaLR):
    """The present rate times a function of the epoch."""

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._rates()
        return [lr * f(self.last_epoch) for f, lr in zip(self.lr_lambdas, self._rates(), strict=True)]


def _per_group(optimizer: Optimizer, given: Any) -> list[Any]:
    count = len(optimizer.param_groups)
    if not isinstance(given, list | tuple):
        return [given] * count
    if len(given) != count:
        raise ValueError(f"Expected {count} lr_lambdas, but got {len(given)}")
    return list(given)


class StepLR(LRScheduler):
    """The rate times gamma every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._rates()
        return [lr * self.gamma for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """The rate times gamma at each milestone."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch not in self.milestones:
            return self._rates()
        return [lr * self.gamma ** self.milestones[self.last_epoch] for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """The rate times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._rates()
        return [lr * self.gamma for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The rate times `factor` until `total_iters` epochs have passed."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._rates()]
        if self.last_epoch != self.total_iters:
            return self._rates()
        return [lr * (1.0 / self.factor) for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * (self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """The rate times a factor that goes from `start_factor` to `end_factor` in `total_iters` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in self._rates()]
        if self.last_epoch > self.total_iters:
            return self._rates()
        change = self.end_factor - self.start_factor
        factor = 1.0 + change / (self.total_iters * self.start_factor + (self.last_epoch - 1) * change)
        return [lr * factor for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * done) for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The rate falls to zero in `total_iters` epochs, as a power of the epochs left."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._rates()
        left = (1.0 - self.last_epoch / self.total_iters) / (1.0 - (self.last_epoch - 1) / self.total_iters)
        return [lr * left**self.power for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """The rate falls to `eta_min` in `T_max` epochs along a cosine, and rises again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._rates()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - self.eta_min) * rise for base, lr in zip(self.base_lrs, self._rates(), strict=True)]
        ratio = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / (
            1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        )
        return [ratio * (lr - self.eta_min) + self.eta_min for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        part = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class SequentialLR(LRScheduler):
    """Several schedules one after another; each takes over at its milestone."""

    def __init__(self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1) -> None:
        if not schedulers:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler to be chained.")
        for i, scheduler in enumerate(schedulers):
            if optimizer != scheduler.optimizer:
                raise ValueError(
                    f"{type(self).__name__} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from {type(optimizer).__name__}."
                )
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, but got "
                f"number of schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.optimizer, self.last_epoch = optimizer, last_epoch + 1
        for group in optimizer.param_groups:
            _set_lr(group, group["initial_lr"])
        for scheduler in schedulers:
            scheduler.last_epoch -= 1
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Go on by one epoch."""
        if epoch is not None:
            raise TypeError("SequentialLR.step() takes no epoch")
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        state = dict(state_dict)
        for scheduler, saved in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(saved)
        self.__dict__.update(state)


class ReduceLROnPlateau(LRScheduler):
    """The rate times `factor` when a metric has not improved for `patience` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        _check_optimizer(optimizer)
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        count = len(optimizer.param_groups)
        if isinstance(min_lr, list | tuple):
            if len(min_lr) != count:
                raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
            self.min_lrs = list(min_lr)
        else:
            self.min_lrs = [min_lr] * count
        self.optimizer = optimizer
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.last_epoch = 0
        self._last_lr = self._rates()
        self._reset()

    def _reset(self) -> None:
        """Forget the metrics seen so far."""
        self.best = math.inf if self.mode == "min" else -math.inf
        self.mode_worse = self.best
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether a metric improved by more than the threshold."""
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "rel":
            return sign * a < sign * best * (1.0 - sign * self.threshold)
        return sign * a < sign * best - self.threshold

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take note of a metric at the end of an epoch."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(
                "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated", UserWarning, stacklevel=2
            )
        self.last_epoch = epoch
        if self._out_of_patience(current):
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _out_of_patience(self, current: float) -> bool:
        """Count an epoch as bad unless the metric improved or a reduction is still cooling down; whether there were too many."""
        improved, cooling = self.is_better(current, self.best), self.in_cooldown
        if improved:
            self.best = current
        if cooling:
            self.cooldown_counter -= 1
        self.num_bad_epochs = 0 if improved or cooling else self.num_bad_epochs + 1
        return self.num_bad_epochs > self.patience

    def _reduce(self) -> None:
        for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _set_lr(group, new)
