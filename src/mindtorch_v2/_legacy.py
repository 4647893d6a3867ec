"""Constructors from torch's first years: `torch.Tensor(2, 3)`, `torch.LongTensor([1, 2])`."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _dtype
from ._creation import allocate, array_from, device_of, moved
from ._dispatch import keys, registry
from ._dispatch.tls import state
from ._refusals import warn_once
from ._storage import UntypedStorage
from ._tensor import Size, Tensor, in_class, wrap
from ._types import OptionalDevice
from .storage import TypedStorage

__all__ = ["TENSOR_TYPES", "alias_of", "construct", "set_default_tensor_type"]


def construct(cls: Any, *args: Any, device: OptionalDevice = None) -> Tensor:
    """`torch.Tensor(…)` or a subclass of it: sizes make memory, sequences are copied, a tensor is shared."""
    made = made_of(_dtype.get_default_dtype(), args, device, any_dtype=True)
    return made if cls is Tensor else in_class(made, cls)


def alias_of(t: Tensor) -> Tensor:
    """A view of all of a tensor, about which neither its class nor modes are asked."""
    state.function_override_off += 1
    try:
        made: Tensor = registry.aten("alias").table[t._keys & ~keys.SUBCLASS](t)
    finally:
        state.function_override_off -= 1
    return made


def made_of(d: _dtype.dtype, args: tuple[Any, ...], device: OptionalDevice, *, any_dtype: bool = False) -> Tensor:
    """A tensor of a size, of a sequence, of a storage, or sharing another's memory, by what the arguments are."""
    where = device_of(device)
    if not args:
        return allocate((0,), d, where)
    first = args[0]
    if len(args) == 1:
        if isinstance(first, Tensor):
            if first.dtype is not d and not any_dtype:
                raise TypeError(f"expected a tensor of dtype {d}, got one of {first.dtype}; convert it with .to()")
            return alias_of(first)
        if isinstance(first, UntypedStorage | TypedStorage):
            return allocate((0,), d, first.device).set_(first)
        if isinstance(first, Size):
            return allocate(first, d, where)
        if isinstance(first, str):
            raise TypeError("new(): invalid data type 'str'")
        if isinstance(first, list | tuple | range | np.ndarray):
            return moved(wrap(_converted(first, d)), where)
    if all(isinstance(a, int | np.integer) and not isinstance(a, bool) for a in args):
        return allocate(args, d, where)
    if len(args) == 1:
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    given = ", ".join(type(a).__name__ for a in args)
    raise TypeError(
        f"new() received an invalid combination of arguments - got ({given}), but expected sizes, one sequence of data, or one tensor"
    )


def _converted(data: Any, d: _dtype.dtype) -> np.ndarray[Any, Any]:
    """torch: here, unlike in `tensor`, floats in the data are cut to integers."""
    if d.inexact:
        return array_from(data, d, copy=True)
    found = array_from(data, None, copy=True)
    return (array_from(data, _dtype.float64, copy=True) if found.dtype.kind == "f" else found).astype(d.np)


class tensortype(type):  # noqa: N801 - torch's spelling
    """The type of `torch.FloatTensor` and its siblings: calling makes a tensor, `isinstance` asks for the dtype."""

    dtype: _dtype.dtype
    is_cuda = is_xpu = is_sparse = False

    def __call__(cls, *args: Any, device: OptionalDevice = None) -> Tensor:
        return made_of(cls.dtype, args, device)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.device.type == "cpu"


def _tensor_type(d: _dtype.dtype) -> tensortype:
    return tensortype(f"{d.scalar_name}Tensor", (), {"dtype": d, "__module__": "torch", "__doc__": f"CPU tensors of {d}."})


_NAMED = (
    _dtype.float32, _dtype.float64, _dtype.float16, _dtype.bfloat16, _dtype.uint8, _dtype.int8, _dtype.int16, _dtype.int32,
    _dtype.int64, _dtype.bool_,
)  # fmt: skip
TENSOR_TYPES: dict[str, tensortype] = {f"{d.scalar_name}Tensor": _tensor_type(d) for d in _NAMED}


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by the name or type of a legacy tensor type, as `"torch.DoubleTensor"`."""
    warn_once(
        "set_default_tensor_type",
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
    )
    if isinstance(t, str):
        found = TENSOR_TYPES.get(t.removeprefix("torch."))
        if found is None:
            raise TypeError(f"invalid type object: {t!r}")
        t = found
    if not isinstance(t, tensortype):
        raise TypeError("invalid type object")
    _dtype.set_default_dtype(t.dtype)
