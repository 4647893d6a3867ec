"""The leaf's side of autograd: `requires_grad`, `grad`, `retain_grad`, hooks on tensors."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._dispatch import keys, registry
from .._dispatch.tls import state
from .._storage import LinkedStorage, linked
from .._tensor import Tensor, set_array, shallow_copy
from ..utils.hooks import RemovableHandle, add_hook
from .node import Node, edge_of, node_and_index

__all__ = ["is_inference", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "set_requires_grad"]


def set_requires_grad(t: Tensor, value: bool) -> None:
    if value and t._keys & keys.INFERENCE and not state.inference:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
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


def requires_grad_(t: Tensor, requires_grad: bool = True) -> Tensor:
    """Ask for operations on this tensor to be recorded, or not."""
    if state.transforms:
        raise RuntimeError(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of a function "
            "being transformed by a functorch transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad, "
            "vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being transformed instead."
        )
    t.requires_grad = requires_grad
    return t


def is_inference(t: Tensor) -> bool:
    """Whether this tensor was made in inference mode."""
    return t._keys & keys.INFERENCE != 0


def warn_grad_of_non_leaf(t: Tensor) -> None:
    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
        "during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use "
        ".retain_grad() on the non-leaf Tensor.",
        UserWarning,
        stacklevel=3,
    )


def check_new_grad(t: Tensor, grad: object) -> None:
    if not isinstance(grad, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}")
    if grad is t:
        raise RuntimeError("can't assign Variable as its own grad")
    if grad.dtype is not t.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{grad.dtype.cpp_name}' to a tensor with grad_dtype "
            f"'{t.dtype.scalar_name}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set "
            "the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with caution. "
            "Diverging the dtypes of a tensor and its gradient may break downstream systems that assume they match."
        )
    if grad.device.type != t.device.type:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{grad.device.type}' to a tensor with device type '{t.device.type}'. "
            "Please ensure that the gradient and the tensor are on the same device"
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
        hooks = node._require_hooks().tensor.setdefault(index, {})
    return add_hook(hooks, hook)


def _node_and_index(t: Tensor) -> tuple[Node, int]:
    return node_and_index(edge_of(t))


def register_post_accumulate_grad_hook(t: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call `hook(tensor)` after a gradient was added to this leaf."""
    if not t._keys & keys.AUTOGRAD:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if t._node is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    extra = t._require_extra()
    if extra.post_accumulate_hooks is None:
        extra.post_accumulate_hooks = {}
    return add_hook(extra.post_accumulate_hooks, hook)


def with_gradients(tensors: Iterable[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """The tensors that have a gradient, with it."""
    return [(t, t._extra.grad) for t in tensors if t._extra is not None and t._extra.grad is not None]


def clear_gradients(tensors: Iterable[Tensor], *, set_to_none: bool) -> None:
    """Drop the tensors' gradients, or keep them as zeros without history."""
    if set_to_none:
        for t, _ in with_gradients(tensors):
            t.grad = None
    else:
        for grad in constant_gradients(tensors):
            grad.zero_()


def constant_gradients(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    """The tensors' gradients, which lose their history."""
    for _, grad in with_gradients(tensors):
        yield grad.requires_grad_(False) if grad.grad_fn is None else grad.detach_()


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
        # several gradients at once are of a vmap that ends, and no gradient of this tensor
        if tensor is not None and not grad._keys & ~tensor._keys & keys.BATCHED:
            kept = tensor._require_extra()
            kept.grad = grad.clone() if kept.grad is None else kept.grad + grad

    node._require_hooks().retain[index] = keep


def move_retain_grad(t: Tensor, node: Node) -> None:
    """After an in-place write, the gradient to keep is that of the new value."""
    if t._node is not None:
        old, index = node_and_index(t._node)
        old._require_hooks().retain.pop(index, None)
    _keep_grad_from(t, node, 0)


def retains_grad(t: Tensor) -> bool:
    """Whether the gradient of this computed tensor is kept."""
    return t._extra is not None and t._extra.retains_grad


def outside(t: Tensor) -> Tensor:
    """The same elements outside of any graph; a tensor that stands for something else says itself what that is."""
    if not t._keys & keys.PYTHON:
        return shallow_copy(t)
    previous, state.grad_enabled = state.grad_enabled, False
    state.subclass_override_off += 1
    try:
        return registry.entry("detach")(t)
    finally:
        state.subclass_override_off -= 1
        state.grad_enabled = previous


def data(t: Tensor) -> Tensor:
    """The same elements outside of the graph; autograd does not notice writes to them."""
    if t._keys & keys.PYTHON:
        return outside(t)
    if t._keys & keys.BATCHED:
        raise RuntimeError("accessing `data` under vmap transform is not allowed; use detach()")
    new = shallow_copy(t)
    new._storage = t._storage.alias()
    return new


def set_data(t: Tensor, new: Tensor) -> None:
    """Let a tensor have other elements, dtype and shape, without anybody noticing."""
    if not isinstance(new, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}")
    if t._keys & keys.AUTOGRAD and not new.dtype.inexact:
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
    if (t._keys | new._keys) & keys.BATCHED:
        raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed.")
    counter = t._storage
    # torch: the count of writes stays the tensor's, and that of its views; who shares it holds the storage
    shared = sys.getrefcount(counter) > 3 or isinstance(counter, LinkedStorage)
    if shared and new.device.type == "cpu" and not new.is_sparse:
        t._storage = linked(new._storage, counter)
    else:
        t._storage = new._storage.alias(counter.version)
    set_array(t, new._array)
    t.dtype, t.device = new.dtype, new.device
    t._keys = (t._keys & ~keys.OF_VIEWS) | (new._keys & keys.OF_VIEWS)


for _method in (requires_grad_, is_inference, register_hook, register_post_accumulate_grad_hook, retain_grad):
    setattr(Tensor, _method.__name__, _method)
Tensor.retains_grad = property(retains_grad)
Tensor.data = property(data, set_data)
