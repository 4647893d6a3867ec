"""How a module exchanges the elements of a parameter for converted ones: in place, by a new parameter, or by a swap."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import __future__ as switches
from ..._autograd.grad_mode import no_grad
from ..._tensor import Tensor
from ...overrides import handle_torch_function, has_torch_function
from ...utils._swapping import swap_tensors
from ..parameter import Parameter, set_tensor_data

if TYPE_CHECKING:
    from .module import Module

__all__ = ["convert_parameter", "swap_in"]


def convert_parameter(module: Module, key: str, param: Tensor, fn: Callable[[Tensor], Tensor]) -> None:
    """Replace a parameter's elements, and those of its gradient, by what `fn` makes of them."""
    with no_grad():
        made = fn(param)
    grad = param.grad
    if switches.get_swap_module_params_on_conversion():
        _swap_parameter(module, key, param, made, grad, fn)
        return
    if _in_place(param, made):
        set_tensor_data(param, made)
        out = param
    else:
        out = module._parameters[key] = Parameter(made, param.requires_grad)
    if grad is None:
        return
    with no_grad():
        made_grad = fn(grad)
    if _in_place(grad, made_grad):
        set_tensor_data(grad, made_grad)
    else:
        grad = made_grad.requires_grad_(grad.requires_grad)
    if out.grad is not grad:
        out.grad = grad


def _in_place(old: Tensor, new: Tensor) -> bool:
    # torch: a tensor of the meta device cannot become one of another
    return old.is_meta == new.is_meta and not switches.get_overwrite_module_params_on_conversion()


def _swap_parameter(
    module: Module, key: str, param: Tensor, made: Tensor, grad: Tensor | None, fn: Callable[[Tensor], Tensor]
) -> None:
    name = f"{type(module).__name__}.{key}"
    param.grad = None
    try:
        swap_tensors(param, Parameter(made, requires_grad=param.requires_grad))
    except Exception as error:
        param.grad = grad
        raise RuntimeError(f"_apply(): Couldn't swap {name}") from error
    if grad is None:
        return
    with no_grad():
        made_grad = fn(grad)
    try:
        swap_tensors(grad, made_grad.detach().requires_grad_(grad.requires_grad))
    except Exception as error:
        raise RuntimeError(f"_apply(): Couldn't swap {name}.grad") from error
    param.grad = grad


_module_load: Any = getattr(Tensor, "module_load")  # noqa: B009 - attached, which mypy does not see


def swap_in(target: Tensor, value: Tensor, *, assign: bool) -> None:
    """Load a value of a state dict into a parameter or buffer by a swap, with the tensor that `module_load` makes of it."""
    if has_torch_function((target, value)):
        made = handle_torch_function(_module_load, (target, value), target, value, assign=assign)
    else:
        made = target.module_load(value, assign=assign)
    if made is value or made is target:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in module_load"
        )
    if isinstance(target, Parameter):
        if not isinstance(made, Parameter):
            made = Parameter(made, requires_grad=target.requires_grad)
        else:
            made.requires_grad_(target.requires_grad)
    swap_tensors(target, made)
