"""`_fused_sgd_`, `_fused_adam_`, `_fused_adamw_`, `_fused_adagrad_`: a whole optimiser step as one operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._backends.cpu.optim import fused_optim as kernels
from ..._tensor import Tensor
from ..machinery.declare import op

if TYPE_CHECKING:
    from ..._types import Array

SGD_OPTIONS = "float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None"
ADAM_LISTS = (
    "Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, "
    "Tensor[] state_steps"
)
ADAM_OPTIONS = "float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None"


def _skipped(found_inf: Tensor | None) -> bool:
    return found_inf is not None and bool(found_inf.item())


def _scaled(grad: Tensor, grad_scale: Tensor | None) -> Array:
    """A gradient's elements; torch: unscaled ones are written back."""
    if grad_scale is not None:
        grad._array[...] /= grad_scale.item()
        grad._storage.version += 1
    return grad._array


def _written(*tensors: Tensor) -> None:
    for t in tensors:
        t._storage.version += 1


def _sgd(
    self: list[Tensor],
    grads: list[Tensor],
    momentum_buffer_list: list[Tensor],
    weight_decay: float,
    momentum: float,
    lr: Tensor | float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
) -> None:
    if _skipped(found_inf):
        return
    step = lr.item() if isinstance(lr, Tensor) else lr

    def update(param: Any, grad: Any, buffer: Any = None) -> None:
        kernels.sgd(
            param, grad, buffer, weight_decay, momentum, step, dampening,
            nesterov=nesterov, maximize=maximize, first=is_first_step,
        )  # fmt: skip

    for i, param in enumerate(self):
        buffers = (momentum_buffer_list[i],) if momentum else ()
        kernels.in_parts((param._array, _scaled(grads[i], grad_scale), *(b._array for b in buffers)), update)
        _written(param, *buffers)


def _adam_composite(decoupled: bool) -> Callable[..., Any]:
    def composite(
        self: list[Tensor],
        grads: list[Tensor],
        exp_avgs: list[Tensor],
        exp_avg_sqs: list[Tensor],
        max_exp_avg_sqs: list[Tensor],
        state_steps: list[Tensor],
        lr: Tensor | float,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
        grad_scale: Tensor | None,
        found_inf: Tensor | None,
    ) -> None:
        if _skipped(found_inf):
            return
        rate = lr.item() if isinstance(lr, Tensor) else lr
        counts = [step.item() for step in state_steps]

        def update(arrays: tuple[Any, ...], i: int) -> None:
            param, grad, exp_avg, exp_avg_sq, *rest = arrays
            kernels.adam(
                param, grad, exp_avg, exp_avg_sq, rest[0] if amsgrad else None, counts[i],
                rate, beta1, beta2, weight_decay, eps, maximize=maximize, decoupled=decoupled,
            )  # fmt: skip

        maxima = max_exp_avg_sqs if amsgrad else []
        lists = [[t._array for t in tensors] for tensors in (self, exp_avgs, exp_avg_sqs, maxima) if tensors]
        lists.insert(1, [_scaled(grad, grad_scale) for grad in grads])
        kernels.in_batches(list(zip(*lists, strict=True)), counts, update)
        _written(*self, *exp_avgs, *exp_avg_sqs, *maxima)

    return composite


def _adagrad(
    self: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    lr: Tensor | float,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
) -> None:
    if _skipped(found_inf):
        return
    rate = lr.item() if isinstance(lr, Tensor) else lr
    rates = [rate / (1 + (step.item() - 1) * lr_decay) for step in state_steps]
    lists = [[t._array for t in self], [_scaled(grad, grad_scale) for grad in grads], [t._array for t in state_sums]]

    def update(arrays: tuple[Any, ...], i: int) -> None:
        param, grad, state_sum = arrays
        kernels.adagrad(param, grad, state_sum, rates[i], weight_decay, eps, maximize=maximize)

    kernels.in_batches(list(zip(*lists, strict=True)), rates, update)
    _written(*self, *state_sums)


for _overload, _lr, _steps in (("", "float lr", "Tensor(d!)[]"), (".tensor_lr", "Tensor lr", "Tensor[]")):
    op(
        f"_fused_sgd_{_overload}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, "
        f"float momentum, {_lr}, {SGD_OPTIONS}) -> ()",
        composite=_sgd,
        variants="function",
    )
    op(
        f"_fused_adam_{_overload}({ADAM_LISTS}, *, {_lr}, {ADAM_OPTIONS}) -> ()",
        composite=_adam_composite(False),
        variants="function",
    )
    op(
        f"_fused_adamw_{_overload}({ADAM_LISTS}, *, {_lr}, {ADAM_OPTIONS}) -> ()",
        composite=_adam_composite(True),
        variants="function",
    )
    op(
        f"_fused_adagrad_{_overload}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, {_steps} state_steps, *, {_lr}, "
        "float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
        composite=_adagrad,
        variants="function",
    )
