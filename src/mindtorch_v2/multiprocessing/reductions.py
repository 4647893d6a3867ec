"""How `multiprocessing` sends tensors: the descriptor of their shared memory instead of their bytes."""

from __future__ import annotations

import os
import weakref
from multiprocessing import reduction
from typing import Any

from .. import _pickling, _shared_memory
from .._dispatch import keys
from .._storage import UntypedStorage, identity, own
from .._tensor import Tensor
from ..nn import Parameter

__all__ = ["StorageWeakRef", "check_leaf", "init_reductions", "rebuild_storage", "reduce_storage", "reduce_tensor"]


class StorageWeakRef:
    """A weak reference to a storage, equal to others to the same memory; it can be a key of a dictionary."""

    def __init__(self, storage: Any) -> None:
        found: UntypedStorage = getattr(storage, "_untyped_storage", storage)
        self.cdata = identity(found)
        self._reference = weakref.ref(found)

    def expired(self) -> bool:
        """Whether the storage is gone."""
        return self._reference() is None

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, StorageWeakRef) and self.cdata == other.cdata)


_received: weakref.WeakValueDictionary[tuple[int, int, int], UntypedStorage] = weakref.WeakValueDictionary()


def check_leaf(t: Tensor) -> None:
    """Refuse a tensor that was computed from others: its graph is in this process."""
    if t._node is not None and t._keys & keys.AUTOGRAD:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
            "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it "
            "on the queue)."
        )


def reduce_tensor(t: Tensor) -> tuple[Any, ...]:
    """What makes this tensor in another process, on the same memory."""
    check_leaf(t)
    if type(t._storage) is UntypedStorage:
        _shared_memory.share(t._storage, t)
    return _pickling.reduce_tensor(t, None)


def reduce_storage(storage: UntypedStorage) -> tuple[Any, ...]:
    """What makes this storage in another process, on the same memory."""
    size = storage.nbytes()
    if not size:
        return _pickling.reduce_storage(storage)
    mapping = _shared_memory.share(storage)
    offset = storage.data_ptr() - mapping.address
    _received[_key(mapping.descriptor, offset)] = storage  # which may come back
    return (rebuild_storage, (reduction.DupFd(mapping.descriptor), mapping.size, offset, size))


keeps_descriptors = True  # of what is received, to send it on (`set_sharing_strategy`)


def rebuild_storage(duplicate: Any, file_size: int, offset: int, size: int) -> UntypedStorage:
    """The storage that another process sent; the same one for memory that is known here."""
    descriptor = duplicate.detach()
    key = _key(descriptor, offset)
    known = _received.get(key)
    if known is not None and known.nbytes() == size:
        os.close(descriptor)
        return known
    try:
        mapping = _shared_memory.map_file(descriptor, file_size)
    except BaseException:
        os.close(descriptor)
        raise
    storage = _received[key] = own(_shared_memory.array_of(mapping)[offset : offset + size])
    if not keeps_descriptors:
        mapping.close()
    return storage


def _key(descriptor: int, offset: int) -> tuple[int, int, int]:
    """What identifies shared memory in all processes."""
    status = os.fstat(descriptor)
    return (status.st_dev, status.st_ino, offset)


def init_reductions() -> None:
    """Have `multiprocessing` send tensors in this way."""
    reduction.register(Tensor, reduce_tensor)
    reduction.register(Parameter, reduce_tensor)
    reduction.register(UntypedStorage, reduce_storage)
