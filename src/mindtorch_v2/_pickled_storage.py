"""Storages inside plain pickles of PyTorch, which `torch.storage._load_from_bytes` reads: the form that checkpoints had before they were zip files."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

from ._checkpoint_file import StorageType
from ._rebuild import STORAGE_TYPES, UNTYPED
from ._storage import own
from .storage import TypedStorage

__all__ = ["load_from_bytes"]

_MAGIC = 0x1950A86A20F9469CFC6C


class _Unpickler(pickle.Unpickler):
    """Reads storages and numbers, and nothing else."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.storages: dict[str, TypedStorage] = {}

    def find_class(self, module: str, name: str) -> Any:
        if module in ("torch", "torch.storage") and (name in STORAGE_TYPES or name == UNTYPED.name):
            return UNTYPED if name == UNTYPED.name else STORAGE_TYPES[name]
        raise pickle.UnpicklingError(f"a pickled storage names {module}.{name}, which is no storage")

    def persistent_load(self, pid: Any) -> TypedStorage:
        _, kind, key, _, size, *_ = pid
        if not isinstance(kind, StorageType) or not isinstance(size, int) or size < 0:
            raise pickle.UnpicklingError("a pickled storage without a type or size")
        if key not in self.storages:
            memory = own(np.empty(size * kind.dtype.itemsize, np.uint8))
            self.storages[key] = TypedStorage(wrap_storage=memory, dtype=kind.dtype)
        return self.storages[key]


def load_from_bytes(content: bytes) -> Any:
    """The storage that was saved into these bytes."""
    file = io.BytesIO(content)
    if _Unpickler(file).load() != _MAGIC:
        raise pickle.UnpicklingError("not a storage that PyTorch pickled")
    for _ in ("protocol", "sizes of C's types"):
        _Unpickler(file).load()
    unpickler = _Unpickler(file)
    found = unpickler.load()
    for key in _Unpickler(file).load():
        storage = unpickler.storages[key]
        size = int.from_bytes(file.read(8), "little") * storage.dtype.itemsize
        data = file.read(size)
        if size != storage.nbytes() or len(data) != size:
            raise pickle.UnpicklingError(f"a pickled storage of {storage.nbytes()} bytes has {len(data)}")
        storage.untyped().bytes()[:] = np.frombuffer(data, np.uint8)
    return found
