"""Connections between all processes of a group, and the messages that have come through them."""

from __future__ import annotations

import contextlib
import secrets
import socket
import struct
import threading
import time
from collections import deque
from typing import Any

import numpy as np

from .._forking import new_condition, new_lock
from .errors import DistNetworkError
from .store import PrefixStore, Store
from .tcp_store import TCPStore, exactly

__all__ = ["ANY", "Mesh", "Message"]

ANY = -1  # a message from whichever process sends first
_HEADER = struct.Struct("<BqQ")  # the number of the operation's name, its tag, the size of what follows in bytes
_HELLO = struct.Struct("<16si")  # what the store told about the listener, and the rank of who connects
_NAMES = [
    "send",
    "broadcast",
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "scatter",
    "all_to_all",
    "barrier",
    "monitored_barrier",
]
_NUMBERS = {name: number for number, name in enumerate(_NAMES)}

Message = bytearray


class Mesh:
    """A connection to each other process. A thread for each of them keeps what comes until somebody asks for it, so that sending never waits for
    the program at the other end.
    """

    def __init__(self, store: Store, rank: int, size: int, timeout_s: float) -> None:
        self.rank, self.size = rank, size
        self._connections: dict[int, socket.socket] = {}
        self._sending = {peer: new_lock() for peer in range(size)}
        self._arrived = new_condition()
        self._messages: dict[tuple[int, bool, int], deque[tuple[str, Message]]] = {}  # by rank, whether point to point, and tag
        self._lost: dict[int, str] = {}
        if size > 1:
            self._connect_all(store, timeout_s)
            for peer, connection in self._connections.items():
                threading.Thread(target=self._read, args=(peer, connection), name=f"gloo-rank{peer}", daemon=True).start()

    # --- connecting -------------------------------------------------------------------------------------------------

    def _connect_all(self, store: Store, timeout_s: float) -> None:
        """Connect to the processes of lower rank, and take the connections of those of higher rank."""
        deadline = time.monotonic() + timeout_s
        host, token = _own_address(store), secrets.token_bytes(16)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.bind((host, 0))
            listener.listen(self.size)
            store.set(str(self.rank), f"{host} {listener.getsockname()[1]} {token.hex()}")
            # all addresses before the first connection: the process that serves the store may end once it has all of its connections
            addresses = [store.get(str(peer)).decode().split() for peer in range(self.size)]
            for peer, (peer_host, port, peer_token) in enumerate(addresses[: self.rank]):
                try:
                    connection = socket.create_connection((peer_host, int(port)), max(deadline - time.monotonic(), 0.01))
                    connection.sendall(_HELLO.pack(bytes.fromhex(peer_token), self.rank))
                except OSError as error:
                    raise DistNetworkError(
                        f"rank {peer} does not answer at {peer_host}:{port} ({error}): it has ended, or the store still has addresses of an"
                        " earlier run (with file://, remove the file)"
                    ) from error
                self._keep(peer, connection)
            while len(self._connections) < self.size - 1:
                listener.settimeout(max(deadline - time.monotonic(), 0.01))
                try:
                    connection, _ = listener.accept()
                    connection.settimeout(max(deadline - time.monotonic(), 0.01))
                    came, peer = _HELLO.unpack(exactly(connection, _HELLO.size))
                except TimeoutError:
                    missing = sorted(set(range(self.size)) - {self.rank, *self._connections})
                    raise DistNetworkError(
                        f"rank {self.rank} waited {timeout_s:g} s for a connection of ranks {missing}; are these processes running?"
                    ) from None
                except (OSError, EOFError):
                    continue
                if secrets.compare_digest(came, token) and self.rank < peer < self.size:
                    self._keep(peer, connection)
                else:  # none of this program
                    connection.close()

    def _keep(self, peer: int, connection: socket.socket) -> None:
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections[peer] = connection

    # --- messages ---------------------------------------------------------------------------------------------------

    def send(self, peer: int, name: str, tag: int, data: np.ndarray[Any, Any] | bytes) -> None:
        """Send elements to another process, as part of an operation with a name and a tag."""
        body = data if isinstance(data, bytes) else np.ascontiguousarray(data).reshape(-1).view(np.uint8).data
        header = _HEADER.pack(_NUMBERS[name], tag, len(body))
        try:
            with self._sending[peer]:
                connection = self._connections[peer]
                connection.sendall(header)
                if len(body):
                    connection.sendall(body)
        except (OSError, KeyError) as error:
            raise self._gone(peer, name, str(error)) from error

    def receive(self, peer: int, name: str, tag: int, size_bytes: int, timeout_s: float) -> tuple[int, Message]:
        """The next message of a process for an operation, and that process's rank; waits for it."""
        deadline = time.monotonic() + timeout_s
        with self._arrived:
            while (found := self._find(peer, name == "send", tag)) is None:
                self._check_alive(peer, name)
                left = deadline - time.monotonic()
                if left <= 0:
                    who = "no process" if peer == ANY else f"rank {peer}"
                    raise RuntimeError(
                        f"Timed out waiting {round(timeout_s * 1000)}ms for recv operation to complete: {who} sent nothing for {name}"
                        " in this time. Do all processes make this call, in the same order?"
                    )
                self._arrived.wait(left)
        source, theirs, message = found
        if theirs != name:
            raise RuntimeError(
                f"rank {source} calls {theirs} where rank {self.rank} calls {name}: all processes of a group must make the same calls in"
                " the same order"
            )
        if len(message) != size_bytes:
            raise RuntimeError(
                f"rank {source} sent {len(message)} bytes for {name} where rank {self.rank} expects {size_bytes}: the tensors must have the"
                " same dtype and number of elements in all processes"
            )
        return source, message

    def has_message(self, peer: int, tag: int) -> bool:
        """Whether a message that was sent point to point is there."""
        with self._arrived:
            peers = range(self.size) if peer == ANY else [peer]
            return any(self._messages.get((p, True, tag)) for p in peers)

    def _find(self, peer: int, point_to_point: bool, tag: int) -> tuple[int, str, Message] | None:
        for source in range(self.size) if peer == ANY else [peer]:
            key = (source, point_to_point, tag)
            waiting = self._messages.get(key)
            if waiting:
                name, message = waiting.popleft()
                if not waiting:
                    del self._messages[key]
                return source, name, message
        return None

    def _check_alive(self, peer: int, name: str) -> None:
        lost = self._lost if peer != ANY else (self._lost if len(self._lost) == self.size - 1 else {})
        if lost and (peer in lost or peer == ANY):
            gone = peer if peer != ANY else next(iter(lost))
            raise self._gone(gone, name, lost[gone])

    def _gone(self, peer: int, name: str, why: str) -> RuntimeError:
        connection = self._connections.get(peer)
        where = ""
        if connection is not None:
            with contextlib.suppress(OSError):
                host, port = connection.getpeername()[:2]
                where = f" [{host}]:{port}"
        return RuntimeError(f"Connection closed by peer{where}: rank {peer} ended during {name} ({why}); its own output says why")

    def _read(self, peer: int, connection: socket.socket) -> None:
        """Keep what comes from a process, until it ends."""
        why = "the connection was closed"
        try:
            while True:
                number, tag, size = _HEADER.unpack(exactly(connection, _HEADER.size))
                message, name = exactly(connection, size), _NAMES[number]
                with self._arrived:
                    self._messages.setdefault((peer, name == "send", tag), deque()).append((name, message))
                    self._arrived.notify_all()
        except EOFError:
            pass
        except (OSError, MemoryError, struct.error, IndexError) as error:
            why = str(error) or type(error).__name__
        with self._arrived:
            self._lost[peer] = why
            self._arrived.notify_all()

    def close(self) -> None:
        """End all connections; what waits for a message raises."""
        for connection in self._connections.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


def _own_address(store: Store) -> str:
    """The address at which other processes reach this one: that of the connection to the store, or this machine alone."""
    root = store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store
    return root.local_address() if isinstance(root, TCPStore) else "127.0.0.1"
