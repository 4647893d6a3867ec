"""torch.storage: the memory behind tensors, as bytes (`UntypedStorage`) or as elements of one dtype (`TypedStorage`)."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import _device, _dtype
from ._creation import array_from
from ._pickling import view_of_storage
from ._storage import UntypedStorage as _Bytes
from ._storage import identity, own
from ._storage_methods import attach, copied_buffer, mapped_file, new_storage, shown_elements, with_casts
from ._tensor import Tensor
from ._types import Number, OptionalDevice, OptionalDType

__all__ = ["STORAGE_CLASSES", "TypedStorage", "UntypedStorage", "legacy_class"]


# Bytes -------------------------------------------------------------------------------------------------------------------------


class _UntypedStorageType(type):
    """The type of `torch.UntypedStorage`: calling makes a storage.

    Storages are instances of the class that operators make, which takes no arguments: taking any would cost every operator.
    """

    def __call__(cls, *args: Any, device: OptionalDevice = None, allocator: Any = None) -> _Bytes:
        where = _device.device("cpu" if device is None else device)
        if len(args) > 1 or allocator is not None:
            given = ", ".join(type(a).__name__ for a in args)
            raise TypeError(
                f"torch.UntypedStorage() received an invalid combination of arguments - got ({given}), but expected one of:\n"
                " * (*, torch.device device)\n * (int size, *, torch.device device)\n * (Sequence data, *, torch.device device)"
            )
        if not args or isinstance(args[0], int | np.integer):
            return new_storage(int(args[0]) if args else 0, where)
        return new_storage(len(args[0]), where).copy_(_of_bytes(args[0])) if where.type == "meta" else _of_bytes(args[0])

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Bytes)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _Bytes)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is _Bytes

    def __hash__(cls) -> int:
        return hash(_Bytes)


class _Typing:
    """What a storage of bytes does with those of elements."""

    def type(self: Any, dtype: OptionalDType = None, non_blocking: bool = False) -> Any:
        """The name of the class, or a copy as another class of storages."""
        if dtype is None:
            return "torch.storage.UntypedStorage"
        wanted = legacy_class(dtype)
        return self if wanted is None else self._to(wanted.dtype)

    def _to(self: Any, dtype: _dtype.dtype) -> TypedStorage:
        return TypedStorage(wrap_storage=self, dtype=_dtype.uint8, _internal=True)._to(dtype)


attach(_Typing, _Bytes)


class UntypedStorage(_Bytes, metaclass=_UntypedStorageType):
    """Bytes, which tensors share: made of a size or of numbers, on the CPU unless another device is given."""

    __slots__ = ()


def _of_bytes(data: Any) -> _Bytes:
    if not isinstance(data, Sequence):
        raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {type(data).__name__}")
    for item in data:
        if not isinstance(item, int | np.integer):
            raise RuntimeError(
                f"torch.UntypedStorage(): tried to construct a storage from a sequence ({type(data).__name__}), but one of the "
                f"items was of type {type(item).__name__} instead of int"
            )
    return own(np.array([int(item) & 0xFF for item in data], np.uint8))


# Elements ----------------------------------------------------------------------------------------------------------------------

_warned = _warn_always = False


def _get_always_warn_typed_storage_removal() -> bool:
    return _warn_always


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    global _warn_always
    if not isinstance(always_warn, bool):
        raise AssertionError(f"always_warn must be bool, got {type(always_warn).__name__}")
    _warn_always = always_warn


def _reset_warn_typed_storage_removal() -> None:
    global _warned
    _warned = False


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """torch's warning: once in a process."""
    global _warned
    if _warned and not _warn_always:
        return
    _warned = True
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This "
        "should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
        "tensor.untyped_storage() instead of tensor.storage()",
        UserWarning,
        stacklevel=stacklevel + 1,
    )


def _deprecated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def warning(*args: Any, **kwargs: Any) -> Any:
        _warn_typed_storage_removal()
        return function(*args, **kwargs)

    return warning


_FORMS = (
    "TypedStorage.__init__ received an invalid combination of arguments. Expected one of:\n"
    " * (*, torch.device device, torch.dtype dtype)\n"
    " * (int size, *, torch.device device, torch.dtype dtype)\n"
    " * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
    " * (*, UntypedStorage wrap_storage, torch.dtype dtype)\n"
)


class TypedStorage:
    """A storage seen as a flat sequence of one dtype. Names that begin with `_` do not warn, as in torch."""

    is_sparse = is_cuda = is_hpu = False
    dtype: _dtype.dtype

    def __init__(
        self,
        *args: Any,
        device: OptionalDevice = None,
        dtype: Any = None,
        wrap_storage: Any = None,
        _internal: bool = False,
    ) -> None:
        if not _internal:
            _warn_typed_storage_removal()
        if wrap_storage is not None:
            _check_wrapped(args, device, dtype, wrap_storage)
            self.dtype, self._untyped_storage = dtype, wrap_storage
            return
        self.dtype = _dtype.get_default_dtype() if dtype is None else dtype
        if not isinstance(self.dtype, _dtype.dtype):
            raise RuntimeError(f"expected torch.dtype, but got {dtype}")
        where = _device.device("cpu" if device is None else device)
        self._untyped_storage = _of_elements(args, self.dtype, where)

    @property
    def device(self) -> _device.device:
        return self._untyped_storage.device

    @property
    def filename(self) -> str | None:
        """The file that this memory is a part of, when writes go to it."""
        return self._untyped_storage.filename

    @property
    def _cdata(self) -> int:
        return identity(self._untyped_storage)

    @property
    def _dtype(self) -> _dtype.dtype:
        return self.dtype

    def _elements(self) -> np.ndarray[Any, Any]:
        if self.device is _device.meta:
            raise NotImplementedError("Not available for 'meta' device type")
        memory = self._untyped_storage.bytes()
        return memory[: self._size() * self.dtype.itemsize].view(self.dtype.np)

    def _size(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def _nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def _element_size(self) -> int:
        return self.dtype.itemsize

    def _data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def _is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def _share_memory_(self) -> TypedStorage:
        self._untyped_storage.share_memory_()
        return self

    def _resize_(self, size: int) -> None:
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def _wrapped(self, storage: _Bytes) -> TypedStorage:
        return TypedStorage(wrap_storage=storage, dtype=self.dtype, _internal=True)

    def _pickle_storage_type(self) -> str:
        found = LEGACY_NAMES.get(self.dtype)
        if found is None:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return found

    def _getitem(self, index: int | slice) -> Number:
        elements = self._elements()
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if not -len(elements) <= index < len(elements):
            raise IndexError(f"index {index} out of range for storage of size {len(elements)}")
        return _tensor_over(self)[index].item()

    def _setitem(self, index: int | slice, value: Any) -> None:
        if not isinstance(index, int | slice):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if isinstance(value, _Bytes | TypedStorage):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        _tensor_over(self)[index] = value

    def _to(self, dtype: OptionalDType) -> TypedStorage:
        if not isinstance(dtype, _dtype.dtype):
            raise TypeError(f"Argument 'dtype' must be torch.dtype, not {type(dtype)}")
        return typed_over(_tensor_over(self).to(dtype, copy=True))

    @classmethod
    def _from_buffer(
        cls,
        buffer: bytes | bytearray | memoryview,
        byte_order: str | None = None,
        count: int = -1,
        offset: int = 0,
        dtype: OptionalDType = None,
        device: OptionalDevice = None,
    ) -> TypedStorage:
        if device is not None and _device.device(device).type != "cpu":
            raise RuntimeError(f"TypedStorage.from_buffer: Not available for device {_device.device(device).type}")
        dtype = _dtype.get_default_dtype() if dtype is None else dtype
        return TypedStorage(wrap_storage=copied_buffer(buffer, dtype, byte_order, count, offset), dtype=dtype, _internal=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_typed, (self._untyped_storage, self.dtype))

    # --- by the names that warn -------------------------------------------------------------------------------------

    def untyped(self) -> _Bytes:
        """The same memory as bytes."""
        return self._untyped_storage

    def size(self) -> int:
        """The number of elements."""
        return self._size()

    def __len__(self) -> int:
        return self._size()

    def nbytes(self) -> int:
        return self._nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def get_device(self) -> Any:
        """The number of the device, which the CPU does not have."""
        return self.device.index

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._data_ptr()

    def tolist(self) -> list[Any]:
        return [] if not self._size() else _tensor_over(self).tolist()

    def __getitem__(self, index: int | slice) -> Number:
        return self._getitem(index)

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._setitem(index, value)

    def __iter__(self) -> Iterator[Any]:
        return iter(TypedStorage.tolist(self))

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self._setitem(slice(0, self._size()), value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Take the bytes of another storage of the same number of bytes."""
        self._untyped_storage.copy_(source, non_blocking)
        return self

    def clone(self) -> TypedStorage:
        """A copy with memory of its own."""
        return self._wrapped(self._untyped_storage.clone())

    def __copy__(self) -> TypedStorage:
        return self._wrapped(copy.copy(self._untyped_storage))

    def __deepcopy__(self, memo: dict[Any, Any]) -> TypedStorage:
        return self._wrapped(copy.deepcopy(self._untyped_storage, memo))

    def cpu(self) -> TypedStorage:
        """The same memory: it is on the CPU."""
        return self._wrapped(self._untyped_storage.cpu())

    def cuda(self, device: OptionalDevice = None, non_blocking: bool = False) -> TypedStorage:
        """Refused: there is no CUDA."""
        return self._wrapped(self._untyped_storage.cuda(device))

    def to(self, *, device: OptionalDevice, non_blocking: bool = False) -> TypedStorage:
        """The same memory, or as much on another device."""
        return self._wrapped(self._untyped_storage.to(device=device))

    def type(self, dtype: OptionalDType = None, non_blocking: bool = False) -> Any:
        """The name of the legacy class, or a copy as another class of storages."""
        if dtype is not None:
            wanted = legacy_class(dtype)
            return self._untyped_storage if wanted is None else self._to(wanted.dtype)
        name = LEGACY_NAMES.get(self.dtype)
        return f"torch.{name}" if name and self.device.type == "cpu" else "torch.storage.TypedStorage"

    def resizable(self) -> bool:
        """Whether `resize_` may give this storage other memory."""
        return self._untyped_storage.resizable()

    def resize_(self, size: int) -> None:
        """Make the memory longer or shorter, with what it holds."""
        self._resize_(size)

    def is_pinned(self, device: OptionalDevice = None) -> bool:
        """Whether the memory is pinned for another device: never."""
        return False

    def pin_memory(self, device: OptionalDevice = None) -> TypedStorage:
        """Refused: there is no device to pin memory for."""
        return self._wrapped(self._untyped_storage.pin_memory(device))

    def is_shared(self) -> bool:
        """Whether the memory is shared between processes."""
        return self._is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move to memory that processes share, with all tensors on it."""
        return self._share_memory_()

    def pickle_storage_type(self) -> str:
        """The name under which checkpoints know this kind of storage."""
        return self._pickle_storage_type()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._nbytes()

    def __repr__(self) -> str:
        shown = shown_elements(self)
        return f"{shown}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self._size()}]"


with_casts(TypedStorage)

_WARNING = (
    "__copy__ __deepcopy__ __getitem__ __iter__ __len__ __repr__ __setitem__ bfloat16 bool byte char clone complex_double "
    "complex_float copy_ cpu cuda data_ptr double element_size fill_ float get_device half int is_pinned is_shared long nbytes "
    "pickle_storage_type pin_memory resizable resize_ share_memory_ short size to tolist type untyped"
)
for _name in _WARNING.split():
    setattr(TypedStorage, _name, _deprecated(vars(TypedStorage)[_name]))


def _from_buffer(cls: Any, *args: Any, **kwargs: Any) -> TypedStorage:
    """A copy of numbers in an object with the buffer protocol."""
    _warn_typed_storage_removal()
    return cls._from_buffer(*args, **kwargs)


def _from_file(cls: Any, filename: str, shared: bool, size: int) -> TypedStorage:
    """The elements in a file, mapped. With `shared`, writes go to the file."""
    _warn_typed_storage_removal()
    if cls is TypedStorage:
        raise RuntimeError("from_file can only be called on derived classes")
    memory = mapped_file(filename, shared=shared, size_bytes=size * cls.dtype.itemsize)
    return TypedStorage(wrap_storage=memory, dtype=cls.dtype, _internal=True)


TypedStorage.from_buffer = classmethod(_from_buffer)  # type: ignore[attr-defined]
TypedStorage.from_file = classmethod(_from_file)  # type: ignore[attr-defined]


def _check_wrapped(args: tuple[Any, ...], device: OptionalDevice, dtype: OptionalDType, wrap_storage: Any) -> None:
    if args:
        raise RuntimeError(f"{_FORMS}No positional arguments should be given when using 'wrap_storage'")
    if dtype is None:
        raise RuntimeError(f"{_FORMS}Argument 'dtype' must be specified")
    if not isinstance(dtype, _dtype.dtype):
        raise TypeError(f"{_FORMS}Argument 'dtype' must be torch.dtype, not {type(dtype)}")
    if device is not None:
        raise RuntimeError(f"{_FORMS}Argument 'device' should not be specified when 'wrap_storage' is given")
    if not isinstance(wrap_storage, _Bytes):
        raise TypeError(f"{_FORMS}Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")


def _of_elements(args: tuple[Any, ...], dtype: _dtype.dtype, device: _device.device) -> _Bytes:
    """A storage for a number of elements, or for given ones."""
    if len(args) > 1:
        raise RuntimeError(f"{_FORMS}Too many positional arguments")
    if not args or isinstance(args[0], int | np.integer):
        return new_storage(int(args[0]) * dtype.itemsize if args else 0, device)
    if not isinstance(args[0], Sequence):
        raise TypeError(f"{_FORMS}Argument type not recognized: {type(args[0])}")
    if device.type != "cpu":
        return new_storage(len(args[0]) * dtype.itemsize, device)
    return own(array_from(list(args[0]), dtype, copy=True).reshape(-1))


def _typed(storage: _Bytes, dtype: _dtype.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def typed_over(t: Tensor) -> TypedStorage:
    """The storage of a tensor, seen as its dtype."""
    return TypedStorage(wrap_storage=t._storage, dtype=t.dtype, _internal=True)


def _tensor_over(storage: TypedStorage) -> Tensor:
    """A tensor over all elements of a storage."""
    return view_of_storage(storage._untyped_storage, storage.dtype, 0, (storage._size(),), (1,))


def typed_storage_of(t: Tensor) -> TypedStorage:
    """`Tensor.storage()`, with torch's warning."""
    _warn_typed_storage_removal(stacklevel=3)
    return typed_over(t)


# The legacy classes ------------------------------------------------------------------------------------------------------------


class _LegacyStorageMeta(type):
    """The type of `torch.FloatStorage` and its siblings: calling makes a `TypedStorage`, `isinstance` asks for the dtype."""

    dtype: _dtype.dtype
    device_type: str

    def __call__(cls, *args: Any, wrap_storage: Any = None, **named: Any) -> TypedStorage:
        _warn_typed_storage_removal()
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        forms = (
            f"{cls}.__new__ received an invalid combination of arguments. Expected one of:\n"
            " * no arguments\n * (int size)\n * (Sequence data)\n * (*, UntypedStorage wrap_storage)\n"
        )
        for name in ("device", "dtype"):
            if named.get(name) is not None:
                raise RuntimeError(f"{forms}Keyword argument '{name}' cannot be specified")
        if wrap_storage is None:
            if len(args) > 1:
                raise RuntimeError(f"{forms}Too many positional arguments")
            if args and not isinstance(args[0], int | np.integer | Sequence):
                raise TypeError(f"{forms}Argument type not recognized: {type(args[0])}")
            return TypedStorage(*args, dtype=cls.dtype, device=cls.device_type, _internal=True)
        if args:
            raise RuntimeError(f"{forms}No positional arguments should be given when using 'wrap_storage'")
        if not isinstance(wrap_storage, _Bytes):
            raise TypeError(f"{forms}Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
        if wrap_storage.device.type != cls.device_type:
            raise RuntimeError(f"{forms}Device of 'wrap_storage' must be {cls.device_type}, but got {wrap_storage.device.type}")
        return TypedStorage(wrap_storage=wrap_storage, dtype=cls.dtype, _internal=True)

    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is TypedStorage and instance.dtype is cls.dtype and instance.device.type == cls.device_type


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """The base of `torch.FloatStorage` and its siblings, which has no instances."""

    @classmethod
    def _new_shared(cls, size: int) -> TypedStorage:
        memory = _Bytes._new_shared(size * cls.dtype.itemsize)
        return TypedStorage(wrap_storage=memory, dtype=cls.dtype, _internal=True)

    @classmethod
    def _from_buffer(
        cls,
        buffer: bytes | bytearray | memoryview,
        byte_order: str | None = None,
        count: int = -1,
        offset: int = 0,
        dtype: OptionalDType = None,
        device: OptionalDevice = None,
    ) -> TypedStorage:
        if cls.device_type != "cpu":
            raise RuntimeError(f"from_buffer: Not available for {cls.device_type.upper()} storage")
        for name, value in (("dtype", dtype), ("device", device)):
            if value is not None:
                raise RuntimeError(
                    f"from_buffer: '{name}' can only be specified in UntypedStorage.from_buffer and TypedStorage.from_buffer"
                )
        return TypedStorage._from_buffer(buffer, byte_order, count, offset, cls.dtype)


# Dtypes that came later are saved as bytes, with the dtype beside them.
LEGACY_NAMES = {
    d: f"{d.scalar_name}Storage"
    for d in (
        _dtype.float64, _dtype.float32, _dtype.float16, _dtype.int64, _dtype.int32, _dtype.int16, _dtype.int8, _dtype.uint8,
        _dtype.bool_, _dtype.bfloat16, _dtype.complex128, _dtype.complex64,
    )
}  # fmt: skip


def legacy_classes(module: str, where: str, device_type: str) -> dict[str, Any]:
    """`FloatStorage` and its siblings of a device."""
    return {
        name: _LegacyStorageMeta(
            name,
            (_LegacyStorage,),
            {
                "dtype": d,
                "device_type": device_type,
                "__module__": module,
                "__doc__": f"Storages on {where} with elements of {d}.",
            },
        )
        for d, name in LEGACY_NAMES.items()
    }


STORAGE_CLASSES = legacy_classes("torch", "the CPU", "cpu")


def _dtype_to_storage_type_map() -> dict[_dtype.dtype, str]:
    """The names of the classes of typed storages, by dtype."""
    return dict(LEGACY_NAMES)


def legacy_class(kind: Any) -> Any:
    """The legacy class that a class, or its name, stands for; None for the untyped one."""
    if kind == UntypedStorage or kind in ("torch.UntypedStorage", "torch.storage.UntypedStorage"):
        return None
    found = STORAGE_CLASSES.get(kind.removeprefix("torch.")) if isinstance(kind, str) else kind
    if not isinstance(found, _LegacyStorageMeta):
        raise RuntimeError(f"{kind!r} is no class of storages")
    return found


def _load_from_bytes(content: bytes) -> Any:
    """The storage in a plain pickle that PyTorch wrote, which calls this by name."""
    from ._checkpoints.legacy import storage_from_bytes  # cycle with _checkpoints.legacy

    return storage_from_bytes(content)
