"""Checkpoints with `use_reentrant=True`: a function of autograd that runs without a graph, and in backward once more with one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from ..._autograd.differentiate import backward as run_backward
from ..._autograd.engine import is_whole_pass
from ..._autograd.grad_mode import enable_grad, no_grad
from ..._tensor import Tensor
from ...autograd.function import Function
from .environment import Environment

__all__ = ["CheckpointFunction", "check_backward_validity", "detach_variable"]


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs, their tensors outside of the graph, with the same `requires_grad`."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no input requires grad."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class CheckpointFunction(Function):
    """Calls `run_function(*args)` in forward, and again in backward."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function, ctx.environment = run_function, Environment(preserve_rng_state=preserve_rng_state)
        ctx.inputs = [None if isinstance(x, Tensor) else x for x in args]
        ctx.tensor_indices = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.tensor_indices])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        if not is_whole_pass():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
                ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without passing "
                "the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for i, tensor in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[i] = tensor
        detached = detach_variable(tuple(inputs))
        with ctx.environment.again(), enable_grad():
            outputs = ctx.run_function(*detached)
        _run_backward((outputs,) if isinstance(outputs, Tensor) else outputs, grads)
        return (None, None, *[x.grad if isinstance(x, Tensor) else None for x in detached])


def _run_backward(outputs: Iterable[Any], grads: Iterable[Any]) -> None:
    """Propagate gradients through what was computed again."""
    pairs = [(out, grad) for out, grad in zip(outputs, grads) if isinstance(out, Tensor) and out.requires_grad]
    if not pairs:
        raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
    run_backward([out for out, _ in pairs], [grad for _, grad in pairs])
