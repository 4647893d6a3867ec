"""torch.save and torch.load: checkpoints in torch's own zip format, readable by either side.

An archive holds `data.pkl`, a pickle in which tensors name their storages, and one file `data/<key>` for each storage. Names in
the pickle are torch's; here they are translated to this package's, and nothing outside of a list is ever imported.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pickle
import struct
import sys
import zipfile
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np

from . import _device, _dtype, _pickling
from ._dispatch import keys
from ._memory_format import LAYOUTS
from ._random import Generator
from ._storage import UntypedStorage, own
from ._tensor import Size, Tensor
from .storage import TypedStorage

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "register_package", "safe_globals", "save"]

DEFAULT_PROTOCOL = 2
_PACKAGE = __name__.partition(".")[0]
_ALIGNMENT = 64  # torch maps storages from the file, which must start at multiples of this
_STORAGE_DTYPES = {f"{d.scalar_name}Storage": d for d in _dtype.ALL}


class _StorageType:
    """What stands for `torch.FloatStorage` in a pickle."""

    def __init__(self, name: str, dtype: _dtype.dtype) -> None:
        self.name, self.dtype = name, dtype


_STORAGE_TYPES = {name: _StorageType(name, d) for name, d in _STORAGE_DTYPES.items()}
_UNTYPED = _StorageType("UntypedStorage", _dtype.uint8)


# --- names: this package's objects under torch's names --------------------------------------------------------------


class _TorchName:
    """A function that pickles call by torch's name for it."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.module}.{self.name} is written to checkpoints, not called")


_REBUILD_TENSOR = _TorchName("torch._utils", "_rebuild_tensor_v2")
_REBUILD_META = _TorchName("torch._utils", "_rebuild_meta_tensor_no_storage")
_REBUILD_PARAMETER = _TorchName("torch._utils", "_rebuild_parameter")
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
                _STORAGE_TYPES[f"{obj.dtype.scalar_name}Storage"],
                key,
                "cpu",
                obj.storage.nbytes() // obj.dtype.itemsize,
            )
        if isinstance(obj, TypedStorage):
            return ("storage", _STORAGE_TYPES[obj.pickle_storage_type()], self._key(obj.untyped()), "cpu", obj.size())
        if isinstance(obj, UntypedStorage):
            return ("storage", _UNTYPED, self._key(obj), "cpu", obj.nbytes())
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
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> Any:
        if isinstance(obj, _dtype.dtype):
            module, name = "torch", obj.name
        elif isinstance(obj, _TorchName):
            module, name = obj.module, obj.name
        elif isinstance(obj, _StorageType):
            module, name = ("torch.storage" if obj is _UNTYPED else "torch"), obj.name
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
        if isinstance(obj, _StorageType | _TorchName) and id(obj) not in self.memo:
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
    if type(t).__name__ == "Parameter":
        from ._tensor import shallow_copy

        plain = shallow_copy(t)
        return (_REBUILD_PARAMETER, (plain, needs_grad, OrderedDict()))
    base: tuple[Any, ...] = (
        _StorageReference(t._storage, t.dtype), t.storage_offset(), tuple(t.shape), strides, needs_grad and t._node is None, OrderedDict(),
    )  # fmt: skip
    if type(t) is Tensor:
        return (_REBUILD_TENSOR, base)
    return (_REBUILD_SUBCLASS, (_REBUILD_TENSOR, type(t), base, dict(t.__dict__)))


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

_safe: dict[str, Any] = {}


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow these classes and functions in checkpoints that are loaded with `weights_only=True`."""
    for item in safe_globals:
        function, name = item if isinstance(item, tuple) else (item, f"{_torch_module(item.__module__)}.{item.__qualname__}")
        _safe[name] = function


def get_safe_globals() -> list[Any]:
    """What was added with `add_safe_globals`."""
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


def _rebuild_tensor(
    storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool = False, hooks: Any = None, metadata: Any = None
) -> Tensor:
    t = _pickling.view_of_storage(storage.storage, storage.dtype, offset, size, stride)
    if requires_grad:
        t._keys |= keys.AUTOGRAD
    return t


def _rebuild_meta(dtype: _dtype.dtype, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    from ._backends.meta.adapter import meta_tensor

    t = meta_tensor(tuple(size), dtype, tuple(s * dtype.itemsize for s in stride))
    if requires_grad:
        t._keys |= keys.AUTOGRAD
    return t


def _rebuild_parameter(data: Tensor, requires_grad: bool, hooks: Any, state: Any = None) -> Tensor:
    from .nn import Parameter

    parameter: Tensor = Parameter(data, requires_grad)
    if state:
        parameter.__dict__.update(state[0] if isinstance(state, tuple) else state)
    return parameter


def _rebuild_subclass(function: Callable[..., Tensor], cls: Any, args: Any, state: Any) -> Tensor:
    t = function(*args)
    if cls is not Tensor and type(t) is not cls:
        t = t.as_subclass(cls)
    t.__dict__.update(state[0] if isinstance(state, tuple) else state or {})
    return t


_LAYOUTS = {repr(layout): layout for layout in LAYOUTS}
_TORCH_NAMES: dict[str, Any] = {
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v3": lambda storage, offset, size, stride, grad, hooks, dtype, metadata=None: _rebuild_tensor(
        _StorageReference(storage.storage, dtype), offset, size, stride, grad
    ),
    "torch._utils._rebuild_meta_tensor_no_storage": _rebuild_meta,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
    "torch._tensor._rebuild_from_type_v2": _rebuild_subclass,
    "torch.storage.UntypedStorage": _UNTYPED,
    "torch.Size": Size,
    "torch.device": _device.device,
    "torch.Tensor": Tensor,
    "torch._C.Generator": Generator,
    "torch.serialization._get_layout": lambda name: _LAYOUTS[name],
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "collections.defaultdict": defaultdict,
    "builtins.set": set, "__builtin__.set": set, "builtins.frozenset": frozenset, "builtins.bytearray": bytearray,
    "builtins.complex": complex, "__builtin__.complex": complex, "__builtin__.bytearray": bytearray,
    "_codecs.encode": lambda text, encoding: text.encode(encoding),
}  # fmt: skip
_TORCH_NAMES |= {f"torch.{d.name}": d for d in _dtype.ALL} | {f"torch.{name}": t for name, t in _STORAGE_TYPES.items()}


class _Unpickler(pickle.Unpickler):
    """Finds torch's names here. Restricted to data, it knows only the names of the table above and those the user allowed."""

    def __init__(self, file: Any, storage: Callable[[Any], Any], *, restricted: bool, encoding: str) -> None:
        super().__init__(file, encoding=encoding)
        self._storage = storage
        self._restricted = restricted

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in _safe:
            return _safe[full]
        if full in _TORCH_NAMES:
            return _TORCH_NAMES[full]
        if full == "torch.nn.parameter.Parameter":
            from .nn import Parameter

            return Parameter
        if self._restricted:
            raise pickle.UnpicklingError(
                f"Weights only load failed. Unsupported global: GLOBAL {full} was not an allowed global by default. "
                f"Please use `torch.serialization.add_safe_globals([{name}])` to allowlist this global if you trust this "
                "class/function, or load with weights_only=False if you trust the source of the file."
            )
        if module == "torch" or module.startswith("torch."):
            found: Any = importlib.import_module(_PACKAGE + module[len("torch") :])
            for part in name.split("."):
                found = getattr(found, part)
            return found
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        if not isinstance(pid, tuple) or pid[0] != "storage":
            raise pickle.UnpicklingError(f"unknown persistent id in the checkpoint: {pid!r}")
        return self._storage(pid[1:])


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save` or torch wrote. By default only data is accepted: tensors, numbers, strings, containers."""
    restricted = pickle_module is None if weights_only is None else weights_only
    if pickle_module is not None and restricted:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    encoding = pickle_load_args.pop("encoding", "utf-8")
    if pickle_load_args:
        raise TypeError(f"load() got an unexpected keyword argument '{next(iter(pickle_load_args))}'")
    if mmap and not isinstance(f, str | os.PathLike):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(f, "rb")) if isinstance(f, str | os.PathLike) else f
        if not zipfile.is_zipfile(file):
            raise pickle.UnpicklingError(
                "not a checkpoint in torch's zip format (torch.save of version 1.6 or newer); files of the older format must be "
                "saved again with a newer torch"
            )
        file.seek(0)
        archive = stack.enter_context(zipfile.ZipFile(file))
        reader = _Reader(archive, map_location, path=os.fspath(f) if mmap else None)
        return _Unpickler(io.BytesIO(reader.record("data.pkl")), reader.storage, restricted=restricted, encoding=encoding).load()


class _Reader:
    """An open archive: its records, and the storages read so far."""

    def __init__(self, archive: zipfile.ZipFile, map_location: Any, *, path: str | None) -> None:
        self.archive = archive
        self.path = path
        names = archive.namelist()
        self.root = next((n[: -len("/data.pkl")] for n in names if n.endswith("/data.pkl")), None)
        if self.root is None:
            raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found")
        order = self.record("byteorder") if f"{self.root}/byteorder" in names else sys.byteorder.encode()
        self.swapped = order.decode() != sys.byteorder
        self.locate = _locator(map_location)
        self.storages: dict[str, UntypedStorage] = {}

    def record(self, name: str) -> bytes:
        return self.archive.read(f"{self.root}/{name}")

    def storage(self, reference: Any) -> _StorageReference:
        kind, key, location, count = reference[:4]
        storage = self.storages.get(key)
        if storage is None:
            storage = self.storages[key] = self._read(kind.dtype, key, count, location)
        return _StorageReference(storage, kind.dtype)

    def _read(self, dtype: _dtype.dtype, key: str, count: int, location: str) -> UntypedStorage:
        where = self.locate(location)
        if where.type == "meta":
            return _pickling.meta_storage(count * dtype.itemsize)
        if self.path is not None and not self.swapped and count:
            return own(self._mapped(f"{self.root}/data/{key}", count * dtype.itemsize))
        data = np.frombuffer(bytearray(self.record(f"data/{key}")), np.uint8)
        if self.swapped and dtype.itemsize > 1:
            unit = dtype.itemsize // (2 if dtype.is_complex else 1)
            data = data.reshape(-1, unit)[:, ::-1].copy().reshape(-1)
        return own(data)

    def _mapped(self, name: str, size_bytes: int) -> np.ndarray[Any, Any]:
        """A storage that lies in the file; writes to it stay in this process."""
        assert self.path is not None
        info = self.archive.getinfo(name)
        with open(self.path, "rb") as file:
            file.seek(info.header_offset + 26)
            name_length, extra_length = struct.unpack("<HH", file.read(4))
        start = info.header_offset + 30 + name_length + extra_length
        mapped = np.memmap(self.path, np.uint8, "c", start, (size_bytes,))
        return np.ndarray((size_bytes,), np.uint8, mapped)


def _locator(map_location: Any) -> Callable[[str], _device.device]:
    """From the location that a checkpoint names to the device its storages are put on."""

    def usable(where: Any) -> _device.device:
        from ._creation import device_of

        return device_of(where)

    if map_location is None:
        return lambda location: usable(location)
    if isinstance(map_location, str | _device.device):
        return lambda location: usable(map_location)
    if isinstance(map_location, dict):
        return lambda location: usable(map_location.get(location, location))
    if callable(map_location):
        # torch: the function gets the storage and its location, and may return a storage or nothing to leave it there
        def called(location: str) -> _device.device:
            answer = map_location(own(np.empty(0, np.uint8)), location)
            if answer is None:
                return usable(location)
            return usable(answer.device if isinstance(answer, UntypedStorage | TypedStorage) else answer)

        return called
    raise TypeError(f"map_location must be a device, a string, a dict or a function, not {type(map_location).__name__}")
