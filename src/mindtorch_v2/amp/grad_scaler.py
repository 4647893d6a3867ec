"""torch.amp.grad_scaler: a loss is multiplied, so that gradients of half precision do not vanish; steps with infinite gradients are left out."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .._autograd.grad_mode import no_grad
from .._device import device as device_of
from .._tensor import Tensor, wrap

if TYPE_CHECKING:
    from ..optim.optimizer import Optimizer

__all__ = ["GradScaler"]


class GradScaler:
    """Scales losses and unscales gradients. For a device that is not there it is disabled, and then changes nothing."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device_of(device).type
        if enabled and self._device == "cuda":
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
        self._enabled = enabled and self._device == "cpu"
        if self._enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if self._enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._scale = self._init_scale = init_scale
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._growth_tracker = 0
        # by optimizer, until the next update: whether gradients were infinite, and whether its step was made
        self._infinite: dict[int, bool] = {}
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """A tensor, or tensors in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, list | tuple):
            return type(outputs)(map(self.scale, outputs))
        return outputs * self._scale

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, once before a step."""
        if not self._enabled:
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if id(optimizer) in self._infinite:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        self._infinite[id(optimizer)] = self._unscaled(optimizer)

    def _unscaled(self, optimizer: Optimizer) -> bool:
        infinite, inverse = False, 1.0 / self._scale
        with no_grad():
            for gradient in _gradients(optimizer):
                infinite = infinite or not bool(gradient.isfinite().all())
                gradient.mul_(inverse)
        return infinite

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step, left out if a gradient is infinite or no number."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            self._stepped.add(id(optimizer))
            return self._left_to(optimizer, args, kwargs)
        if id(optimizer) not in self._infinite:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        return None if self._infinite[id(optimizer)] else optimizer.step(*args, **kwargs)

    def _left_to(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step of an optimizer that unscales gradients itself, and leaves out what is infinite."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future GradScaler "
                "registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            if id(optimizer) not in self._infinite:
                self._infinite[id(optimizer)] = self._is_infinite(optimizer)
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        is_unscaled = id(optimizer) in self._infinite
        if not is_unscaled:
            self._infinite[id(optimizer)] = self._is_infinite(optimizer)
        optimizer.grad_scale = None if is_unscaled else wrap(np.asarray(self._scale, np.float32))
        optimizer.found_inf = wrap(np.asarray(self._infinite[id(optimizer)], np.float32))
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    @staticmethod
    def _is_infinite(optimizer: Optimizer) -> bool:
        return not all(bool(gradient.isfinite().all()) for gradient in _gradients(optimizer))

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Lower the scale after an infinite gradient; raise it after many steps without one."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._infinite:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(self._infinite.values()):
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._infinite.clear()
        self._stepped.clear()

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale, 1 if disabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """What the scale is multiplied with to raise it."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Choose that."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied with to lower it."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Choose that."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The number of steps after which the scale is raised."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Choose that."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._scale = self._init_scale = state_dict["scale"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]


def _gradients(optimizer: Optimizer) -> list[Any]:
    return [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
