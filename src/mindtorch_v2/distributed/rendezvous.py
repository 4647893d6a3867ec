"""How processes find each other: a URL gives a store, the rank of the process and the number of processes."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlparse, urlunparse

from .constants import default_pg_timeout
from .file_store import FileStore
from .store import Store
from .tcp_store import TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]

Meeting = Iterator[tuple[Store, int, int]]
_handlers: dict[str, Callable[..., Meeting]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Meeting]) -> None:
    """Have a handler meet the processes for URLs of a scheme."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Meeting:
    """Yields the store, the rank of this process and the number of processes for a URL: `env://`, `tcp://host:port`, `file:///path`.

    Args:
        rank, world_size: of this program; -1: they are in the URL or, for `env://`, in the environment.
    """
    if not isinstance(url, str | bytes):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, numbers.Integral):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, numbers.Integral):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    parts = urlparse(url)
    if rank != -1 or world_size != -1:
        query = _query(parts.query)
        if "rank" in query or "world_size" in query:
            raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
        given = {"rank": rank, "world_size": world_size}
        query.update({name: str(value) for name, value in given.items() if value != -1})
        url = urlunparse(parts._replace(query="&".join(f"{name}={value}" for name, value in query.items())))
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    return _handlers[parts.scheme](url, **kwargs)


def _query(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split("&") if pair)
    return {name: value for name, _, value in pairs}


def _number(query: dict[str, str], name: str, scheme: str) -> int:
    if name not in query:
        raise _error(scheme, f"{name.replace('_', ' ')} parameter missing")
    return int(query[name])


def _error(scheme: str, text: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {text}")


def _meet_in_file(url: str, **kwargs: Any) -> Meeting:
    parts = urlparse(url)
    if not parts.path:
        raise _error("file", "path missing")
    query = _query(parts.query)
    rank, world_size = _number(query, "rank", "file"), _number(query, "world_size", "file")
    yield FileStore(parts.path, world_size), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _meet_at_address(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Meeting:
    parts = urlparse(url)
    if parts.port is None:
        raise _error("tcp", "port number missing")
    query = _query(parts.query)
    rank, world_size = _number(query, "rank", "tcp"), _number(query, "world_size", "tcp")
    yield _tcp_store(parts.hostname or "", parts.port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _meet_by_environment(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Meeting:
    query = _query(urlparse(url).query)
    rank = int(query.get("rank") or _environment("RANK"))
    world_size = int(query.get("world_size") or _environment("WORLD_SIZE"))
    host, port = _environment("MASTER_ADDR"), int(_environment("MASTER_PORT"))
    yield _tcp_store(host, port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


def _environment(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise _error("env", f"environment variable {name} expected, but not set")
    return value


def _tcp_store(host: str, port: int, rank: int, world_size: int, timeout: timedelta) -> TCPStore:
    """The store of rank 0, or of the launcher if it has one."""
    if not 0 <= port < 2**16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    launched = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return TCPStore(host, port, world_size, rank == 0 and not launched, timeout, multi_tenant=not launched)


register_rendezvous_handler("tcp", _meet_at_address)
register_rendezvous_handler("env", _meet_by_environment)
register_rendezvous_handler("file", _meet_in_file)
