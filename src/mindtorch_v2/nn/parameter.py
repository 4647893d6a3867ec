"""Parameters and buffers: tensors that a module registers when they are assigned to it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from .._dispatch import keys
from .._dtype import get_default_dtype
from .._tensor import Tensor, _disabled_torch_function_impl, set_array, shallow_copy, wrap

__all__ = ["Buffer", "Parameter", "is_lazy", "set_tensor_data"]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Lets tensors of other classes count as parameters when they are marked with `_is_param`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and bool(instance.__dict__.get("_is_param", False))


def _empty() -> Tensor:
    return wrap(np.empty(0, get_default_dtype().np))


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is a module's parameter: it requires grad by default, and appears in `module.parameters()`."""

    # results of operators on parameters are plain tensors
    __torch_function__ = _disabled_torch_function_impl
    _class_keys = 0

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = _empty()
        if type(data) is Tensor or type(data) is Parameter:
            if requires_grad and not data.dtype.inexact:
                raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
            made = shallow_copy(data, cls)
            made.requires_grad = bool(requires_grad)
            return made
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter data must be a Tensor, not {type(data).__name__}")
        # a subclass keeps its type, and is marked instead
        made = data.detach().requires_grad_(requires_grad)
        if type(made) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
                f"instance of the same type, but return type {type(made).__name__} was found instead. To use the type as a "
                "Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation."
            )
        made.__dict__["_is_param"] = True
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        copied = type(self)(self.detach().clone(), self.requires_grad)
        memo[id(self)] = copied
        return copied

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return "Parameter containing:\n" + Tensor.__repr__(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild_parameter, (self.detach(), self.requires_grad, OrderedDict())


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    return Parameter(data, requires_grad)


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and bool(instance.__dict__.get("_is_buffer", False))


class Buffer(Tensor, metaclass=_BufferMeta):
    """A plain tensor, marked so that assigning it to a module registers it as a buffer."""

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = _empty()
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made

    __torch_function__ = _disabled_torch_function_impl
    _class_keys = 0


def is_lazy(param: Any) -> bool:
    """Whether a parameter still waits for its shape; there are no such parameters here."""
    return False


def set_tensor_data(target: Tensor, source: Tensor) -> None:
    """Give a tensor another one's elements, dtype and device, in place of its own: `target.data = source`."""
    set_array(target, source._array)
    target._storage = source._storage
    target.dtype = source.dtype
    target.device = source.device
    target._keys = (target._keys & ~keys.BACKENDS) | (source._keys & keys.BACKENDS)
