"""Conversion to another dtype or device: `to` and its short forms."""

from __future__ import annotations

import functools
from typing import Any

from ... import _device, _dtype
from ..._backends.backend import unavailable
from ..._backends.cpu.creation import copying as kernels
from ..._backends.cpu.machinery.floating_errors import IGNORED, state_variable
from ..._backends.meta.adapter import meta_tensor
from ..._dispatch import keys
from ..._memory_format import strided
from ..._tensor import Tensor, wrap, wrap_sized
from ..._types import DType, OptionalDevice, OptionalDType, OptionalLayout, OptionalMemoryFormat
from ..machinery.declare import op, public
from . import narrow

_LARGE = keys.LARGE  # a small cast takes 2 µs, and asking the module 0.02


def _to_copy(
    self: Tensor,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
    non_blocking: bool,
    memory_format: OptionalMemoryFormat,
) -> Tensor:
    """A copy with another dtype, device or memory format."""
    if layout is not None and layout is not strided:
        raise RuntimeError(
            f"to(options) doesn't support converting to a different layout, but got self.layout being {strided} and options.layout "
            f"set as {layout}; use to_sparse()"
        )
    d = self.dtype if dtype is None else dtype
    if d.__class__ is _dtype.NarrowDtype or self._keys & keys.NARROW:
        return narrow.converted(self, d, device, memory_format)
    if self._keys & keys.CPU and (device is None or device is _device.cpu):
        before = state_variable.get()
        try:
            state_variable.set(IGNORED)
            if self._keys & _LARGE:
                return wrap_sized(kernels.cast_large(self._array, d, memory_format), d)
            return wrap(kernels.cast(self._array, d, memory_format), d)
        finally:
            state_variable.set(before)
    return _to_other_device(self, d, self.device if device is None else _device.device(device), memory_format)


def _to_other_device(self: Tensor, d: _dtype.dtype, target: _device.device, memory_format: OptionalMemoryFormat) -> Tensor:
    if not target.key:
        raise unavailable(target)
    if target.type == "meta":
        # a copy's strides without its elements: those of a copy of one of them, repeated
        strides = kernels.strides_of_copy(self._array, memory_format)
        return meta_tensor(self._array.shape, d, tuple(s * d.itemsize for s in strides))
    if self._keys & keys.META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    raise unavailable(target)


_to_copy_op = op(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    composite=_to_copy,
    grad={"self": lambda grad, self_dtype, self_device: _backward_of_copy(grad, self_dtype, self_device)},
    node="ToCopyBackward0",
    variants="",
)


def _backward_of_copy(grad: Tensor, dtype: DType, device: OptionalDevice) -> Tensor:
    if grad.dtype.is_complex and not dtype.is_complex:
        grad = grad.real
    return to_dtype_layout(grad, dtype=dtype, device=device)


def _to(
    self: Tensor, dtype: OptionalDType, device: OptionalDevice, non_blocking: bool, copy: bool, memory_format: OptionalMemoryFormat
) -> Tensor:
    """The tensor itself when nothing changes and no copy is asked for."""
    if device is not None and device is not self.device:
        device = _device.device(device)
        if device.index is not None and device.type == "cpu":
            device = _device.cpu
    if (
        not copy
        and (dtype is None or dtype is self.dtype)
        and (device is None or device is self.device or device == self.device)
        and (
            memory_format is None
            or kernels.format_name(memory_format) == "preserve_format"
            or kernels.is_contiguous(self._array, memory_format)
        )
    ):
        return self
    return _to_copy_op(self, dtype=dtype, device=device, non_blocking=non_blocking, memory_format=memory_format)


to_dtype = op(
    "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
    composite=lambda self, dtype, non_blocking, copy, memory_format: _to(self, dtype, None, non_blocking, copy, memory_format),
    variants="",
)
to_device = op(
    "to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)",
    composite=lambda self, device, dtype, non_blocking, copy, memory_format: _to(
        self, dtype, device, non_blocking, copy, memory_format
    ),
    variants="",
)
to_dtype_layout = op(
    "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
    composite=lambda self, dtype, layout, device, pin_memory, non_blocking, copy, memory_format: _to(
        self, dtype, device, non_blocking, copy, memory_format
    ),
    variants="",
)
to_other = op(
    "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
    composite=lambda self, other, non_blocking, copy, memory_format: _to(
        self, other.dtype, other.device, non_blocking, copy, memory_format
    ),
    variants="",
)


def _no_accelerator(self: Tensor, device: OptionalDevice) -> Tensor:
    raise RuntimeError("Cannot access accelerator device when none is available.")


# memory that is locked for an accelerator, of which there is none
is_pinned = op("is_pinned(Tensor self, Device? device=None) -> bool", composite=lambda self, device: False, variants="method")
pin_memory = op("pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)", composite=_no_accelerator, variants="method")
_pin_memory = op("_pin_memory(Tensor self, Device? device=None) -> Tensor", composite=_no_accelerator, variants="")


@public("method")
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor with another dtype, device or memory format: `to(dtype)`, `to(device, dtype)`, `to(other)`, each with
    `non_blocking`, `copy` and `memory_format`.
    """
    if len(args) == 1 and not kwargs:
        kind = args[0].__class__
        if kind is _dtype.dtype:
            return to_dtype(self, args[0])
        if kind is str or kind is _device.device:
            return to_dtype_layout(self, device=_parse_device(args[0]))
        if kind is type and args[0] in _dtype.PYTHON_TYPES:
            return to_dtype(self, _dtype.PYTHON_TYPES[args[0]])
    dtype, device, rest = parse_to(args, kwargs)
    if device is None and dtype is None:
        if not rest:
            return self
        return to_dtype_layout(self, **rest)
    if device is None:
        return to_dtype(self, dtype, **rest)
    if dtype is None:
        return to_dtype_layout(self, device=device, **rest)
    return to_device(self, device, dtype, **rest)


_parse_device = functools.lru_cache(maxsize=64)(_device.device)


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """(dtype, device, the rest) of a call to `Tensor.to`."""
    options = dict(kwargs)
    positional = [_dtype.PYTHON_TYPES.get(a, a) if a.__class__ is type else a for a in args]
    dtype, device = options.pop("dtype", None), options.pop("device", None)
    if dtype.__class__ is type:
        dtype = _dtype.PYTHON_TYPES.get(dtype, dtype)
    if "other" in options:
        positional.insert(0, options.pop("other"))
    if positional:
        first = positional.pop(0)
        if isinstance(first, Tensor):
            dtype, device = first.dtype, first.device
        elif isinstance(first, _dtype.dtype):
            dtype = first
        elif first is None or (isinstance(first, str | int | _device.device) and not isinstance(first, bool)):
            device = first if device is None else device
            if positional and (positional[0] is None or isinstance(positional[0], _dtype.dtype)):
                dtype = positional.pop(0)
        else:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(first).__name__})")
    for name in ("non_blocking", "copy"):
        if positional and isinstance(positional[0], bool):
            options[name] = positional.pop(0)
    unknown = [k for k in options if k not in ("non_blocking", "copy", "memory_format")]
    if positional or unknown:
        raise TypeError(f"to() got an unexpected argument {unknown[0] if unknown else positional[0]!r}")
    return dtype, None if device is None else _device.device(device), options


def _short_form(name: str, d: _dtype.dtype) -> None:
    def convert(self: Tensor, memory_format: OptionalMemoryFormat = None) -> Tensor:
        return to_dtype(self, d, memory_format=memory_format)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"The tensor with elements of dtype {d}."
    public("method", name=name)(convert)


for _name, _d in {
    "float": _dtype.float32, "double": _dtype.float64, "half": _dtype.float16, "bfloat16": _dtype.bfloat16,
    "byte": _dtype.uint8, "char": _dtype.int8, "short": _dtype.int16, "int": _dtype.int32, "long": _dtype.int64,
    "bool": _dtype.bool_, "cfloat": _dtype.complex64, "cdouble": _dtype.complex128,
}.items():  # fmt: skip
    _short_form(_name, _d)


@public("method")
def chalf(self: Tensor, memory_format: OptionalMemoryFormat = None) -> Tensor:
    """Refused: complex numbers of half precision have no NumPy type."""
    raise NotImplementedError(
        "chalf(): complex numbers of half precision (complex32) have no NumPy type; use cfloat() or cdouble()"
    )


@public("method")
def cpu(self: Tensor, memory_format: OptionalMemoryFormat = None) -> Tensor:
    """The tensor in the host's memory."""
    return to_dtype_layout(self, device=_device.cpu, memory_format=memory_format)


type_as = op("type_as(Tensor self, Tensor other) -> Tensor", composite=lambda self, other: to_other(self, other), variants="method")


@public("method", name="type")
def type_(self: Tensor, dtype: OptionalDType = None, non_blocking: bool = False) -> Tensor | str:
    """The legacy type name (`torch.FloatTensor`), or the tensor converted to a dtype or type name."""
    if dtype is None:
        return type_name(self)
    if isinstance(dtype, str):
        dtype = _LEGACY_NAMES.get(dtype.removeprefix("torch."))
        if dtype is None:
            raise ValueError("invalid type: unknown legacy type name")
    elif not isinstance(dtype, _dtype.dtype):
        given, dtype = dtype, _dtype.get_default_dtype() if dtype is Tensor else getattr(dtype, "dtype", None)
        if not isinstance(dtype, _dtype.dtype):
            if isinstance(given, type):
                raise ValueError(f"invalid type: '{given.__name__}'")
            raise TypeError("dtype must be a type, str, or dtype object")
    return to_dtype(self, dtype, non_blocking)


_LEGACY_NAMES = {d.scalar_name + "Tensor": d for d in _dtype.ALL}


def type_name(self: Tensor) -> str:
    middle = "" if self.device.type == "cpu" else self.device.type + "."
    return f"torch.{middle}{self.dtype.scalar_name}Tensor"
