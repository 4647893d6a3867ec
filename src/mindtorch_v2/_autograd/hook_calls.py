"""Hooks on nodes and on the tensors that they made, as backward calls them: each sees what the one before left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._dispatch.program import call_program
from .._tensor import Tensor
from .node import Node

__all__ = ["run_post_hooks", "run_pre_hooks", "run_result_hooks", "run_tensor_hooks"]


def run_result_hooks(node: Node, grad: Any) -> Any:
    """Run the hooks of the tensors that this node made, and those that keep their gradients."""
    hooks = node._hooks
    assert hooks is not None
    grads = grad if node._multi else [grad]
    for index, of_tensor in hooks.tensor.items():
        grads[index] = run_tensor_hooks(of_tensor, grads[index])
    for index, keep in hooks.retain.items():
        if grads[index] is not None:
            keep(grads[index])
    return grads if node._multi else grads[0]


def run_tensor_hooks(hooks: dict[int, Callable[..., Any]], grad: Tensor | None) -> Tensor | None:
    """Each hook sees the gradient as the one before left it."""
    for hook in list(hooks.values()):
        changed = call_program(hook, grad)
        if changed is not None:
            grad = _checked(changed, grad, hook)
    return grad


def _checked(changed: object, grad: Tensor | None, hook: Callable[..., Any]) -> Tensor:
    if not isinstance(changed, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(changed).__name__}'")
    if grad is None:
        return changed
    name = getattr(hook, "__name__", "<unknown>")
    if changed.dtype is not grad.dtype:
        was, got = grad.dtype.scalar_name, changed.dtype.scalar_name
        raise RuntimeError(f"hook '{name}' has changed the type of value (was torch.{was}Tensor got torch.{got}Tensor)")
    if changed.device != grad.device:
        raise RuntimeError(f"hook '{name}' has changed the device of value (was {grad.device} got {changed.device})")
    if changed._array.shape != grad._array.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    return changed


def run_pre_hooks(node: Node, grad: Any) -> Any:
    assert node._hooks is not None
    grads = tuple(grad) if node._multi else (grad,)
    for hook in list(node._hooks.pre.values()):
        changed = call_program(hook, grads)
        if changed is not None:
            changed = tuple(changed) if isinstance(changed, tuple | list) else (changed,)
            grads = _same_count(changed, grads, hook)
    return list(grads) if node._multi else grads[0]


def run_post_hooks(node: Node, outs: Sequence[Any], grad: Any) -> Sequence[Any]:
    assert node._hooks is not None
    grads = tuple(grad) if node._multi else (grad,)
    outs = tuple(outs)
    for hook in list(node._hooks.post.values()):
        changed = call_program(hook, outs, grads)
        if changed is not None:
            changed = tuple(changed) if isinstance(changed, tuple | list) else (changed,)
            outs = _same_count(changed, outs, hook)
    return outs


def _same_count(changed: tuple[Any, ...], old: tuple[Any, ...], hook: Callable[..., Any]) -> tuple[Any, ...]:
    if len(changed) != len(old):
        name = getattr(hook, "__name__", "<unknown>")
        raise RuntimeError(
            f"hook '{name}' has returned an incorrect number of values (got {len(changed)}, but expected {len(old)})"
        )
    return tuple(
        new if new is None or new is before else _checked(new, before, hook) for new, before in zip(changed, old, strict=True)
    )
