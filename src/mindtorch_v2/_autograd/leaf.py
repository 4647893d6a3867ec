"""The leaf's side of autograd: `requires_grad`, `grad`, `retain_grad`, hooks on tensors."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

from .._dispatch import keys
from .._tensor import Tensor
from ..utils.hooks import RemovableHandle
from .node import Node, Output

__all__ = ["register_hook", "register_post_accumulate_grad_hook", "retain_grad", "set_requires_grad"]


def set_requires_grad(t: Tensor, value: bool) -> None:
    if t._node is not None:
        if not value:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
                "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        return
    if value and not t.dtype.inexact:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    t._keys = t._keys | keys.AUTOGRAD if value else t._keys & ~keys.AUTOGRAD


def warn_grad_of_non_leaf(t: Tensor) -> None:
    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
        "during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use "
        ".retain_grad() on the non-leaf Tensor.",
        UserWarning,
        stacklevel=3,
    )


def check_new_grad(t: Tensor, grad: Any) -> None:
    if not isinstance(grad, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}")
    if grad is t:
        raise RuntimeError("can't assign Variable as its own grad")
    if grad.dtype is not t.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{grad.dtype.name}' to a tensor with dtype '{t.dtype.name}'. "
            "The gradient must match the tensor's dtype."
        )
    if grad.device.type != t.device.type:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{grad.device.type}' to a tensor with device type '{t.device.type}'."
        )
    if grad._array.shape != t._array.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(grad._array.shape)}' to a tensor of size '{list(t._array.shape)}'. "
            "Please ensure that the gradient and the tensor are the same size"
        )


def register_hook(t: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call `hook(grad)` whenever this tensor's gradient is computed; a result replaces the gradient."""
    if not t._keys & keys.AUTOGRAD:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if t._node is None:
        extra = t._require_extra()
        if extra.hooks is None:
            extra.hooks = {}
        hooks = extra.hooks
    else:
        node, index = _node_and_index(t)
        if node.tensor_hooks is None:
            node.tensor_hooks = {}
        hooks = node.tensor_hooks.setdefault(index, {})
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _node_and_index(t: Tensor) -> tuple[Node, int]:
    edge: Any = t.grad_fn and t._node
    return (edge.node, edge.index) if type(edge) is Output else (edge, 0)


def register_post_accumulate_grad_hook(t: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call `hook(tensor)` after a gradient was added to this leaf."""
    if not t._keys & keys.AUTOGRAD:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if t._node is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    extra = t._require_extra()
    if extra.post_accumulate_hooks is None:
        extra.post_accumulate_hooks = {}
    handle = RemovableHandle(extra.post_accumulate_hooks)
    extra.post_accumulate_hooks[handle.id] = hook
    return handle


def retain_grad(t: Tensor) -> None:
    """Keep the gradient of a computed tensor in its `grad` too."""
    if not t._keys & keys.AUTOGRAD:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if t._node is None:
        return
    extra = t._require_extra()
    if extra.retains_grad:
        return
    extra.retains_grad = True
    _keep_grad_from(t, *_node_and_index(t))


def _keep_grad_from(t: Tensor, node: Node, index: int) -> None:
    reference = weakref.ref(t)

    def keep(grad: Tensor) -> None:
        tensor = reference()
        if tensor is not None:
            kept = tensor._require_extra()
            kept.grad = grad.clone() if kept.grad is None else kept.grad + grad

    if node.retain_grad_hooks is None:
        node.retain_grad_hooks = {}
    node.retain_grad_hooks[index] = keep


def move_retain_grad(t: Tensor, node: Node) -> None:
    """After an in-place write, the gradient to keep is that of the new value."""
    if t._node is not None:
        old, index = _node_and_index(t)
        if old.retain_grad_hooks is not None:
            old.retain_grad_hooks.pop(index, None)
    _keep_grad_from(t, node, 0)
