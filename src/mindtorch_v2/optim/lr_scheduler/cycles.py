"""Schedules whose rates rise and fall: `CyclicLR`, `OneCycleLR`, `CosineAnnealingWarmRestarts`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ..optimizer import Optimizer
from .scheduler import LRScheduler, attributes_of, check_optimizer, per_group, set_rate, within_step

__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]

Scale = Callable[[float], float]


class _MomentumCycle(LRScheduler):
    """A schedule that may move the momentum against the rate."""

    cycle_momentum: bool
    use_beta1: bool

    def _cycle_momentum_of(
        self, optimizer: Optimizer, base: float | list[float], most: float | list[float], last_epoch: int
    ) -> tuple[list[Any], list[Any]]:
        """Momenta of all groups at either end; at the beginning the optimiser gets the larger ones."""
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        bases, maxima = per_group("base_momentum", optimizer, base), per_group("max_momentum", optimizer, most)
        if last_epoch == -1:
            for group, least, largest in zip(optimizer.param_groups, bases, maxima, strict=True):
                self._set_momentum(group, largest)
                group["max_momentum"], group["base_momentum"] = largest, least
        return bases, maxima

    def _set_momentum(self, group: dict[str, Any], momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_MomentumCycle):
    """The rate goes from `base_lr` to `max_lr` and back, over and over, with each cycle scaled by `scale_fn`."""

    _transient = ("optimizer", "_scale_fn_ref")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Scale | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_rate(group, lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in MODES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            momenta = self._cycle_momentum_of(optimizer, base_momentum, max_momentum, last_epoch)
            self.base_momentums, self.max_momentums = momenta
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is None:
            self.scale_mode, make = MODES[self.mode]
            self._scale_fn_ref = make(self.gamma)

    def scale_fn(self, x: float) -> float:
        """The factor of a cycle's height, for the number of the cycle or of the step."""
        return (self._scale_fn_ref if self._scale_fn_custom is None else self._scale_fn_custom)(x)

    @within_step
    def get_lr(self) -> list[Any]:
        """The rates for `last_epoch`; sets the momenta too."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        at = cycle if self.scale_mode == "cycle" else self.last_epoch
        rates = [base + (most - base) * height * self.scale_fn(at) for base, most in zip(self.base_lrs, self.max_lrs, strict=True)]
        if self.cycle_momentum:
            groups = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, base, most in groups:
                self._set_momentum(group, most - (most - base) * height * self.scale_fn(at))
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Without functions; a scale that is an object keeps its attributes."""
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        return {**state, "_scale_fn_custom": None if custom is None else attributes_of(custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        custom = state_dict["_scale_fn_custom"]
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if custom is not None:
            self._scale_fn_custom.__dict__.update(custom)
        self._init_scale_fn()


def _constant(x: float) -> float:
    return 1.0


def _halving(x: float) -> float:
    return 1 / (2.0 ** (x - 1))


# what is counted, cycles or steps, and the scale, given gamma
MODES: dict[str, tuple[str, Callable[[float], Scale]]] = {
    "triangular": ("cycle", lambda gamma: _constant),
    "triangular2": ("cycle", lambda gamma: _halving),
    "exp_range": ("iterations", lambda gamma: partial(pow, gamma)),
}


class OneCycleLR(_MomentumCycle):
    """The rate rises to `max_lr` and falls far below its start, once; the momentum goes the other way."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        maxima = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, maxima, strict=True):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._cycle_momentum_of(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _annealing_cos(start: float, end: float, pct: float) -> float:
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start: float, end: float, pct: float) -> float:
        return (end - start) * pct + start

    @property
    def _anneal_func(self) -> Callable[[Any, Any, float], Any]:
        """The curve from one value to another; state of older versions has the function itself."""
        named = {"cos": self._annealing_cos, "linear": self._annealing_linear}
        kind = vars(self).get("_anneal_func_type")
        function: Callable[[Any, Any, float], Any] = vars(self)["anneal_func"] if kind is None else named[kind]
        return function

    @within_step
    def get_lr(self) -> list[Any]:
        """The rates for `last_epoch`; sets the momenta too."""
        if self.last_epoch > self.total_steps:
            raise ValueError(f"Tried to step {self.last_epoch} times. The specified number of total steps is {self.total_steps}")
        phases = self._schedule_phases
        at = next((i for i, phase in enumerate(phases) if self.last_epoch <= phase["end_step"]), len(phases) - 1)
        phase, start = phases[at], phases[at - 1]["end_step"] if at else 0.0
        part = (self.last_epoch - start) / (phase["end_step"] - start)
        anneal = self._anneal_func
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(anneal(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                self._set_momentum(group, anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], part))
        return rates


def _total_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is not None:
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    total: int = epochs * steps_per_epoch
    return total


def _phases(total: int, pct_start: float, three_phase: bool) -> list[dict[str, Any]]:
    """Where each phase ends, and from which to which of a group's rates and momenta it goes."""
    # end, rates, momenta
    rows: list[tuple[float, str, str]] = [(float(pct_start * total) - 1, "initial max", "max base")]
    if three_phase:
        rows.append((float(2 * pct_start * total) - 2, "max initial", "base max"))
        rows.append((total - 1, "initial min", "max max"))
    else:
        rows.append((total - 1, "max min", "base max"))
    phases = []
    for end, rates, momenta in rows:
        start_lr, end_lr = rates.split()
        start_momentum, end_momentum = momenta.split()
        phases.append(
            {
                "end_step": end,
                "start_lr": f"{start_lr}_lr",
                "end_lr": f"{end_lr}_lr",
                "start_momentum": f"{start_momentum}_momentum",
                "end_momentum": f"{end_momentum}_momentum",
            }
        )
    return phases


class CosineAnnealingWarmRestarts(LRScheduler):
    """The rate falls to `eta_min` along a cosine and starts anew, after `T_0` epochs and then `T_mult` times as many each time."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    @within_step
    def get_lr(self) -> list[Any]:
        """The rates at `T_cur` epochs into a cycle of `T_i`."""
        part = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * part / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go on by one epoch, or to a given one, which may be a fraction."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_rates(self.get_lr)

    def _go_to(self, epoch: float) -> None:
        """Find the cycle that an epoch is in."""
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        self.T_cur = epoch
        if epoch < self.T_0:
            self.T_i = self.T_0
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            cycle = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**cycle - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**cycle
