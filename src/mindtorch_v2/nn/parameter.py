"""Parameters and buffers: tensors that a module registers when they are assigned to it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, Self, SupportsIndex

import numpy as np

from .._dispatch import keys
from .._dtype import get_default_dtype
from .._ops.machinery.lookup import aten
from .._tensor import Tensor, _disabled_torch_function_impl, set_array, shallow_copy, wrap
from .._types import Ints, OptionalDevice, OptionalDType
from ..overrides import DisableTorchFunctionSubclass

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy", "set_tensor_data",
]  # fmt: skip


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Lets tensors of other classes count as parameters when they are marked with `_is_param`."""

    def __instancecheck__(cls, instance: object) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and bool(instance.__dict__.get("_is_param", False))


def _empty() -> Tensor:
    return wrap(np.empty(0, get_default_dtype().np))


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is a module's parameter: it requires grad by default, and appears in `module.parameters()`."""

    # results of operators on parameters are plain tensors
    __torch_function__ = _disabled_torch_function_impl  # type: ignore[assignment]
    _class_keys = 0

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
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

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return "Parameter containing:\n" + Tensor.__repr__(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        parts = (self.detach(), self.requires_grad, OrderedDict[int, Any]())
        return (_rebuild_parameter_with_state, (*parts, dict(self.__dict__))) if self.__dict__ else (_rebuild_parameter, parts)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: OrderedDict[int, Any]) -> Parameter:
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: OrderedDict[int, Any], state: dict[str, Any]
) -> Parameter:
    made = _rebuild_parameter(data, requires_grad, backward_hooks)
    made.__dict__.update(state)
    return made


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: object) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and bool(instance.__dict__.get("_is_buffer", False))


class Buffer(Tensor, metaclass=_BufferMeta):
    """A plain tensor, marked so that assigning it to a module registers it as a buffer."""

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = _empty()
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made

    __torch_function__ = _disabled_torch_function_impl  # type: ignore[assignment]
    _class_keys = 0


class UninitializedTensorMixin:
    """A tensor whose shape is not known yet; `materialize` makes it an ordinary one."""

    cls_to_become: Any
    requires_grad: bool
    # conversions, which keep it as it is, and what modules ask of their parameters
    _allowed_methods = frozenset(
        "__hash__ size copy_ is_complex is_floating_point half float double char short int long cuda cpu to get_device "
        "requires_grad_".split()
    )

    def materialize(self, shape: Ints, device: OptionalDevice = None, dtype: OptionalDType = None) -> None:
        """Take memory of this shape, and become a parameter or a plain tensor."""
        tensor: Any = self
        required = tensor.requires_grad
        data = aten.empty(
            (shape,) if isinstance(shape, int) else tuple(shape),
            device=tensor.device if device is None else device,
            dtype=dtype or tensor.dtype,
        )
        self.__class__ = self.cls_to_become
        tensor._keys &= ~keys.SUBCLASS
        set_tensor_data(tensor, data)
        tensor.requires_grad = required

    @property
    def shape(self) -> NoReturn:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when "
            "trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before "
            "accessing their attributes."
        )

    def share_memory_(self) -> NoReturn:
        """Refused: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before calling "
            "`module.share_memory()`."
        )

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name in cls._allowed_methods or type(func).__name__ == "method-wrapper":  # which reads and writes properties
            with DisableTorchFunctionSubclass():
                result = func(*args, **(kwargs or {}))
            # a parameter takes the result's dtype and device over, a buffer is replaced by it
            is_new_buffer = cls.cls_to_become is Tensor and type(result) is Tensor
            own: Any = cls
            return shallow_copy(result, own) if is_new_buffer else result
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` or "
            f"explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward` with a "
            "dummy batch to initialize the parameters before calling torch functions"
        )


def _uninitialized(cls: Any, requires_grad: bool, device: OptionalDevice, dtype: OptionalDType) -> Any:
    made = shallow_copy(aten.empty((0,), device=device, dtype=dtype), cls)
    made.requires_grad = requires_grad
    return made


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not known yet."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: OptionalDevice = None, dtype: OptionalDType = None) -> Any:
        return _uninitialized(cls, requires_grad, device, dtype)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet."""

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: OptionalDevice = None, dtype: OptionalDType = None, persistent: bool = True
    ) -> Any:
        made = _uninitialized(cls, requires_grad, device, dtype)
        made.persistent, made._is_buffer = persistent, True
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype, self.persistent)
        return memo[id(self)]


def is_lazy(param: object) -> bool:
    """Whether a parameter or buffer still waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)


def set_tensor_data(target: Tensor, source: Tensor) -> None:
    """Give a tensor another one's elements, dtype and device, in place of its own: `target.data = source`."""
    set_array(target, source._array)
    target._storage = source._storage
    target.dtype = source.dtype
    target.device = source.device
    target._keys = (target._keys & ~keys.OF_VIEWS) | (source._keys & keys.OF_VIEWS)
