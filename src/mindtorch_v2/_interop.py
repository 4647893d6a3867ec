"""Sharing memory with others: NumPy, buffers, DLPack."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from . import _device, _dtype
from ._creation import made_here, numpy_dtype
from ._dispatch import keys
from ._dispatch.tls import state
from ._pending import resolved
from ._refusals import warn_once
from ._tensor import Tensor, set_array, wrap_sized
from ._types import Array, DType, OptionalDevice

__all__ = ["dlpack_device", "from_dlpack", "from_numpy", "frombuffer", "numpy_of", "to_capsule", "to_dlpack"]


def from_numpy(ndarray: Array, /) -> Tensor:
    """A tensor over a NumPy array's memory: writes to one show in the other."""
    if ndarray.__class__ is np.ndarray and not ndarray.flags.writeable:
        warn_once(
            "array that is not writable",
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to this tensor "
            "will raise an error. You may want to copy the array to protect its data or make it writable before converting it to a "
            "tensor. This type of warning will be suppressed for the rest of this program.",
        )
    return over_array(ndarray)


def over_array(ndarray: Array) -> Tensor:
    """`from_numpy` of an array that may not be writable."""
    if ndarray.__class__ is np.ndarray and ndarray.flags.c_contiguous and ndarray.dtype in _dtype.FROM_NUMPY:
        return made_here(_over(ndarray, _dtype.FROM_NUMPY[ndarray.dtype]))
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    array = ndarray.view(np.ndarray)
    found = numpy_dtype(array.dtype)
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently "
            "supported. (You can probably work around this by making a copy of your array  with array.copy().) "
        )
    if any(s % array.itemsize for s in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )
    return made_here(_over(array, found))


def _over(array: np.ndarray[Any, Any], d: _dtype.dtype) -> Tensor:
    """A tensor over an array's memory, with an array object of its own: a shape assigned to one is not the other's."""
    owner = array.base
    t = wrap_sized(owner if owner.__class__ is np.ndarray and owner.nbytes == array.nbytes else array, d)
    set_array(t, array.view())
    t._storage._owner = None  # the memory is NumPy's
    return t


def refuse_subclass(t: Tensor, call: str) -> None:
    """The elements of a tensor whose class overrides operators are what these say, and not what is in its memory."""
    if t._keys & keys.PYTHON and not state.dispatch_override_off:
        raise RuntimeError(
            f"{call} is not supported for tensor subclasses. Got a {type(t).__name__}; take the tensor that it stands for"
        )


def numpy_of(self: Tensor, *, force: bool = False) -> np.ndarray[Any, Any]:
    """The elements as a NumPy array over the same memory; `force` detaches and copies where that is not possible."""
    refuse_subclass(self, ".numpy()")
    if self._keys & keys.META:
        raise TypeError("can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
    if self._keys & keys.SPARSE_LAYOUTS:
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")
    if self._keys & keys.AUTOGRAD and not force and state.grad_enabled:  # torch: without grad mode, nothing is lost
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self._keys & keys.PENDING:
        if not force:
            bit, call = ("conjugate", "resolve_conj") if self._keys & keys.CONJUGATE else ("negative", "resolve_neg")
            raise RuntimeError(f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.{call}().numpy() instead.")
        self = resolved(self)
    if (self.dtype is _dtype.bfloat16 and not force) or self._keys & keys.NARROW:
        raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_name}")
    self._storage.is_fixed = True  # other memory would leave the array behind
    return self._array.view()


def frombuffer(buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A one-dim tensor over the memory of an object with the buffer protocol."""
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if view.readonly:
        warn_once(
            "a buffer that is not writable",
            "The given buffer is not writable. Writing to the tensor fails; copy the buffer to protect its data or make it writable "
            "before converting it to a tensor.",
        )
    size = view.nbytes
    if size == 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1")
    dtype = _dtype.as_dtype(dtype, "frombuffer")
    itemsize = dtype.itemsize
    if count < 0 and (size - offset) % itemsize:
        raise ValueError(
            f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({itemsize})"
        )
    if count > 0 and offset + count * itemsize > size:
        raise ValueError(
            f"requested buffer length ({count} * {itemsize} bytes) after offset ({offset} bytes) must not be greater than actual "
            f"buffer length ({size} bytes)"
        )
    t = wrap_sized(np.frombuffer(buffer, dtype.np, count, offset), dtype)
    t._storage._owner = None  # the memory is the buffer's
    if requires_grad:
        t.requires_grad = True
    return t


def from_dlpack(ext_tensor: Any, *, device: OptionalDevice = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of an object that speaks DLPack."""
    if device is not None and _device.device(device).type != "cpu":
        raise BufferError(
            f"from_dlpack: elements are shared where they are, in the host's memory, not on {device}; use .to(device)"
        )
    if not hasattr(ext_tensor, "__dlpack__"):
        ext_tensor = _Capsule(ext_tensor)
    array = np.from_dlpack(ext_tensor) if copy is None else np.from_dlpack(ext_tensor, copy=copy)
    return over_array(_writable(array) if isinstance(ext_tensor, _Capsule) and array.size else array)


def _writable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The memory of a capsule, which may be written to: its form cannot say that it must not, and NumPy assumes so."""
    reach = sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)) + array.itemsize
    memory: Any = (ctypes.c_char * reach).from_address(array.__array_interface__["data"][0])
    memory.owner = array
    return np.ndarray(array.shape, array.dtype, memory, strides=array.strides)


class _Capsule:
    """A bare DLPack capsule with the methods that NumPy asks for."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def to_capsule(
    self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> object:
    """A DLPack capsule over this tensor's memory."""
    if stream is not None:
        if type(stream) is not int:
            raise TypeError("stream must be ``int`` or ``none``")
        raise AssertionError("stream should be None on cpu.")
    if self._keys & keys.AUTOGRAD:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self._keys & keys.CONJUGATE:
        raise BufferError("Can't export tensors with the conjugate bit set")
    if self._keys & keys.NEGATIVE:
        raise BufferError("Can't export tensors with the negative bit set; use tensor.resolve_neg()")
    if self._keys & keys.META:
        raise BufferError("Can't export meta tensors: they have no elements")
    array = self._array
    if self.dtype is _dtype.bfloat16:
        raise BufferError("Can't export bfloat16 tensors through NumPy's DLPack; convert them with .float()")
    return array.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """DLPack's name for the CPU."""
    return (1, 0)


def to_dlpack(tensor: Tensor) -> object:
    """A DLPack capsule over a tensor's memory, to be used once."""
    return to_capsule(tensor)
