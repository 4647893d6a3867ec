"""Making tensors from Python data: `tensor`, `as_tensor`, `asarray`; and where all tensors get memory.

The factories (`zeros`, `arange`, …) are operators like any other: see `_ops/creation/constants.py`.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from . import _device, _dtype
from ._allocation_failure import allocation_error
from ._backends.backend import unavailable
from ._backends.cpu.machinery.floating_errors import quiet
from ._backends.meta.adapter import meta_tensor
from ._dispatch import keys
from ._dispatch.tls import state
from ._promotion import promote_types
from ._refusals import warn_once
from ._storage import UntypedStorage
from ._tensor import Tensor, wrap_sized
from ._types import OptionalDevice, OptionalDType

__all__ = [
    "allocate",
    "as_tensor",
    "asarray",
    "default_device",
    "dtype_of",
    "get_default_device",
    "legacy_tensor",
    "set_default_device",
    "tensor",
]

_CPU = _device.cpu


def default_device() -> _device.device:
    """The device of new tensors when none is given."""
    return state.default_devices[-1] if state.default_devices else _CPU


def set_default_device(device: OptionalDevice) -> None:
    """Put new tensors on this device, in this thread, unless one is given; None restores the CPU."""
    above = state.default_devices[0 if state.bottom_device is None else 1 :]
    while state.default_devices:
        _device.pop_default()
    state.bottom_device = None if device is None else _device.device(device)
    if state.bottom_device is not None:
        _device.push_default(state.bottom_device)
    for where in above:  # `with device:` blocks lie above the default
        _device.push_default(where)


def get_default_device() -> _device.device:
    """The device on which new tensors are made."""
    return default_device()


def dtype_of(given: Any) -> _dtype.dtype:
    """The dtype meant by a `dtype=` argument: itself, the default for None, or that of a Python type."""
    if given.__class__ is _dtype.dtype:
        return given
    if given is None:
        return _dtype.get_default_dtype()
    return _dtype.as_dtype(given)


def device_of(given: Any) -> _device.device:
    """The device meant by a `device=` argument, which must be usable."""
    where = default_device() if given is None else given if given.__class__ is _device.device else _device.device(given)
    if where.key not in (keys.CPU, keys.META):
        raise unavailable(where)
    return where


def empty_array(shape: Any, d: _dtype.dtype) -> np.ndarray[Any, Any]:
    """An array of this shape, which may be anything that torch takes for one."""
    try:
        return np.empty(shape, d.np)
    except (ValueError, TypeError, MemoryError):
        sizes = checked_shape(shape, d.itemsize)
    try:
        return np.empty(sizes, d.np)
    except MemoryError as error:
        raise allocation_error(error) from error


def allocate(shape: Any, d: _dtype.dtype, where: _device.device = _CPU) -> Tensor:
    """A tensor of this shape whose elements are whatever the memory holds."""
    if where.key == keys.CPU:
        array = empty_array(shape, d)
        t: Tensor = object.__new__(Tensor)
        t._array = array
        s = t._storage = UntypedStorage()
        s.array = array
        s.version = 0
        t.dtype = d
        t.device = _CPU
        t._keys = keys.CPU | keys.LARGE if array.size >= keys.LARGE_SIZE else keys.CPU
        t._node = t._base = t._extra = None
        return t
    return meta_tensor(checked_shape(shape), d)


def checked_shape(shape: Any, itemsize: int = 1) -> tuple[int, ...]:
    """Extents as plain ints, none negative, of elements whose bytes can be counted."""
    if isinstance(shape, int | np.integer):
        shape = (shape,)
    elif not isinstance(shape, list | tuple):
        raise TypeError(f"argument 'size' (position 1) must be tuple of ints, not {type(shape).__name__}")
    sizes = []
    for i, n in enumerate(shape):
        if isinstance(n, bool) or not hasattr(type(n), "__index__") or (isinstance(n, Tensor) and n.dtype.inexact):
            if i == 0:
                raise TypeError(
                    f"argument 'size' (position 1) must be tuple of ints, but found element of type {type(n).__name__} at pos 0"
                )
            raise TypeError(
                f"argument 'size' failed to unpack the object at pos {i + 1} with error "
                f'"type must be tuple of ints,but got {type(n).__name__}"'
            )
        sizes.append(n.__index__())
    if len(sizes) > 64:
        raise RuntimeError(f"tensors are NumPy arrays here, of at most 64 dimensions; got a size of {len(sizes)}")
    for n in sizes:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {sizes}")
    if math.prod(sizes) * itemsize >= 1 << 63:
        raise RuntimeError("Storage size calculation overflowed with sizes=" + str(sizes))
    return tuple(sizes)


# --- from Python data -----------------------------------------------------------------------------------------------


def tensor(
    data: Any, *, dtype: OptionalDType = None, device: OptionalDevice = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A tensor with a copy of the data: numbers, nested sequences of them, arrays, tensors."""
    if pin_memory:
        refuse_pinned()
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
            "or sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
    if dtype.__class__ is _dtype.NarrowDtype:
        values = array_from(data, _dtype.complex64 if dtype.is_complex else _dtype.float32, copy=True)
        t = wrap_sized(values).to(dtype)
    else:
        array = array_from(data, None if dtype is None else dtype_of(dtype), copy=True)
        t = made_here(wrap_sized(array))
    if device is None and isinstance(data, Tensor):
        device = data.device
    if device is not None or state.default_devices:
        t = moved(t, device_of(device))
    if requires_grad:
        require_grad(t)
    return t


def made_here(t: Tensor) -> Tensor:
    """A tensor that no operator made, which must still know that it was made in inference mode."""
    if state.inference:
        t._keys |= keys.INFERENCE
    return t


def require_grad(t: Tensor) -> None:
    """`requires_grad=True` of a factory."""
    if not t.dtype.inexact:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    t._keys |= keys.AUTOGRAD


def moved(t: Tensor, where: _device.device) -> Tensor:
    """A new CPU tensor on its device."""
    if where.key == keys.META:
        return meta_tensor(t._array.shape, t.dtype)
    return t


def _from_storage(storage: Any, d: _dtype.dtype | None) -> np.ndarray[Any, Any]:
    """The elements of a typed storage, or of a storage of bytes as elements of this dtype."""
    own_dtype = getattr(storage, "dtype", None)
    if own_dtype is not None and d not in (None, own_dtype):
        raise RuntimeError(f"Expected a Storage of type {d.scalar_name} or an UntypedStorage, but got {own_dtype.scalar_name}")
    wanted = own_dtype or d or _dtype.int64
    memory = storage.untyped().bytes()
    found: np.ndarray[Any, Any] = memory[: memory.size // wanted.itemsize * wanted.itemsize].view(wanted.np)
    return found


def array_from(data: Any, d: _dtype.dtype | None, *, copy: bool) -> np.ndarray[Any, Any]:
    """An array of the dtype asked for, or of the one torch infers from the data."""
    if isinstance(data, Tensor):
        if data._keys & keys.META:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        return data._array.astype((d or data.dtype).np, copy=copy, order="C")
    if isinstance(data, np.ndarray | np.generic):
        found = np.asarray(data)
        own_dtype = numpy_dtype(found.dtype)
        with quiet():
            return found.astype(own_dtype.np if d is None else d.np, copy=copy, order="C")
    leaf = data
    while (leaf.__class__ is list or leaf.__class__ is tuple) and leaf:
        leaf = leaf[0]
    if leaf.__class__ not in _dtype.PYTHON_TYPES:
        if hasattr(data, "untyped"):
            return _from_storage(data, d).copy()
        if leaf is not data and leaf.__class__ is np.ndarray:
            warn_once(
                "tensor of arrays",
                "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a single "
                "numpy.ndarray with numpy.array() before converting to a tensor.",
                stacklevel=4,
            )
        return _from_nested(data, d)
    try:
        array = np.array(data)
    except (ValueError, TypeError, OverflowError, RuntimeError):
        return _from_nested(data, d)
    kind = array.dtype.kind
    if kind not in "bifc":
        return _from_nested(data, d)
    if d is None:
        if kind == "i" or kind == "b":
            return array
        d = _dtype.default_complex() if kind == "c" else _dtype.get_default_dtype()
    elif d.category <= _dtype.INTEGER and d is not _dtype.bool_:
        check_range(array, d)
    if kind == "c" and not d.is_complex and d is not _dtype.bool_:
        raise TypeError("must be real number, not complex")
    with quiet():
        return array.astype(d.np, copy=False)


def numpy_dtype(given: Any) -> _dtype.dtype:
    """The dtype of a NumPy array, which must be in the machine's byte order."""
    if not given.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is currently "
            "not supported."
        )
    return _dtype.from_numpy_dtype(given)


def check_range(array: np.ndarray[Any, Any], d: _dtype.dtype) -> None:
    """Numbers that an integer dtype cannot hold are refused; unsigned types take negative numbers by wrapping."""
    info = np.iinfo(d.np)
    # torch: an unsigned type accepts what its signed wrap-around covers
    low = info.min if d.is_signed else -int(info.max) - 1
    if array.dtype.kind == "f":
        within = np.isfinite(array).all() and (np.trunc(array) >= low).all() and (np.trunc(array) <= info.max).all()
    else:
        within = d.itemsize == 8 or not array.size or (array.max() <= info.max and array.min() >= low)
    if not within:
        raise RuntimeError(f"value cannot be converted to type {d.name} without overflow")


def _from_nested(data: Any, d: _dtype.dtype | None) -> np.ndarray[Any, Any]:
    """The long way: sequences that hold tensors, arrays, or nothing at all, and the errors about the rest."""
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not _is_sequence(data) and not _is_number(data):
        if hasattr(data, "__array__") or hasattr(data, "__array_interface__") or hasattr(data, "__dlpack__"):
            return array_from(np.asarray(data), d, copy=True)
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    shape = _shape_of(data)
    leaves: list[Any] = []
    _collect(data, shape, 0, leaves)
    target = d or _leaf_dtype(leaves)
    out = np.empty(shape, target.np)
    flat = out.reshape(-1)
    for i, leaf in enumerate(leaves):
        flat[i] = _leaf_value(leaf, target)
    return out


def _is_sequence(x: object) -> bool:
    return not isinstance(x, str | bytes) and hasattr(x, "__len__") and hasattr(x, "__getitem__") and not isinstance(x, dict | set)


def _is_number(x: object) -> bool:
    return isinstance(x, bool | int | float | complex | np.generic)


def _length(x: Any) -> int | None:
    """The length of a sequence; None for what counts as one element."""
    if isinstance(x, np.ndarray | Tensor):
        return x.shape[0] if x.ndim else None
    return len(x) if _is_sequence(x) and not isinstance(x, np.generic) else None


def _shape_of(data: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while (n := _length(data)) is not None:
        if shape and isinstance(data, Tensor):  # torch: a tensor in a list is a number, if it is the first element there
            break
        shape.append(n)
        if n == 0:
            break
        data = data[0]
        if len(shape) > 128:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
    return tuple(shape)


def _collect(data: Any, shape: tuple[int, ...], dim: int, leaves: list[Any]) -> None:
    n = _length(data)
    if dim == len(shape):
        if isinstance(data, str | bytes):
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if n is not None and not isinstance(data, Tensor):
            raise _not_a_number(data, leaves)
        leaves.append(data)
        return
    if n is None:
        raise TypeError(f"not a sequence: {type(data).__name__}") if not _is_number(data) else TypeError("not a sequence")
    if n != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {n})")
    for x in data:
        _collect(x, shape, dim + 1, leaves)


def _not_a_number(data: object, leaves: list[Any]) -> Exception:
    """The complaint about a sequence among numbers."""
    if leaves and isinstance(leaves[0], Tensor) and leaves[0].numel() != 1:
        return ValueError("only one element tensors can be converted to Python scalars")
    if any(
        isinstance(leaf, float | complex) or (isinstance(leaf, Tensor) and leaf.dtype.category > _dtype.INTEGER) for leaf in leaves
    ):
        return TypeError(f"must be real number, not {type(data).__name__}")
    return TypeError(f"'{type(data).__name__}' object cannot be interpreted as an integer")


def _leaf_dtype(leaves: list[Any]) -> _dtype.dtype:
    found: _dtype.dtype | None = None
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            d = leaf.dtype
        elif isinstance(leaf, np.generic | np.ndarray):
            d = _dtype.from_numpy_dtype(leaf.dtype)
        elif isinstance(leaf, bool | int | float | complex):
            d = _dtype.of_scalar(leaf)
        elif isinstance(leaf, str):
            raise TypeError(f"new(): invalid data type '{type(leaf).__name__}'")
        elif hasattr(leaf, "__float__") or hasattr(leaf, "__index__"):
            d = _dtype.int64 if hasattr(leaf, "__index__") else _dtype.get_default_dtype()
        else:
            raise RuntimeError(f"Could not infer dtype of {type(leaf).__name__}")
        found = d if found is None else promote_types(found, d)
    return found or _dtype.get_default_dtype()


_NOT_AS_STORED = keys.PENDING | keys.META | keys.SPARSE_LAYOUTS  # tensors whose array does not hold their elements


def _leaf_value(leaf: Any, d: _dtype.dtype) -> Any:
    if isinstance(leaf, Tensor):
        if leaf.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        value = np.asarray(leaf.item()) if leaf._keys & _NOT_AS_STORED else leaf._array
        if leaf.dtype.is_complex and not d.is_complex and value.imag.any():
            raise RuntimeError(f"value cannot be converted to type {d.name} without overflow")
        return (value if d.is_complex or not leaf.dtype.is_complex else value.real).astype(d.np).reshape(())
    if isinstance(leaf, str) or leaf is None:
        raise TypeError(f"must be real number, not {type(leaf).__name__}")
    if d.category == _dtype.INTEGER and isinstance(leaf, int) and not isinstance(leaf, bool):
        if d is not _dtype.uint64 and not -(1 << 63) <= leaf < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
        return np.array(leaf & ((1 << d.itemsize * 8) - 1), f"u{d.itemsize}").view(d.np)
    return leaf


def as_tensor(data: Any, dtype: OptionalDType = None, device: OptionalDevice = None) -> Tensor:
    """The data as a tensor, without a copy where its dtype and device allow."""
    d = None if dtype is None else dtype_of(dtype)
    if isinstance(data, Tensor):
        where = data.device if device is None else device_of(device)
        if (d is None or d is data.dtype) and where == data.device:
            return data
        return data.to(dtype=d or data.dtype, device=where)
    if isinstance(data, np.ndarray) and (d is None or _dtype.FROM_NUMPY.get(data.dtype) is d):
        from ._interop import from_numpy  # cycle with _interop

        t = from_numpy(data)
    elif isinstance(d, _dtype.NarrowDtype):
        t = tensor(data, dtype=d)
    else:
        t = made_here(wrap_sized(array_from(data, d, copy=True)))
    return moved(t, device_of(device))


def asarray(
    obj: Any,
    *,
    dtype: OptionalDType = None,
    device: OptionalDevice = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """An object with elements (tensor, array, buffer, DLPack capsule, scalar, sequence) as a tensor, shared where possible."""
    from . import _interop  # cycle with _interop

    d = None if dtype is None else dtype_of(dtype)
    t: Tensor | None = None
    if isinstance(obj, Tensor):
        t = obj
    elif isinstance(obj, np.ndarray):
        t = _interop.from_numpy(obj)
    elif hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        t = _interop.from_dlpack(obj)
    elif isinstance(obj, bytes | bytearray | memoryview):
        t = _interop.frombuffer(obj, dtype=d or _dtype.get_default_dtype())
    if t is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence")
        t = wrap_sized(array_from(obj, d, copy=True))
        t = moved(t, device_of(device))
    else:
        where = t.device if device is None else device_of(device)
        changes = (d is not None and d is not t.dtype) or where != t.device
        if copy is False and changes:
            raise ValueError(f"can't alias tensor with dtype {t.dtype} on {t.device} as {d or t.dtype} on {where}")
        if copy or changes:
            t = t.to(dtype=d or t.dtype, device=where, copy=True)
        if t._keys & keys.AUTOGRAD and not requires_grad:
            if requires_grad is None:
                warnings.warn(
                    "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass "
                    "requires_grad=False explicitly to get the old behavior and silence this warning.",
                    UserWarning,
                    stacklevel=2,
                )
            else:
                t = t.detach()
    if requires_grad and not t._keys & keys.AUTOGRAD:
        if t is obj:
            t = t.detach()
        t.requires_grad = True
    return t


def refuse_pinned() -> None:
    raise RuntimeError(
        "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on this system."
    )


def legacy_tensor(cls: type, *args: Any, **kwargs: Any) -> Tensor:
    """`torch.Tensor(2, 3)`, `torch.Tensor([1, 2])`, `torch.Tensor(other)`."""
    from ._legacy import construct  # cycle with _legacy

    return construct(cls, *args, **kwargs)
