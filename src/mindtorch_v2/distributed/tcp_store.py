"""A store that one process serves and all reach over TCP."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from datetime import timedelta

from .._forking import new_lock
from . import errors
from .store import HashStore, Store, as_bytes

__all__ = ["TCPStore", "exactly"]

_COUNT = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")
_LARGEST_FIELD = 1 << 30  # a longer one is a stranger that speaks another protocol
_READY = "init/"  # counts the processes that have come; the keys of programs begin with a slash
_ERRORS = {name: getattr(errors, name) for name in errors.__all__}
_servers: weakref.WeakValueDictionary[int, _Server] = weakref.WeakValueDictionary()  # by port


def exactly(connection: socket.socket, size: int) -> bytearray:
    """The next bytes of a connection, as many as asked for; EOFError if it ends before."""
    data = bytearray(size)
    view, got = memoryview(data), 0
    while got < size:
        n = connection.recv_into(view[got:])
        if not n:
            raise EOFError("the connection was closed")
        got += n
    return data


def _send(connection: socket.socket, fields: Sequence[bytes]) -> None:
    connection.sendall(_COUNT.pack(len(fields)) + b"".join(_LENGTH.pack(len(f)) + f for f in fields))


def _receive(connection: socket.socket) -> list[bytes]:
    (count,) = _COUNT.unpack(exactly(connection, _COUNT.size))
    fields = []
    for _ in range(count):
        (length,) = _LENGTH.unpack(exactly(connection, _LENGTH.size))
        if length > _LARGEST_FIELD:
            raise EOFError("this is no message of a store")
        fields.append(bytes(exactly(connection, length)))
    return fields


class _Server:
    """Answers each client on a thread of its own, from one store in memory."""

    def __init__(self, host: str, port: int, listen_fd: int | None = None) -> None:
        if listen_fd is not None:
            self._socket = socket.socket(fileno=listen_fd)
        else:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            self._socket = socket.socket(family, socket.SOCK_STREAM)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                self._socket.bind((host if _is_loopback(host) else "", port))
            except OSError as error:
                raise errors.DistNetworkError(
                    f"The server socket has failed to listen on any local network address. port: {port}, {error.strerror}"
                ) from error
        self._socket.listen(128)
        self.port: int = self._socket.getsockname()[1]
        self._content = HashStore()
        self._clients: list[socket.socket] = []
        threading.Thread(target=_accept, args=(self._socket, self._content, self._clients), daemon=True).start()
        self._finalizer = weakref.finalize(self, _close, self._socket, self._clients)

    def close(self) -> None:
        self._finalizer()


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host == "::1" or host.startswith("127.")


def _close(listener: socket.socket, clients: list[socket.socket]) -> None:
    for connection in [listener, *clients]:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()


def _accept(listener: socket.socket, content: HashStore, clients: list[socket.socket]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # closed
            return
        clients.append(connection)
        threading.Thread(target=_serve, args=(connection, content), daemon=True).start()


def _serve(connection: socket.socket, content: HashStore) -> None:
    with contextlib.suppress(OSError, EOFError):  # the client has gone
        while True:
            command, *arguments = _receive(connection)
            try:
                answer = _answer(content, command.decode(), arguments)
            except (errors.DistStoreError, ValueError) as error:
                _send(connection, [b"error", type(error).__name__.encode(), str(error).encode()])
            else:
                _send(connection, [b"ok", *answer])


def _answer(content: HashStore, command: str, arguments: list[bytes]) -> list[bytes]:
    """What the store answers to a command."""
    key = arguments[0].decode() if arguments else ""
    if command == "set":
        content.set(key, arguments[1])
    elif command == "get":
        content.wait([key], _seconds(arguments[1]))
        return [content.get(key)]
    elif command == "wait":
        content.wait([a.decode() for a in arguments[1:]], _seconds(arguments[0]))
    elif command == "add":
        return [str(content.add(key, int(arguments[1]))).encode()]
    elif command == "compare_set":
        return [content.compare_set(key, arguments[1], arguments[2])]
    elif command == "check":
        return [b"1" if content.check([a.decode() for a in arguments]) else b""]
    elif command == "delete_key":
        return [b"1" if content.delete_key(key) else b""]
    elif command == "num_keys":
        return [str(content.num_keys()).encode()]
    elif command == "list_keys":
        return [k.encode() for k in content.list_keys()]
    elif command == "append":
        content.append(key, arguments[1])
    elif command == "queue_push":
        content.queue_push(key, arguments[1])
    elif command == "queue_pop":
        return [content.queue_pop(key, False)]
    elif command == "queue_len":
        return [str(content.queue_len(key)).encode()]
    else:
        raise ValueError(f"a store knows no {command!r}")
    return []


def _seconds(argument: bytes) -> timedelta:
    return timedelta(seconds=float(argument))


class TCPStore(Store):
    """Values in the memory of one process, the master, which every process reaches at its host and port.

    Args:
        host_name, port: where the master serves. Port 0: any that is free; `port` says which.
        world_size: the number of processes that the master waits for. None: not known.
        is_master: whether this process serves.
        timeout: how long to wait for the master, for the other processes, and for keys.
        wait_for_workers: whether the master waits until `world_size` processes have come.
        multi_tenant: whether stores of this process at the same port share one server.
        master_listen_fd: a socket that listens already, for the server.
        use_libuv: taken for compatibility; there is one server here.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300),
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        self._timeout = timeout
        self._lock = new_lock()
        self._server: _Server | None = None
        if is_master:
            shared = _servers.get(port) if multi_tenant and port else None
            self._server = shared or _Server(host_name, port, master_listen_fd)
            port = self._server.port
            if multi_tenant:
                _servers[port] = self._server
        self._host, self._port, self._libuv = host_name, port, use_libuv
        self._connection = self._connect()
        self._finalizer = weakref.finalize(self, _close, self._connection, [])
        come = self._number("add", _READY.encode(), b"1")
        if wait_for_workers and world_size is not None and is_master:
            self._wait_for_workers(come, world_size)

    def _connect(self) -> socket.socket:
        deadline = time.monotonic() + self._timeout.total_seconds()
        while True:
            try:
                connection = socket.create_connection((self._host, self._port), max(deadline - time.monotonic(), 0.01))
            except OSError as error:
                if time.monotonic() + 0.05 > deadline:
                    milliseconds = round(self._timeout.total_seconds() * 1000)
                    raise errors.DistNetworkError(
                        f"The client socket has timed out after {milliseconds}ms while trying to connect to"
                        f" ({self._host}, {self._port})."
                    ) from error
                time.sleep(0.05)
            else:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.settimeout(None)
                return connection

    def _wait_for_workers(self, come: int, world_size: int) -> None:
        deadline = time.monotonic() + self._timeout.total_seconds()
        while come < world_size:
            if time.monotonic() > deadline:
                raise errors.DistStoreError(
                    f"Timed out after {round(self._timeout.total_seconds()) + 1} seconds waiting for clients."
                    f" {come}/{world_size} clients joined."
                )
            time.sleep(0.01)
            come = self._number("add", _READY.encode(), b"0")

    @property
    def host(self) -> str:
        """Where the master is."""
        return self._host

    @property
    def port(self) -> int:
        """The port at which the master serves."""
        return self._port

    @property
    def libuvBackend(self) -> bool:
        """What `use_libuv` was."""
        return self._libuv

    def __repr__(self) -> str:
        server = "<nullptr>" if self._server is None else f"TCPServer(port={self._server.port})"
        client, remote = self._connection.getsockname(), self._connection.getpeername()
        addresses = f"addr=[{client[0]}]:{client[1]}, remote=[{remote[0]}]:{remote[1]}"
        return f"TCPStore(client=TCPClient(SocketImpl(fd={self._connection.fileno()}, {addresses})), server={server})"

    def local_address(self) -> str:
        """The address of this machine, as the master sees it."""
        address: str = self._connection.getsockname()[0]
        return address

    def _ask(self, command: str, *arguments: bytes) -> list[bytes]:
        with self._lock:
            try:
                _send(self._connection, [command.encode(), *arguments])
                status, *answer = _receive(self._connection)
            except (OSError, EOFError) as error:
                raise errors.DistNetworkError(
                    f"the store at {self._host}:{self._port} does not answer: the process that serves it has ended ({error})"
                ) from error
        if status == b"error":
            raise _ERRORS.get(answer[0].decode(), errors.DistStoreError)(answer[1].decode())
        return answer

    def _number(self, command: str, *arguments: bytes) -> int:
        return int(self._ask(command, *arguments)[0])

    def _patiently(self, command: str, keys: Sequence[str], timeout: timedelta, *arguments: bytes) -> list[bytes]:
        try:
            return self._ask(command, *arguments)
        except errors.DistStoreError as error:
            if str(error) != "Wait timeout":
                raise
            milliseconds = round(timeout.total_seconds() * 1000)
            waiting = ", ".join(f"/{key}" for key in keys)
            raise errors.DistStoreError(f"wait timeout after {milliseconds}ms, keys: {waiting}") from None

    def set(self, key: str, value: str | bytes, /) -> None:
        self._ask("set", _key(key), as_bytes(value))

    def get(self, key: str, /) -> bytes:
        seconds = str(self._timeout.total_seconds()).encode()
        return self._patiently("get", [key], self._timeout, _key(key), seconds)[0]

    def add(self, key: str, amount: int, /) -> int:
        return self._number("add", _key(key), str(amount).encode())

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes, /) -> bytes:
        return self._ask("compare_set", _key(key), as_bytes(expected), as_bytes(desired))[0]

    def check(self, keys: Sequence[str], /) -> bool:
        return bool(self._ask("check", *map(_key, keys))[0])

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None, /) -> None:
        timeout = self._timeout if timeout is None else timeout
        self._patiently("wait", keys, timeout, str(timeout.total_seconds()).encode(), *map(_key, keys))

    def delete_key(self, key: str, /) -> bool:
        return bool(self._ask("delete_key", _key(key))[0])

    def num_keys(self) -> int:
        return self._number("num_keys")

    def list_keys(self) -> list[str]:
        return [key.decode()[1:] for key in self._ask("list_keys") if key.startswith(b"/")]

    def append(self, key: str, value: str | bytes, /) -> None:
        self._ask("append", _key(key), as_bytes(value))

    def queue_push(self, key: str, value: str | bytes, /) -> None:
        self._ask("queue_push", _key(key), as_bytes(value))

    def queue_pop(self, key: str, block: bool = True, /) -> bytes:
        deadline = time.monotonic() + self._timeout.total_seconds()
        while True:
            try:
                return self._ask("queue_pop", _key(key))[0]
            except errors.QueueEmptyError:
                if not block:
                    raise
                if time.monotonic() > deadline:
                    milliseconds = round(self._timeout.total_seconds() * 1000)
                    raise errors.DistStoreError(f"wait timeout after {milliseconds}ms, keys: /{key}") from None
                time.sleep(0.005)

    def queue_len(self, key: str, /) -> int:
        return self._number("queue_len", _key(key))

    def clone(self) -> TCPStore:
        return TCPStore(self._host, self._port, None, False, self._timeout)


def _key(key: str) -> bytes:
    return b"/" + key.encode()
