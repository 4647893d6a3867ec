"""The memory behind tensors: one `UntypedStorage` for a base and all of its views, with the version they share."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _device
from ._forking import new_lock

if TYPE_CHECKING:
    from ._storage_methods import StorageMethods as _Methods  # which attaches them
else:
    _Methods = object

__all__ = ["UntypedStorage", "identify", "identity", "next_identity"]

next_identity = itertools.count(2).__next__  # 1 is the process, among the nodes that an execution trace numbers along with tensors
_lock = new_lock()


def identity(thing: Any) -> int:
    """The number of a tensor or a storage: given when somebody first asks, and never to anything else in this process."""
    try:
        return thing._identity
    except AttributeError:
        return identify(thing)


def identify(thing: Any) -> int:
    """As `identity`, of what seems to have no number yet."""
    with _lock:  # two threads that ask at once get the same
        number: int = getattr(thing, "_identity", 0)  # an exception would take longer
        if not number:
            number = thing._identity = next_identity()
        return number


class UntypedStorage(_Methods):
    """Bytes owned by a NumPy array. `version` counts in-place writes, through whichever view."""

    # two slots to fill and no more: each costs an operator 8 ns (and each that is left empty less than one)
    __slots__ = ("__weakref__", "_bytes", "_checkpoint_offset", "_identity", "_note_free", "_owner", "array", "version")
    _identity: int
    _checkpoint_offset: int  # where the bytes are in the file, of a storage that was loaded without them
    _owner: str | None  # set where the memory is somebody else's: the file that writes go to, or None
    _note_free: Callable[[], object]  # called at the storage's end, where memory is recorded
    # the slot of `array` by other names, under which it stays a slot while somebody is told of it (`profiler/capture/storage_hooks`)
    _array_slot: Any
    memory: Any  # told to nobody who reads operators' records
    array: np.ndarray[Any, Any]
    version: int
    device = _device.cpu

    def bytes(self) -> np.ndarray[Any, Any]:
        """The memory as a flat byte array, for views with arbitrary strides."""
        try:
            return self._bytes
        except AttributeError:
            array = self.array
            flat = array.ravel(order="K")
            if flat.size and not np.may_share_memory(flat, array):
                # every other element of a NumPy array, say: the memory is all that lies between the first and the last
                reach = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)) // array.itemsize + 1
                flat = np.lib.stride_tricks.as_strided(array, (reach,), (array.itemsize,))
            self._bytes = flat.view(np.uint8) if flat.size else np.empty(0, np.uint8)
            return self._bytes

    def data_ptr(self) -> int:
        """Address of the first byte."""
        return int(self.array.__array_interface__["data"][0])

    def nbytes(self) -> int:
        """Return the size of the memory. Of an array with gaps, it is all that lies between its first and its last byte."""
        array = self.array
        return int(array.nbytes if array.flags.forc else self.bytes().size)

    size = nbytes

    def replace(self, array: np.ndarray[Any, Any]) -> None:
        """Take other memory in place of what is there."""
        del self.array  # whoever counts memory sees one go before the other comes
        for name in ("_bytes", "_identity"):  # of the old memory
            if hasattr(self, name):
                delattr(self, name)
        self.array = array

    def alias(self, version: int = 0) -> UntypedStorage:
        """The same memory with a count of writes of its own, for a tensor that autograd is to treat as independent."""
        cls = type(self)
        new = UntypedStorage() if cls is LinkedStorage else cls()
        new.array = self.array
        new.version = version
        new._identity = identity(self)
        if hasattr(self, "_owner"):
            new._owner = self._owner
        return new


UntypedStorage.memory = UntypedStorage._array_slot = vars(UntypedStorage)["array"]


class MetaStorage(UntypedStorage):
    """Storage of a tensor without elements: it has a size and no address."""

    __slots__ = ()
    device = _device.meta
    memory = property()  # none of its own

    def data_ptr(self) -> int:
        return 0


class LinkedStorage(UntypedStorage):
    """A storage whose writes are counted by another's counter: that of the tensor whose elements it replaced."""

    __slots__ = ("_counter",)
    _counter: UntypedStorage

    @property
    def version(self) -> int:
        return self._counter.version

    @version.setter
    def version(self, value: int) -> None:
        self._counter.version = value


def linked(memory: UntypedStorage, counter: UntypedStorage) -> UntypedStorage:
    """The memory of one storage with the count of writes of another."""
    new = LinkedStorage()
    new.array, new._counter = memory.array, counter._counter if isinstance(counter, LinkedStorage) else counter
    new._identity = identity(memory)
    if hasattr(memory, "_owner"):
        new._owner = memory._owner
    return new


def own(array: np.ndarray[Any, Any], cls: type[UntypedStorage] = UntypedStorage) -> UntypedStorage:
    """A storage for an array that nothing else shares yet."""
    storage = cls()
    storage.array = array
    storage.version = 0
    return storage
