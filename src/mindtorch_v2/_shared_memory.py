"""Memory that processes share: anonymous files, mapped.

Such a file has no name. The system frees it with the last mapping of it and the last descriptor, in whichever process,
so that nothing stays behind when one of them is killed.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import mmap
import operator
import os
import sys
import tempfile
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ._storage import UntypedStorage, identity
from ._tensor import Tensor, set_array

__all__ = ["Mapping", "allocate", "array_of", "map_file", "map_path", "mapping_of", "move", "new_file", "share"]

Array = np.ndarray[Any, Any]

# Python's own mmap keeps a duplicate of the descriptor for as long as the mapping lives (before 3.13, always): a process that keeps
# a thousand tensors would run out of descriptors.
_libc = ctypes.CDLL(None, use_errno=True)
_mmap, _munmap = _libc.mmap, _libc.munmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FAILED = ctypes.c_void_p(-1).value
# entering all pages at once saves a fault for each
_FLAGS = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)


class _Release(weakref.ref["Mapping"]):
    """A reference that calls its `release` when the mapping is gone, without running Python code.

    A signal's handler, which runs between instructions of Python, would raise inside of a `__del__`, where Python drops exceptions: a program
    that frees a batch would go on after Ctrl-C.
    """

    __slots__ = ("release",)
    release: Callable[[], object]

    def __new__(cls, mapping: Mapping, release: Callable[[], object]) -> _Release:
        made = super().__new__(cls, mapping, _call_release)
        made.release = release
        return made


_call_release = operator.methodcaller("release")
_releases: dict[weakref.ref[Mapping], list[_Release]] = {}  # of mappings that live, by a reference that takes them out of here


class Mapping:
    """The memory of an anonymous file in this process. It is unmapped when nothing refers to it any more; arrays over it do."""

    __slots__ = ("__weakref__", "address", "descriptor", "size")

    def __init__(self, address: int, size: int, descriptor: int) -> None:
        self.address = address
        self.size = size
        self.descriptor = descriptor  # of the file, to send it to other processes; -1 when it is closed
        releases = [_Release(self, functools.partial(_munmap, address, max(size, 1)))]
        if descriptor >= 0:
            releases.append(_Release(self, functools.partial(os.close, descriptor)))
        _releases[weakref.ref(self, _releases.pop)] = releases

    def close(self) -> None:
        """Close the descriptor: nobody sends it on, and a process may keep more tensors than descriptors."""
        del _releases[weakref.ref(self)][1:]
        os.close(self.descriptor)
        self.descriptor = -1

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"data": (self.address, False), "shape": (self.size,), "typestr": "|u1", "version": 3}


def new_file() -> int:
    """The descriptor of a new anonymous file, which is empty."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("mindtorch_v2", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def allocate(size: int) -> Mapping:
    """New memory, with a descriptor to send."""
    descriptor = new_file()
    try:
        os.ftruncate(descriptor, max(size, 1))
        return map_file(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise


def map_file(descriptor: int, size: int) -> Mapping:
    """The memory of a file that another process sent, or of one just made. The mapping owns the descriptor."""
    address = _mmap(None, max(size, 1), mmap.PROT_READ | mmap.PROT_WRITE, _FLAGS, descriptor, 0)
    if address == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)}: {size} bytes of shared memory cannot be mapped")
    return Mapping(address, size, descriptor)


def map_path(descriptor: int, size: int, *, shared: bool) -> Array:
    """The first bytes of a file that has a name, whose descriptor stays the caller's. Without `shared`, writes stay in this process."""
    if not size:
        return np.empty(0, np.uint8)
    address = _mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE, descriptor, 0)
    if address == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)}: {size} bytes of a file cannot be mapped")
    return array_of(Mapping(address, size, os.dup(descriptor) if shared else -1))


def array_of(mapping: Mapping) -> Array:
    """The memory as bytes."""
    return np.asarray(mapping)


def mapping_of(storage: UntypedStorage) -> Mapping | None:
    """The shared memory that a storage is in, or None when its memory is this process's own."""
    under: Any = storage.array
    while isinstance(under, np.ndarray):
        under = under.base
    return under if isinstance(under, Mapping) else None


def share(storage: UntypedStorage, tensor: Tensor | None = None) -> Mapping:
    """Move a storage to shared memory, with all tensors on it, unless it is there; returns where, with a descriptor to send.

    With a tensor on it given, others are searched for only if there are any, because the search looks at all objects.
    """
    found = mapping_of(storage)
    if found is not None and found.descriptor >= 0:
        return found
    mapping = allocate(storage.nbytes())
    memory = array_of(mapping)
    memory[...] = storage.bytes()
    move(storage, memory, tensor)
    return mapping


def move(storage: UntypedStorage, memory: Array, tensor: Tensor | None = None) -> None:
    """Give a storage, and all tensors over it, other memory with the same content."""
    old, start = storage.array, storage.data_ptr()
    storages, tensors = [storage], [] if tensor is None else [tensor]
    if tensor is None or not _alone(old, storage, tensor):
        storages += [s for s in gc.get_referrers(old) if isinstance(s, UntypedStorage) and s is not storage and s.array is old]
        on_it = set(map(id, storages))
        tensors += [t for t in gc.get_referrers(*storages) if isinstance(t, Tensor) and t is not tensor and id(t._storage) in on_it]
    moved = _at(memory, old, start)
    storage.replace(moved)
    for alias in storages[1:]:
        alias.replace(moved)
        alias._identity = identity(storage)
    for each in tensors:
        set_array(each, _at(memory, each._array, start))


def _alone(array: Array, storage: UntypedStorage, tensor: Tensor) -> bool:
    """Whether no other tensor or storage has this array or a view of it."""
    if array.base is not None or not (tensor._array is array or tensor._array.base is array):
        return False
    # the storage's, the tensor's, its bytes', our caller's, ours, and that of the call itself
    return sys.getrefcount(array) <= 5 + hasattr(storage, "_bytes")


def _at(memory: Array, old: Array, start: int) -> Array:
    """The array of this geometry at the same place of other memory."""
    if not old.size:
        return memory[:0].view(old.dtype).reshape(old.shape)
    return np.ndarray(old.shape, old.dtype, memory, old.__array_interface__["data"][0] - start, old.strides)
