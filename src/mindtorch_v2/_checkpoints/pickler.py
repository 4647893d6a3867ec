"""Objects as pickles that torch reads: tensors refer to storages, and names are torch's."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import pickle
import warnings
from collections import OrderedDict
from types import ModuleType
from typing import Any, NoReturn

from .. import _device, _dtype
from .._dispatch import keys
from .._memory_format import layout
from .._pickling import own_slots
from .._random import Generator
from .._storage import UntypedStorage
from .._tensor import Size, Tensor, shallow_copy
from .._wrapper_subclass import is_wrapper
from ..nn import Module, Parameter
from ..nn.modules.multihead_attention import MultiheadAttention
from ..nn.modules.state import _WrappedHook
from ..nn.modules.transformer import LayerWithActivation
from ..nn.parameter import is_lazy
from ..storage import LEGACY_NAMES, STORAGE_CLASSES, TypedStorage
from . import options
from .locations import location_tag
from .names import PACKAGE, STORAGE_TYPES, UNTYPED, StorageType, torch_module

__all__ = ["Pickled", "pickled"]


class _TorchName:
    """A function that pickles call by torch's name for it."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> NoReturn:
        raise TypeError(f"{self.module}.{self.name} is written to checkpoints, not called")


_REBUILD_TENSOR = _TorchName("torch._utils", "_rebuild_tensor_v2")
_REBUILD_TENSOR_V3 = _TorchName("torch._utils", "_rebuild_tensor_v3")
_REBUILD_META = _TorchName("torch._utils", "_rebuild_meta_tensor_no_storage")
_REBUILD_PARAMETER = _TorchName("torch._utils", "_rebuild_parameter")
_REBUILD_PARAMETER_WITH_STATE = _TorchName("torch._utils", "_rebuild_parameter_with_state")
_REBUILD_SPARSE = _TorchName("torch._utils", "_rebuild_sparse_tensor")
_REBUILD_WRAPPER = _TorchName("torch._utils", "_rebuild_wrapper_subclass")
_GET_LAYOUT = _TorchName("torch.serialization", "_get_layout")
_REBUILD_SUBCLASS = _TorchName("torch._tensor", "_rebuild_from_type_v2")


def _classes(name: str) -> list[Any]:
    """The public classes of a module of this package."""
    module: Any = importlib.import_module(f"{PACKAGE}.{name}")
    return [getattr(module, each) for each in module.__all__]


_functional: Any = importlib.import_module(f"{PACKAGE}.nn.functional")  # by name: its types, seen from here, end mypy 2.4
_ACTIVATIONS: dict[Any, _TorchName] = {
    _functional.relu: _TorchName("torch.nn.functional", "relu"),
    _functional.gelu: _TorchName("torch._C._nn", "gelu"),
}

_PUBLIC_MODULES: dict[Any, str] = {
    Size: "torch",
    _device.device: "torch",
    Tensor: "torch",
    Generator: "torch._C",
    UntypedStorage: "torch.storage",
    **dict.fromkeys(STORAGE_CLASSES.values(), "torch"),
    _WrappedHook: "torch.nn.modules.module",
    MultiheadAttention: "torch.nn.modules.activation",
    **{cls: torch_module(cls.__bases__[-1].__module__) for cls in _classes("nn.modules.lazy_layers")},
    **dict.fromkeys(_classes("optim.lr_scheduler"), "torch.optim.lr_scheduler"),
    **dict.fromkeys(_classes("autograd.grad_mode"), "torch.autograd.grad_mode"),
}

_PythonPickler: Any = pickle._Pickler


class _Pickler(_PythonPickler):  # type: ignore[misc]
    """Writes tensors as references to storages, and names as torch's. In Python, because C's pickler checks names by import."""

    def __init__(self, file: io.BytesIO, protocol: int, storages: Storages) -> None:
        super().__init__(file, protocol)
        self.storages = storages

    def persistent_id(self, obj: object) -> tuple[Any, ...] | None:
        return self.storages.reference(obj)

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, Tensor):
            return _reduced_by_class(obj) or _reduced(obj)
        if isinstance(obj, _dtype.dtype):
            return f"torch.{obj.name}"
        if isinstance(obj, LayerWithActivation) and obj.activation in _ACTIVATIONS:
            made: Any = obj.__reduce_ex__(2)
            return (*made[:2], {**made[2], "activation": _ACTIVATIONS[obj.activation]})
        if isinstance(obj, layout):
            return (_GET_LAYOUT, (repr(obj),))
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if isinstance(obj, _dtype.dtype):
            module, name = "torch", obj.name
        elif isinstance(obj, _TorchName):
            module, name = obj.module, obj.name
        elif isinstance(obj, StorageType):
            module, name = ("torch.storage" if obj is UNTYPED else "torch"), obj.name
        elif isinstance(obj, type | type(torch_module)):
            module = _PUBLIC_MODULES.get(obj) or torch_module(obj.__module__)
            if module == obj.__module__ and obj not in _PUBLIC_MODULES:
                return super().save_global(obj, name)
            name = name or obj.__qualname__
        else:
            return super().save_global(obj, name)
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)
        return None

    def save(self, obj: object, save_persistent_id: bool = True) -> None:
        if isinstance(obj, StorageType | _TorchName) and id(obj) not in self.memo:
            return self.save_global(obj)
        return super().save(obj, save_persistent_id)


class Storages:
    """The storages that a pickle refers to, in the order in which it does."""

    def __init__(self, *, legacy: bool) -> None:
        self.found: list[tuple[UntypedStorage, _dtype.dtype]] = []
        self._legacy = legacy
        self._keys: dict[Any, str] = {}
        self._dtypes: dict[int, _dtype.dtype] = {}
        self._classes: set[Any] = set()

    def reference(self, obj: object) -> tuple[Any, ...] | None:
        """The persistent id of a storage, or, in the older format, of a class of modules; None for others."""
        if isinstance(obj, TypedStorage):
            storage, dtype = obj._untyped_storage, obj.dtype
            kind = STORAGE_TYPES[obj._pickle_storage_type()]
        elif isinstance(obj, UntypedStorage):
            storage, dtype, kind = obj, _dtype.uint8, UNTYPED
        elif self._legacy and isinstance(obj, type) and issubclass(obj, Module):
            return self._class_reference(obj)
        else:
            return None
        self._check_dtype(storage, dtype)
        reference = ("storage", kind, self._key(storage, dtype), location_tag(storage), storage.nbytes() // dtype.itemsize)
        return (*reference, None) if self._legacy else reference

    def _check_dtype(self, storage: UntypedStorage, dtype: _dtype.dtype) -> None:
        allocated = storage.nbytes() and storage.device.type == "cpu"
        if allocated and self._dtypes.setdefault(storage.data_ptr(), dtype) is not dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")

    def _key(self, storage: UntypedStorage, dtype: _dtype.dtype) -> str:
        # by address: `data` gives a tensor's memory a second storage object
        identity = (storage.data_ptr(), storage.nbytes()) if storage.nbytes() else id(storage)
        key = self._keys.get(identity)
        if key is None:
            key = self._keys[identity] = str(len(self.found))
            self.found.append((storage, dtype))
        return key

    def _class_reference(self, cls: type) -> tuple[Any, ...] | None:
        """A class with its source, which is compared when it is loaded. The sources of torch's own classes are not here."""
        if cls in self._classes or cls.__module__.partition(".")[0] in (PACKAGE, "torch"):
            return None
        self._classes.add(cls)
        file = source = None
        try:
            source, file = inspect.getsource(cls), inspect.getsourcefile(cls)
        except (OSError, TypeError):
            warnings.warn(
                f"Couldn't retrieve source code for container of type {cls.__name__}. It won't be checked for correctness upon "
                "loading.",
                stacklevel=2,
            )
        return ("module", cls, file, source)


def _reduced_by_class(t: Tensor) -> Any:
    """The call that a subclass with its own `__reduce_ex__` wants to be made by, if it has one."""
    if is_lazy(t):
        return t.__reduce_ex__(2)
    method: Any = type(t).__reduce_ex__
    return None if method.__module__.startswith(f"{PACKAGE}.") else method(t, 2)


def _reduced(t: Tensor) -> tuple[Any, ...]:
    """The call that makes this tensor again, by torch's names."""
    rebuild, args = _plain(t)
    if type(t) is Tensor and not t.__dict__:
        return (rebuild, args)
    state = _state_of(t)
    if type(t) is Parameter:
        return (rebuild, args) if not state else (_REBUILD_PARAMETER_WITH_STATE, (*args, state))
    return (_REBUILD_SUBCLASS, (rebuild, type(t), args, state))


def _state_of(t: Tensor) -> Any:
    method = getattr(type(t), "__getstate__", None)
    if method is not None and method is not getattr(object, "__getstate__", None):
        return method(t)
    slots = {name: getattr(t, name) for name in own_slots(type(t)) if hasattr(t, name)}
    return (dict(t.__dict__), slots) if slots else dict(t.__dict__)


def _plain(t: Tensor) -> tuple[_TorchName, tuple[Any, ...]]:
    """The call for a tensor as if it were of no subclass and had no attributes."""
    needs_grad = t._keys & keys.AUTOGRAD != 0
    strides = tuple(t.stride())
    if is_wrapper(t):
        return _REBUILD_WRAPPER, (type(t), t.dtype, tuple(t.shape), strides, t.storage_offset(), t.layout, t.device, needs_grad)
    if t._keys & keys.META:
        if options.skips_data():
            warnings.warn("Serializing tensors on the meta device under skip_data context manager is a no-op", stacklevel=2)
        return _REBUILD_META, (t.dtype, tuple(t.shape), strides, needs_grad)
    if t._keys & keys.SPARSE:
        return _REBUILD_SPARSE, (t.layout, (t._indices(), t._values(), t.shape, t.is_coalesced()))
    if t._keys & keys.SPARSE_COMPRESSED:
        storage: Any = t._storage
        return _REBUILD_SPARSE, (t.layout, (storage.compressed, storage.plain, storage.values, t.shape))
    if type(t) is Parameter:
        return _REBUILD_PARAMETER, (shallow_copy(t), needs_grad, OrderedDict())
    geometry: tuple[Any, ...] = (t.storage_offset(), tuple(t.shape), strides, needs_grad and t._node is None, OrderedDict())
    pending = {name: True for name, bit in (("conj", keys.CONJUGATE), ("neg", keys.NEGATIVE)) if t._keys & bit}
    metadata = (pending,) if pending else ()
    if t.dtype in LEGACY_NAMES:
        return _REBUILD_TENSOR, (TypedStorage(wrap_storage=t._storage, dtype=t.dtype, _internal=True), *geometry, *metadata)
    return _REBUILD_TENSOR_V3, (t._storage, *geometry, t.dtype, *metadata)


class Pickled:
    """A pickle, and the storages that it refers to by their number, each with the dtype it was first met with."""

    def __init__(self, content: bytes, storages: list[tuple[UntypedStorage, _dtype.dtype]]) -> None:
        self.content, self.storages = content, storages


def pickled(obj: object, pickle_module: ModuleType, protocol: int, *, legacy: bool = False) -> Pickled:
    """An object as a pickle. With a `pickle_module` other than Python's, names are written as that one writes them."""
    stream, storages = io.BytesIO(), Storages(legacy=legacy)
    if pickle_module is pickle:
        pickler = _Pickler(stream, protocol, storages)
    else:
        pickler = _foreign(pickle_module, storages)(stream, protocol=protocol)
    pickler.dump(obj)
    with contextlib.suppress(AttributeError):
        pickler.clear_memo()
    return Pickled(stream.getvalue(), storages.found)


def _foreign(pickle_module: Any, storages: Storages) -> Any:
    """Another module's pickler, which is told of storages."""

    class ForeignPickler(pickle_module.Pickler):  # type: ignore[misc]
        def persistent_id(self, obj: object) -> tuple[Any, ...] | None:
            return storages.reference(obj)

    return ForeignPickler
