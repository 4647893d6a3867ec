"""A store in a file, for processes that share a file system."""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from .store import Store, as_bytes

try:
    import fcntl
except ImportError:  # on Windows, where no process locks files in this way
    fcntl = None  # type: ignore[assignment]

__all__ = ["FileStore"]

_LENGTHS = struct.Struct("<qq")  # of a key and of its value; -1 for a value that is deleted
_PAUSE_S = 0.01  # between two looks at a file that another process is to write


class FileStore(Store):
    """Values in a file, each change at its end. The last of `world_size` processes that is done with it removes it.

    Args:
        file_name: the file. It is made if there is none; its directory must be there.
        world_size: the number of processes. -1: not known, so that the file stays.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        if fcntl is None:
            raise NotImplementedError("a FileStore locks its file, which this system cannot; use a TCPStore")
        self._path = file_name
        self._world_size = world_size
        self._values: dict[str, bytes] = {}
        self._read_until = 0
        self.add("efcount/", 1)

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    def __del__(self) -> None:
        with contextlib.suppress(OSError, AttributeError, TypeError):  # the file or the interpreter is gone
            if self._world_size > 0 and self.add("efcleanup/", 1) == self._world_size:
                os.remove(self._path)

    def set(self, key: str, value: str | bytes, /) -> None:
        with self._locked() as append:
            append(key, as_bytes(value))

    def get(self, key: str, /) -> bytes:
        deadline = time.monotonic() + self._timeout.total_seconds()
        while not self.check([key]):
            if time.monotonic() > deadline:
                milliseconds = round(self._timeout.total_seconds() * 1000)
                raise RuntimeError(f"Timeout waiting for key: {key} after {milliseconds} ms")
            time.sleep(_PAUSE_S)
        return self._values[key]

    def add(self, key: str, amount: int, /) -> int:
        with self._locked() as append:
            total = int(self._values.get(key, b"0")) + amount
            append(key, str(total).encode())
            return total

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes, /) -> bytes:
        expected, desired = as_bytes(expected), as_bytes(desired)
        with self._locked() as append:
            now = self._values.get(key)
            if now is None and expected:
                return expected
            if now is None or now == expected:
                append(key, desired)
                return desired
            return now

    def check(self, keys: Sequence[str], /) -> bool:
        with self._locked():
            return all(key in self._values for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None, /) -> None:
        deadline = time.monotonic() + (timeout if timeout is not None else self._timeout).total_seconds()
        while not self.check(keys):
            if time.monotonic() > deadline:
                raise RuntimeError("Wait timeout")
            time.sleep(_PAUSE_S)

    def delete_key(self, key: str, /) -> bool:
        with self._locked() as append:
            known = key in self._values
            append(key, None)
            return known

    def num_keys(self) -> int:
        with self._locked():
            return len(self._values)

    def list_keys(self) -> list[str]:
        with self._locked():
            return list(self._values)

    def append(self, key: str, value: str | bytes, /) -> None:
        with self._locked() as append:
            append(key, self._values.get(key, b"") + as_bytes(value))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Callable[[str, bytes | None], None]]:
        """The file for this process alone, with what others have written read; the function given appends to it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._read(descriptor)

            def append(key: str, value: bytes | None) -> None:
                record = _LENGTHS.pack(len(key.encode()), -1 if value is None else len(value)) + key.encode() + (value or b"")
                os.lseek(descriptor, 0, os.SEEK_END)
                os.write(descriptor, record)
                self._read(descriptor)

            yield append
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int) -> None:
        """Apply the changes since the last look."""
        size = os.fstat(descriptor).st_size
        os.lseek(descriptor, self._read_until, os.SEEK_SET)
        data = os.read(descriptor, size - self._read_until)
        at = 0
        while at < len(data):
            key_length, length = _LENGTHS.unpack_from(data, at)
            at += _LENGTHS.size
            key = data[at : at + key_length].decode()
            at += key_length
            if length < 0:
                self._values.pop(key, None)
            else:
                self._values[key] = data[at : at + length]
                at += length
        self._read_until += at
