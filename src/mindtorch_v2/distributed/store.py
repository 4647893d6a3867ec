"""Stores: keys and values that the processes of a program share, by which they find each other."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta

from .._forking import new_condition
from .errors import DistStoreError, QueueEmptyError

__all__ = ["HashStore", "PrefixStore", "Store", "as_bytes"]


def as_bytes(value: str | bytes) -> bytes:
    """A value as it is kept."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise TypeError(f"a store keeps values of type str or bytes, got {type(value).__name__}")


class Store:
    """What all stores do. A program's own store defines `get`, `set`, `add`, `check`, `wait` and whatever else it needs."""

    _timeout = timedelta(minutes=5)

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait for a key."""
        return self._timeout

    def set_timeout(self, timeout: timedelta, /) -> None:
        """Set how long `get` and `wait` wait for a key."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes, /) -> None:
        """Keep a value."""
        raise self._undefined("set")

    def get(self, key: str, /) -> bytes:
        """The value of a key; waits until it is there."""
        raise self._undefined("get")

    def add(self, key: str, amount: int, /) -> int:
        """Add to the number that is kept under a key (0 at first), and return the sum."""
        raise self._undefined("add")

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes, /) -> bytes:
        """Replace a value if it is the expected one, or if there is none and none is expected; returns the value now."""
        raise self._undefined("compare_set")

    def check(self, keys: Sequence[str], /) -> bool:
        """Whether all keys are there."""
        raise self._undefined("check")

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None, /) -> None:
        """Wait until all keys are there."""
        raise self._undefined("wait")

    def delete_key(self, key: str, /) -> bool:
        """Forget a key; returns whether it was there."""
        raise self._undefined("delete_key")

    def num_keys(self) -> int:
        """The number of keys."""
        raise self._undefined("num_keys")

    def list_keys(self) -> list[str]:
        """The keys."""
        raise self._undefined("list_keys")

    def append(self, key: str, value: str | bytes, /) -> None:
        """Add to the end of a value."""
        raise self._undefined("append")

    def queue_push(self, key: str, value: str | bytes, /) -> None:
        """Add a value to the end of a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_pop(self, key: str, block: bool = True, /) -> bytes:
        """Take the first value of a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_len(self, key: str, /) -> int:
        """The number of values in a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def multi_get(self, keys: Sequence[str], /) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes], /) -> None:
        """Keep several values."""
        if len(keys) != len(values):
            raise RuntimeError(f"multi_set needs as many values as keys, got {len(values)} for {len(keys)}")
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None, /) -> None:
        """Wait until as many processes have come here with this key."""
        if self.add(f"{key}/count", 1) == world_size:
            self.set(f"{key}/done", "1")
        self.wait([f"{key}/done"], timeout or self.timeout)

    def has_extended_api(self) -> bool:
        """Whether there are `append`, `multi_get` and `multi_set`."""
        return True

    def clone(self) -> Store:
        """A store with the same content, for another thread."""
        return self

    def _undefined(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not define {name}()")


class HashStore(Store):
    """Values in the memory of this process, for its threads."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._queues: dict[str, deque[bytes]] = {}
        self._changed = new_condition()

    def set(self, key: str, value: str | bytes, /) -> None:
        with self._changed:
            self._values[key] = as_bytes(value)
            self._changed.notify_all()

    def get(self, key: str, /) -> bytes:
        self.wait([key])
        return self._values[key]

    def add(self, key: str, amount: int, /) -> int:
        with self._changed:
            total = int(self._values.get(key, b"0")) + amount
            self._values[key] = str(total).encode()
            self._changed.notify_all()
            return total

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes, /) -> bytes:
        expected, desired = as_bytes(expected), as_bytes(desired)
        with self._changed:
            now = self._values.get(key)
            if now is None and expected:
                return expected
            if now is None or now == expected:
                self._values[key] = desired
                self._changed.notify_all()
                return desired
            return now

    def check(self, keys: Sequence[str], /) -> bool:
        with self._changed:
            return all(key in self._values for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None, /) -> None:
        self._wait_for(lambda: all(key in self._values for key in keys), timeout)

    def delete_key(self, key: str, /) -> bool:
        with self._changed:
            return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        return len(self._values)

    def list_keys(self) -> list[str]:
        return list(self._values)

    def append(self, key: str, value: str | bytes, /) -> None:
        with self._changed:
            self._values[key] = self._values.get(key, b"") + as_bytes(value)
            self._changed.notify_all()

    def queue_push(self, key: str, value: str | bytes, /) -> None:
        with self._changed:
            self._queues.setdefault(key, deque()).append(as_bytes(value))
            self._changed.notify_all()

    def queue_pop(self, key: str, block: bool = True, /) -> bytes:
        with self._changed:
            if not block and not self._queues.get(key):
                raise QueueEmptyError("queue is empty")
            self._wait_for(lambda: bool(self._queues.get(key)), None)
            return self._queues[key].popleft()

    def queue_len(self, key: str, /) -> int:
        return len(self._queues.get(key, ()))

    def _wait_for(self, condition: Callable[[], bool], timeout: timedelta | None) -> None:
        seconds = (timeout if timeout is not None else self._timeout).total_seconds()
        deadline = time.monotonic() + seconds
        with self._changed:
            while not condition():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DistStoreError("Wait timeout")
                self._changed.wait(left)


class PrefixStore(Store):
    """Another store, with a prefix in front of each key."""

    def __init__(self, prefix: str, store: Store) -> None:
        self._prefix = prefix
        self._store = store

    @property
    def underlying_store(self) -> Store:
        """The store with the values."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store

    @property
    def timeout(self) -> timedelta:
        return self._store.timeout

    def set_timeout(self, timeout: timedelta, /) -> None:
        self._store.set_timeout(timeout)

    def _key(self, key: str) -> str:
        return f"{self._prefix}/{key}"

    def set(self, key: str, value: str | bytes, /) -> None:
        self._store.set(self._key(key), value)

    def get(self, key: str, /) -> bytes:
        return self._store.get(self._key(key))

    def add(self, key: str, amount: int, /) -> int:
        return self._store.add(self._key(key), amount)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes, /) -> bytes:
        return self._store.compare_set(self._key(key), expected, desired)

    def check(self, keys: Sequence[str], /) -> bool:
        return self._store.check([self._key(key) for key in keys])

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None, /) -> None:
        self._store.wait([self._key(key) for key in keys], *([] if timeout is None else [timeout]))

    def delete_key(self, key: str, /) -> bool:
        return self._store.delete_key(self._key(key))

    def num_keys(self) -> int:
        return self._store.num_keys()

    def list_keys(self) -> list[str]:
        start = f"{self._prefix}/"
        return [key.removeprefix(start) for key in self._store.list_keys() if key.startswith(start)]

    def append(self, key: str, value: str | bytes, /) -> None:
        self._store.append(self._key(key), value)

    def queue_push(self, key: str, value: str | bytes, /) -> None:
        self._store.queue_push(self._key(key), value)

    def queue_pop(self, key: str, block: bool = True, /) -> bytes:
        return self._store.queue_pop(self._key(key), block)

    def queue_len(self, key: str, /) -> int:
        return self._store.queue_len(self._key(key))

    def has_extended_api(self) -> bool:
        return self._store.has_extended_api()

    def clone(self) -> Store:
        return PrefixStore(self._prefix, self._store.clone())
