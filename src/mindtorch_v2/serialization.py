"""torch.save and torch.load: checkpoints in torch's own zip format, readable by either side.

An archive holds `data.pkl`, a pickle in which tensors name their storages, and one file `data/<key>` for each storage. Names in
the pickle are torch's; here they are translated to this package's, and nothing outside of a list is ever imported.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import pickle
import struct
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np

from . import _device, _dtype
from ._checkpoint_file import CheckpointError, CheckpointFile, StorageType
from ._creation import device_of
from ._dispatch import keys
from ._memory_format import layout
from ._random import Generator
from ._rebuild import NAMES, STORAGE_TYPES, UNTYPED
from ._storage import UntypedStorage, own
from ._tensor import Size, Tensor, shallow_copy
from ._weights_only import UserError, WeightsOnlyUnpickler, passing_through
from .storage import TypedStorage

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "register_package", "safe_globals", "save"]

DEFAULT_PROTOCOL = 2
_PACKAGE = __name__.partition(".")[0]
_ALIGNMENT = 64  # torch maps storages from the file, which must start at multiples of this


# --- names: this package's objects under torch's names --------------------------------------------------------------


class _TorchName:
    """A function that pickles call by torch's name for it."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.module}.{self.name} is written to checkpoints, not called")


_REBUILD_TENSOR = _TorchName("torch._utils", "_rebuild_tensor_v2")
_REBUILD_TENSOR_V3 = _TorchName("torch._utils", "_rebuild_tensor_v3")
_WITHOUT_STORAGE_TYPE = (_dtype.uint16, _dtype.uint32, _dtype.uint64)  # in torch
_REBUILD_META = _TorchName("torch._utils", "_rebuild_meta_tensor_no_storage")
_REBUILD_PARAMETER = _TorchName("torch._utils", "_rebuild_parameter")
_REBUILD_PARAMETER_WITH_STATE = _TorchName("torch._utils", "_rebuild_parameter_with_state")
_REBUILD_SPARSE = _TorchName("torch._utils", "_rebuild_sparse_tensor")
_GET_LAYOUT = _TorchName("torch.serialization", "_get_layout")
_REBUILD_SUBCLASS = _TorchName("torch._tensor", "_rebuild_from_type_v2")


def _torch_module(module: str) -> str:
    return "torch" + module[len(_PACKAGE) :] if module == _PACKAGE or module.startswith(_PACKAGE + ".") else module


_PUBLIC_MODULES: dict[Any, str] = {Size: "torch", _device.device: "torch", Tensor: "torch", Generator: "torch._C"}


# --- saving ---------------------------------------------------------------------------------------------------------


_PythonPickler: Any = pickle._Pickler


class _Pickler(_PythonPickler):  # type: ignore[misc]
    """Writes tensors as references to storages, and names as torch's. In Python, because C's pickler checks names by import."""

    def __init__(self, file: BinaryIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: list[UntypedStorage] = []
        self._keys: dict[Any, str] = {}

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _StorageReference):
            key = self._key(obj.storage)
            return (
                "storage",
                STORAGE_TYPES[f"{obj.dtype.scalar_name}Storage"],
                key,
                "cpu",
                obj.storage.nbytes() // obj.dtype.itemsize,
            )
        if isinstance(obj, TypedStorage):
            return ("storage", STORAGE_TYPES[obj.pickle_storage_type()], self._key(obj.untyped()), "cpu", obj.size())
        if isinstance(obj, UntypedStorage):
            return ("storage", UNTYPED, self._key(obj), "cpu", obj.nbytes())
        return None

    def _key(self, storage: UntypedStorage) -> str:
        # by address: `data` gives a tensor's memory a second storage object
        identity = (storage.data_ptr(), storage.nbytes()) if storage.nbytes() else id(storage)
        key = self._keys.get(identity)
        if key is None:
            key = self._keys[identity] = str(len(self.storages))
            self.storages.append(storage)
        return key

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            return _reduced(obj)
        if isinstance(obj, _dtype.dtype):
            return f"torch.{obj.name}"
        if isinstance(obj, layout):
            return (_GET_LAYOUT, (repr(obj),))
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> Any:
        if isinstance(obj, _dtype.dtype):
            module, name = "torch", obj.name
        elif isinstance(obj, _TorchName):
            module, name = obj.module, obj.name
        elif isinstance(obj, StorageType):
            module, name = ("torch.storage" if obj is UNTYPED else "torch"), obj.name
        elif isinstance(obj, type | type(_torch_module)):
            module = _PUBLIC_MODULES.get(obj) or _torch_module(obj.__module__)
            if module == obj.__module__:
                return super().save_global(obj, name)
            name = name or obj.__qualname__
        else:
            return super().save_global(obj, name)
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)
        return None

    def save(self, obj: Any, save_persistent_id: bool = True) -> Any:
        if isinstance(obj, StorageType | _TorchName) and id(obj) not in self.memo:
            return self.save_global(obj)
        return super().save(obj, save_persistent_id)


class _StorageReference:
    """A storage seen through a dtype, on its way into a pickle."""

    def __init__(self, storage: UntypedStorage, dtype: _dtype.dtype) -> None:
        self.storage, self.dtype = storage, dtype


def _reduced(t: Tensor) -> tuple[Any, ...]:
    """The call that makes this tensor again, by torch's names."""
    needs_grad = t._keys & keys.AUTOGRAD != 0
    strides = tuple(t.stride())
    if t._keys & keys.META:
        return (_REBUILD_META, (t.dtype, tuple(t.shape), strides, needs_grad))
    if t._keys & keys.SPARSE:
        parts = (t._indices(), t._values(), t.shape, t.is_coalesced())
        return (_REBUILD_SPARSE, (t.layout, parts))
    if type(t).__name__ == "Parameter":
        plain = shallow_copy(t)
        if t.__dict__:
            return (_REBUILD_PARAMETER_WITH_STATE, (plain, needs_grad, OrderedDict(), dict(t.__dict__)))
        return (_REBUILD_PARAMETER, (plain, needs_grad, OrderedDict()))
    args: tuple[Any, ...]
    geometry: tuple[Any, ...] = (t.storage_offset(), tuple(t.shape), strides, needs_grad and t._node is None, OrderedDict())
    if t.dtype in _WITHOUT_STORAGE_TYPE:
        rebuild, args = _REBUILD_TENSOR_V3, (t._storage, *geometry, t.dtype)
    else:
        rebuild, args = _REBUILD_TENSOR, (_StorageReference(t._storage, t.dtype), *geometry)
    if type(t) is Tensor and not t.__dict__:
        return (rebuild, args)
    return (_REBUILD_SUBCLASS, (rebuild, type(t), args, dict(t.__dict__)))


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object with its tensors to a file, by name or open for writing bytes."""
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("torch.save writes the zip format only; _use_new_zipfile_serialization=False is not supported")
    if pickle_module is not pickle:
        raise NotImplementedError("torch.save translates names itself and takes no other pickle_module")
    stream = io.BytesIO()
    pickler = _Pickler(stream, pickle_protocol)
    pickler.dump(obj)
    name = os.path.splitext(os.path.basename(os.fspath(f)))[0] if isinstance(f, str | os.PathLike) else "archive"
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(f, "wb")) if isinstance(f, str | os.PathLike) else f
        _write_archive(file, name or "archive", stream.getvalue(), pickler.storages, byteorder=not _disable_byteorder_record)


def _write_archive(file: Any, name: str, pickled: bytes, storages: list[UntypedStorage], *, byteorder: bool) -> None:
    out: Any = _Counted(file)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        _write_record(archive, out, f"{name}/data.pkl", pickled)
        _write_record(archive, out, f"{name}/.format_version", b"1")
        _write_record(archive, out, f"{name}/.storage_alignment", str(_ALIGNMENT).encode())
        if byteorder:
            _write_record(archive, out, f"{name}/byteorder", sys.byteorder.encode())
        for key, storage in enumerate(storages):
            _write_record(archive, out, f"{name}/data/{key}", storage.bytes().data)
        _write_record(archive, out, f"{name}/version", b"3\n")


class _Counted:
    """A file that knows how far it has been written, for streams that cannot tell."""

    def __init__(self, file: Any) -> None:
        self.file, self.position = file, 0

    def write(self, data: Any) -> int:
        self.file.write(data)
        self.position += len(data)
        return len(data)

    def tell(self) -> int:
        return self.position

    def flush(self) -> None:
        if hasattr(self.file, "flush"):
            self.file.flush()


def _write_record(archive: zipfile.ZipFile, out: Any, name: str, data: Any) -> None:
    """Add a file whose bytes start at a multiple of the alignment, by padding in its header as torch does."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    start = out.position + 30 + len(name.encode()) + 4  # the local header, the name, the padding's own header
    padding = -start % _ALIGNMENT
    info.extra = struct.pack("<HH", 0x4246, padding) + b"Z" * padding
    archive.writestr(info, bytes(data))


# --- loading --------------------------------------------------------------------------------------------------------

_safe: dict[str, Any] = {}  # by name, as they were given


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow these classes and functions in checkpoints that are loaded with `weights_only=True`.

    A pair of one and a text allows it under that name.
    """
    for item in safe_globals:
        _safe[_name_of(item)] = item


def _name_of(item: Any) -> str:
    if not isinstance(item, tuple):
        return f"{_torch_module(item.__module__)}.{item.__qualname__}"
    if len(item) != 2:
        raise ValueError(f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(item)}")
    if not isinstance(item[1], str):
        raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(item[1])}")
    return item[1]


def get_safe_globals() -> list[Any]:
    """Return what was added with `add_safe_globals`."""
    return list(_safe.values())


def clear_safe_globals() -> None:
    """Forget what was added with `add_safe_globals`."""
    _safe.clear()


@contextlib.contextmanager
def safe_globals(allowed: list[Any]) -> Iterator[None]:
    """Allow more classes and functions for the duration of a `with` block."""
    before = dict(_safe)
    add_safe_globals(allowed)
    try:
        yield
    finally:
        _safe.clear()
        _safe.update(before)


def register_package(priority: int, tagger: Any, deserializer: Any) -> None:
    """Refused: devices other than this package's own cannot be taught to it."""
    raise NotImplementedError("register_package: checkpoints are loaded to 'cpu', 'meta' and 'npu'; use map_location")


class _Unpickler(pickle.Unpickler):
    """Finds torch's names here, and imports any other: for files whose source is trusted."""

    def __init__(self, file: Any, typed_storage: Callable[[Any], Any], *, encoding: str) -> None:
        super().__init__(file, encoding=encoding)
        self._typed_storage = typed_storage

    def persistent_load(self, pid: Any) -> Any:
        return self._typed_storage(pid)

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in NAMES:
            return NAMES[full]
        if full == "torch._C.Generator":
            return Generator
        if module == "torch" or module.startswith("torch."):
            found: Any = importlib.import_module(_PACKAGE + module[len("torch") :])
            for part in name.split("."):
                found = getattr(found, part)
            return found
        return super().find_class(module, name)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save` or torch wrote. By default only data is accepted: tensors, numbers, strings, containers.

    A file that is damaged, or is no checkpoint, is a RuntimeError, a `pickle.UnpicklingError` or an EOFError that names it. With
    `weights_only=False` its pickle may import and call anything, and raise anything.
    """
    restricted = pickle_module is None if weights_only is None else weights_only
    if pickle_module is not None and restricted:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    encoding = pickle_load_args.pop("encoding", "utf-8")
    if pickle_load_args:
        raise TypeError(f"load() got an unexpected keyword argument '{next(iter(pickle_load_args))}'")
    is_path = isinstance(f, str | os.PathLike)
    if mmap and not is_path:
        raise ValueError("f must be a file path in order to use the mmap argument")
    locate = _locator(map_location)
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(f, "rb")) if is_path else f
        stack.enter_context(_naming(os.fspath(f) if is_path else f"the checkpoint ({type(f).__name__})", restricted=restricted))
        checkpoint = CheckpointFile(file, locate, mapped_path=os.fspath(f) if mmap else None)
        pickled = checkpoint.pickled()
        if not restricted:
            return _Unpickler(io.BytesIO(pickled), checkpoint.typed_storage, encoding=encoding).load()
        allowed = {name: item[0] if isinstance(item, tuple) else item for name, item in _safe.items()}
        return WeightsOnlyUnpickler(
            pickled, checkpoint.typed_storage, allowed=allowed, encoding=encoding, file_bytes=checkpoint.size_bytes
        ).load()


@contextlib.contextmanager
def _naming(name: str, *, restricted: bool) -> Iterator[None]:
    """Errors of the file name it; those of the user's own code come through as they are."""
    try:
        yield
    except UserError as wrapped:
        raise wrapped.error from wrapped.error.__cause__
    except pickle.UnpicklingError as error:
        reason = "Weights only load failed for " if restricted else ""
        raise pickle.UnpicklingError(f"{reason}{name}: {error}") from error.__cause__
    except EOFError as error:
        raise EOFError(f"{name}: {error}") from error.__cause__
    except RuntimeError as error:
        if not restricted and not isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{name}: {error}") from error.__cause__


def _locator(map_location: Any) -> Callable[[str], _device.device]:
    """From the location that a checkpoint names to the device its storages are put on."""
    if map_location is None:
        return functools.cache(_usable)
    if isinstance(map_location, str | _device.device):
        return functools.cache(lambda location: _chosen(map_location))
    if isinstance(map_location, dict):
        return lambda location: _chosen(map_location[location]) if location in map_location else _usable(location)
    if callable(map_location):
        # torch: the function gets the storage and its location, and may return a storage or nothing to leave it there
        def called(location: str) -> _device.device:
            with passing_through():
                answer = map_location(own(np.empty(0, np.uint8)), location)
            if answer is None:
                return _usable(location)
            return _chosen(answer.device if isinstance(answer, UntypedStorage | TypedStorage) else answer)

        return called
    raise TypeError(f"map_location must be a device, a string, a dict or a function, not {type(map_location).__name__}")


def _usable(location: Any) -> _device.device:
    return device_of(location)


def _chosen(location: Any) -> _device.device:
    """The device that the user, not the file, asked for."""
    with passing_through():
        return _usable(location)
