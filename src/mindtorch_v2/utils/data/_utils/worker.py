"""What a worker process of a `DataLoader` does: it fetches the batches that it is asked for, and sends them."""

from __future__ import annotations

import os
import random
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .... import _random
from ...._threads import set_num_threads
from ...._utils import ExceptionWrapper
from .channel import Channel, Closed
from .fetch import _IterableDatasetFetcher, _MapDatasetFetcher

__all__ = ["WorkerInfo", "get_worker_info"]

_FETCHERS = (_MapDatasetFetcher, _IterableDatasetFetcher)  # by the number of the kind of data set
_ITERABLE = 1


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Which worker a process is."""

    id: int  # from 0 to num_workers - 1
    num_workers: int
    seed: int  # of this worker's random numbers
    dataset: Any  # this worker's copy
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """What a worker of a `DataLoader` knows of itself: its number `id`, `num_workers`, its `seed` and its copy of the `dataset`.

    None in the main process.
    """
    return _worker_info


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """Sent by a worker whose stream has ended."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Sent to a worker to begin another epoch, and sent back when it is about to."""

    seed: int | None = None


def _seed_everything(base_seed: int, worker_id: int) -> int:
    """Give Python's, torch's and NumPy's generators streams of this worker's own, as torch does; returns the seed of the first two."""
    seed = base_seed + worker_id
    random.seed(seed)
    _random.manual_seed(seed)
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(words).generate_state(4))
    return seed


def _leave_signals_to_parent() -> None:
    """Ctrl-C reaches all processes of a terminal: whether to go on is for the parent to say. SIGTERM ends the worker, whoever set a handler."""
    signal.signal(signal.SIGINT, lambda number, frame: None)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # the parent has held it back


class _Connection:
    """A worker's end of the channel. Waiting ends when the parent does."""

    def __init__(self, end: socket.socket, interval: float) -> None:
        self._channel = Channel(end)
        self._interval = interval
        self._parent = os.getppid()
        self._arrived: list[tuple[Any, Any]] = []

    def _wait(self) -> None:
        if not self._channel.wait(self._interval) and os.getppid() != self._parent:
            raise Closed

    def get(self) -> tuple[Any, Any]:
        """The next object from the parent, with its tag."""
        while not self._arrived:
            self._wait()
            self._arrived = self._channel.receive()
        return self._arrived.pop(0)

    def put(self, tag: Any, obj: Any = None) -> None:
        """Send an object to the parent, and wait until it is sent."""
        self._channel.put(tag, obj)
        while self._channel.sends:
            self._wait()
            self._channel.flush()
            self._arrived += self._channel.receive()


@dataclass
class Job:
    """What a worker is started with."""

    dataset_kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    base_seed: int
    init_fn: Callable[[int], Any] | None
    worker_id: int
    num_workers: int
    check_interval: float

    def fetcher(self) -> Any:
        """What fetches the batches of one epoch."""
        return _FETCHERS[self.dataset_kind](self.dataset, self.auto_collation, self.collate_fn, self.drop_last)

    def error(self) -> ExceptionWrapper:
        """The current exception, to be raised in the parent."""
        return ExceptionWrapper(where=f"in DataLoader worker process {self.worker_id}")


def _worker_loop(job: Job, end: socket.socket) -> None:
    """Serve the parent until it ends the conversation."""
    global _worker_info
    try:
        _leave_signals_to_parent()
        connection = _Connection(end, job.check_interval)
        set_num_threads(1)
        seed = _seed_everything(job.base_seed, job.worker_id)
        _worker_info = WorkerInfo(job.worker_id, job.num_workers, seed, job.dataset)
        fetcher: Any = None
        try:
            if job.init_fn is not None:
                job.init_fn(job.worker_id)
            fetcher = job.fetcher()
        except Exception:
            fetcher = _Failed(job.error())
        _serve(job, connection, fetcher)
    except (Closed, KeyboardInterrupt):
        pass


class _Failed:
    """In place of a fetcher that could not be made: every batch is the error."""

    def __init__(self, error: ExceptionWrapper) -> None:
        self._error = error

    def fetch(self, index: Any) -> ExceptionWrapper:
        return self._error


def _serve(job: Job, connection: _Connection, fetcher: Any) -> None:
    ended = False  # the stream
    while True:
        number, index = connection.get()
        if number is None:
            return
        if isinstance(number, _ResumeIteration):
            connection.put(number)
            ended = False
            try:
                fetcher = job.fetcher()
            except Exception:
                fetcher = _Failed(job.error())
            continue
        if ended:
            continue
        try:
            data = index if isinstance(index, ExceptionWrapper) else fetcher.fetch(index)
        except StopIteration:
            ended = job.dataset_kind == _ITERABLE
            data = _IterableDatasetStopIteration(job.worker_id) if ended else job.error()
        except Exception:
            data = job.error()
        _send(job, connection, number, data)
        del data, index  # not kept in memory while waiting


def _send(job: Job, connection: _Connection, number: int, data: Any) -> None:
    """Send a batch, or the error that it cannot be sent."""
    try:
        connection.put(number, data)
    except Closed:
        raise
    except Exception:
        if isinstance(data, ExceptionWrapper):  # whose type cannot be pickled
            data.exc_msg = f"Traceback of {data.exc_type.__qualname__}:\n{data.exc_msg}"
            data.exc_type = RuntimeError
        else:
            data = job.error()
        connection.put(number, data)
