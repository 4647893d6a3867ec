"""The connection of a `DataLoader` with one of its workers: objects in both directions, tensors through shared memory.

A message is a short text in a socket. The memory of its tensors is in anonymous files, whose descriptors go along in the socket:
none of them outlives the processes that have it. Large tensors have a file each, so that their memory is freed with them; small ones,
and what is left of the message when it is long, share one.
"""

from __future__ import annotations

import array
import io
import os
import pickle
import select
import socket
import struct
import threading
import weakref
from collections import deque
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .... import _pickling, _shared_memory
from ...._dispatch import keys
from ...._pending import resolved
from ...._storage import UntypedStorage, own
from ...._tensor import Tensor
from ...._utils import ExceptionWrapper
from ....multiprocessing.reductions import check_leaf

if TYPE_CHECKING:
    pass

__all__ = ["Channel", "Closed"]

_HEADER = struct.Struct("<IB")  # bytes of the text, number of descriptors
_LARGE = 1 << 16  # bytes from which a storage has a file of its own
_INLINE = 1 << 14  # bytes up to which a message is in the socket, so that sending it does not wait for the receiver
_MOST_FILES = 8  # of a message; the system limits how many descriptors are on their way
_ALIGNMENT = 64
_CHUNK = 1 << 16


class Closed(Exception):  # noqa: N818 - the end of a conversation, expected in the normal course of things
    """The process at the other end has closed the channel, or is gone."""


# What a message contains --------------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where some bytes are: in which of a message's files (the common one is the last), and where in it."""

    file: int
    offset: int
    size: int


class _Pickler(ForkingPickler):
    """Pickles an object and leaves the storages of its tensors out, in `storages`."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.storages: list[UntypedStorage] = []
        self._numbers: dict[int, int] = {}

    def reducer_override(self, obj: object) -> Any:
        if type(obj) is UntypedStorage:
            number = self._numbers.setdefault(id(obj), len(self.storages))
            if number == len(self.storages):
                self.storages.append(obj)
            return (_received_storage, (number,))
        if isinstance(obj, Tensor):
            check_leaf(obj)
            # not by what `multiprocessing` has for tensors, which would move the sender's to shared memory as well
            return _reduce_part(obj) if _is_small_part(obj) else obj.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return NotImplemented


def _is_small_part(t: Tensor) -> bool:
    """Whether most of the storage is not this tensor's: a sample of a data set, say."""
    storage = t._storage
    return (
        type(storage) is UntypedStorage
        and type(t).__reduce_ex__ is Tensor.__reduce_ex__
        and storage.nbytes() > max(2 * t._array.nbytes, _LARGE)
        and not storage.is_shared()
    )


def _reduce_part(t: Tensor) -> Any:
    """What makes the tensor with a storage of its own that has its elements only."""
    copy = np.array(resolved(t)._array, order="K")
    strides = tuple(s // t.dtype.itemsize for s in copy.strides)
    arguments = (type(t), own(copy), t.dtype, 0, copy.shape, strides, t._keys & keys.AUTOGRAD != 0, dict(t.__dict__))
    return (_pickling.rebuild, arguments)


_receiving = threading.local()


def _received_storage(number: int) -> UntypedStorage:
    return _receiving.storages[number]


class _File:
    """An anonymous file that is open until it is sent. It is written to, not mapped, which takes half the time."""

    def __init__(self) -> None:
        self.descriptor = _shared_memory.new_file()
        self.size = 0

    def add(self, part: Any) -> tuple[int, int]:
        """Append bytes; returns where, and how many."""
        start = -(-self.size // _ALIGNMENT) * _ALIGNMENT
        rest = memoryview(part)
        self.size = start + len(rest)
        while rest:
            rest = rest[os.pwrite(self.descriptor, rest, self.size - len(rest)) :]
        return start, self.size - start

    def __del__(self, close: Any = os.close) -> None:
        close(self.descriptor)


class Message(NamedTuple):
    """An object on its way: a text, and the files that belong to it."""

    text: bytes
    files: tuple[Any, ...] = ()  # `_File` or `Mapping`, each with its descriptor


def _pack(tag: object, obj: object) -> Message:
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(obj)
    files: list[Any] = []
    common: _File | None = None
    places = []
    for storage in pickler.storages:
        place = _own_file(storage, files)
        if place is None:
            common = common or _File()
            place = _Place(-1, *common.add(storage.bytes()))
        places.append(place)
    content: Any = buffer.getvalue()
    if len(content) > _INLINE:
        common = common or _File()
        content = _Place(-1, *common.add(content))
    files += [common] if common else []
    return Message(pickle.dumps((tag, places, [f.size for f in files], content), pickle.HIGHEST_PROTOCOL), tuple(files))


def _own_file(storage: UntypedStorage, files: list[Any]) -> _Place | None:
    """The place of a storage that has a file of its own, or now gets one; None if it is to go to the common one."""
    if len(files) == _MOST_FILES:
        return None
    shared = _shared_memory.mapping_of(storage)
    if shared is not None and shared.descriptor >= 0:
        files.append(shared)
        return _Place(len(files) - 1, storage.data_ptr() - shared.address, storage.nbytes())
    if storage.nbytes() < _LARGE:
        return None
    files.append(_File())
    return _Place(len(files) - 1, *files[-1].add(storage.bytes()))


def _unpack(text: bytes, descriptors: list[int]) -> tuple[Any, Any]:
    """The tag and the object of a message, or the error with which the object cannot be made: other messages are not lost by it."""
    tag, places, sizes, content = pickle.loads(text)
    memories = []
    for size in sizes:
        mapping = _shared_memory.map_file(descriptors.pop(0), size)
        mapping.close()
        memories.append(_shared_memory.array_of(mapping))
    if isinstance(content, _Place):
        content = _bytes_at(content, memories).data
    _receiving.storages = [own(_bytes_at(place, memories)) for place in places]
    try:
        return tag, pickle.loads(content)
    except Exception:
        return tag, ExceptionWrapper(where="while an object of another process was received")
    finally:
        del _receiving.storages


def _bytes_at(place: _Place, memories: list[Any]) -> np.ndarray[Any, Any]:
    return memories[place.file][place.offset : place.offset + place.size]


# The socket ---------------------------------------------------------------------------------------------------------------------


class Channel:
    """One end of a connection. Neither sending nor receiving waits: `wait` does."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._outgoing: deque[Message] = deque()  # not sent, or in part
        self._incoming = bytearray()
        self._descriptors: list[int] = []
        self._ended = False
        self._busy = False  # between a call of the system and taking note of what it did

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def sends(self) -> bool:
        """Whether something is still to be sent."""
        return bool(self._outgoing)

    def put(self, tag: object, obj: object = None) -> None:
        """Send an object with a tag, or as much as the system takes now; `flush` sends the rest. What cannot be pickled is refused."""
        message = _pack(tag, obj)
        header = _HEADER.pack(len(message.text), len(message.files))
        self._outgoing.append(message._replace(text=header + message.text))
        self.flush()

    def flush(self) -> None:
        """Send what the system takes now."""
        while self._outgoing:
            text, files = self._outgoing[0]
            descriptors = array.array("i", [f.descriptor for f in files])
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)] if files else []
            self._begin()
            try:
                sent = self._socket.sendmsg([text], ancillary)
            except OSError as error:
                if not isinstance(error, BlockingIOError):
                    self._outgoing.clear()  # the other end is gone; what it sent before can still be read
                self._busy = False
                return
            if sent == len(text):
                self._outgoing.popleft()
            else:
                self._outgoing[0] = Message(text[sent:])
            self._busy = False

    def _begin(self) -> None:
        if self._busy:
            raise RuntimeError(
                "the exchange of data with a DataLoader worker was interrupted, by an exception of a signal's handler; begin a new iteration"
            )
        self._busy = True

    def receive(self) -> list[tuple[Any, Any]]:
        """The objects that have arrived, with their tags. Raises `Closed` when there are none and none will come."""
        self._read()
        arrived = []
        while len(self._incoming) >= _HEADER.size:
            size, count = _HEADER.unpack_from(self._incoming)
            if len(self._incoming) < _HEADER.size + size:
                break
            text = bytes(self._incoming[_HEADER.size : _HEADER.size + size])
            del self._incoming[: _HEADER.size + size]
            descriptors, self._descriptors = self._descriptors[:count], self._descriptors[count:]
            arrived.append(_unpack(text, descriptors))
        if self._ended and not arrived:
            raise Closed
        return arrived

    def _read(self) -> None:
        while not self._ended:
            self._begin()
            try:
                data, ancillary, flags, _ = self._socket.recvmsg(_CHUNK, socket.CMSG_SPACE(4 * (_MOST_FILES + 1)))
            except BlockingIOError:
                self._busy = False
                return
            except OSError:
                data, ancillary, flags = b"", [], 0
            for _, _, passed in ancillary:
                self._descriptors += array.array("i", passed[: len(passed) // 4 * 4])
            if flags & socket.MSG_CTRUNC:
                raise RuntimeError(
                    "Too many open files. Communication with the workers is no longer possible. Please increase the limit using "
                    "`ulimit -n` in the shell"
                )
            self._incoming += data
            self._ended = not data
            self._busy = False

    def wait(self, seconds: float) -> bool:
        """Wait until something can be received or sent; returns whether it can."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if self._outgoing else 0))
        return bool(poll.poll(seconds * 1000))

    def close(self) -> None:
        """End the conversation: the other end notices at once, even while other processes have a copy of this end."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.abandon()

    def abandon(self) -> None:
        """Close this process's copy of the end only."""
        self._socket.close()
        self._outgoing.clear()
        while self._descriptors:
            os.close(self._descriptors.pop())
        self._ended = True


_ends: weakref.WeakSet[Channel] = weakref.WeakSet()


def owned_by_this_process(channel: Channel) -> Channel:
    """Have forked processes close their copy of this end: otherwise its death would not be noticed at the other end while they live."""
    _ends.add(channel)
    return channel


def _abandon_in_child() -> None:
    for channel in list(_ends):
        channel.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_in_child)
