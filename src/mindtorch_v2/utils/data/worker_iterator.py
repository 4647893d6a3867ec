"""Batches that workers fetch: which worker is asked for which batch, and what happens when one of them fails."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import socket
import time
import warnings
from collections import deque
from collections.abc import Iterator
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

from ... import multiprocessing
from ..._utils import ExceptionWrapper
from . import _utils
from ._utils.channel import Channel, Closed, owned_by_this_process
from ._utils.worker import Job, _IterableDatasetStopIteration, _ResumeIteration, _worker_loop
from .iterator import _BaseDataLoaderIter, _DatasetKind

if TYPE_CHECKING:
    from .dataloader import DataLoader

__all__ = ["_MultiProcessingDataLoaderIter"]


@contextlib.contextmanager
def _interrupts_held(context: Any) -> Iterator[None]:
    """Ctrl-C waits while a worker is forked: until the worker leaves it to its parent, it would end in an exception of its own.

    A worker that is spawned begins as any Python does, and what a server forks would have it held back for ever.
    """
    if context.get_start_method() != "fork":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """An epoch whose batches come from workers, or all epochs of workers that are persistent.

    A batch has a number, in the order of the sampler. Each worker has a channel: the numbers and indices of the next batches go
    out on it, batches come back. A worker's end is seen as the end of its channel, and a worker sees that of the parent so:
    no process waits for one that is gone.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._shutdown = True  # until there is something to end
        super().__init__(loader)
        self._prefetch_factor: int = loader.prefetch_factor  # type: ignore[assignment]
        self._in_order = loader.in_order
        self._worker_init_fn = loader.worker_init_fn
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._pid = os.getpid()
        self._workers: list[Any] = []
        self._channels: list[Channel] = []
        self._arrived: deque[tuple[Any, Any]] = deque()
        # by the number of a batch: its worker, and the batch itself if it has come out of order
        self._task_info: dict[int, tuple[Any, ...]] = {}
        self._shutdown = False
        for i in range(self._num_workers):
            self._start_worker(i, loader.multiprocessing_context or multiprocessing)
        self._reset(loader, first_iter=True)

    def _start_worker(self, worker_id: int, context: Any) -> None:
        job = Job(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
            self._base_seed,
            self._worker_init_fn,
            worker_id,
            self._num_workers,
            _utils.MP_STATUS_CHECK_INTERVAL,
        )
        ours, theirs = socket.socketpair()
        channel = owned_by_this_process(Channel(ours))
        worker = context.Process(target=_worker_loop, args=(job, theirs), daemon=True)
        try:
            with _interrupts_held(context):
                worker.start()
        except BaseException as error:
            channel.close()
            if isinstance(error, TypeError | AttributeError | PicklingError):
                warnings.warn(
                    "Got pickle error when attempting to start a worker Process. This might be because the worker Process arguments "
                    "are not picklable. Python 3.14+ changed the multiprocessing start method in non-Mac POSIX platforms to "
                    "'forkserver', which requires the worker Process arguments to be picklable. You can also try "
                    "multiprocessing.set_start_method('fork').",
                    stacklevel=5,
                )
            raise
        finally:
            theirs.close()
        self._channels.append(channel)
        self._workers.append(worker)

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._send_idx = 0  # number of the next batch to ask for
        self._rcvd_idx = 0  # number of the next batch to give
        self._task_info = {}
        self._tasks_outstanding = 0
        self._workers_status = [True] * self._num_workers  # False: has ended, or its stream has
        self._workers_num_tasks = [0] * self._num_workers
        self._worker_queue_idx_cycle = itertools.cycle(range(self._num_workers))
        if not first_iter:
            for channel in self._channels:
                channel.put(_ResumeIteration())
            resumed = 0
            while resumed < self._num_workers:  # what comes before belongs to the last epoch
                resumed += isinstance(self._get_data()[0], _ResumeIteration)
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    # --- asking ---------------------------------------------------------------------------------------------------------

    def _try_put_index(self) -> None:
        """Ask a worker for the next batch, if there is one."""
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker_id = self._next_worker()
        if worker_id is None:
            return
        self._task_info[self._send_idx] = (worker_id,)
        self._workers_num_tasks[worker_id] += 1
        self._tasks_outstanding += 1
        self._send_idx += 1
        self._channels[worker_id].put(self._send_idx - 1, index)

    def _next_worker(self) -> int | None:
        """The worker whose turn it is; where batches may come in any order, the next one that has time."""
        for _ in range(self._num_workers):
            worker_id = next(self._worker_queue_idx_cycle)
            if self._workers_status[worker_id]:
                most = self._prefetch_factor * self._num_workers // sum(self._workers_status)
                if self._in_order or self._workers_num_tasks[worker_id] < most:
                    return worker_id
        return None

    # --- receiving ------------------------------------------------------------------------------------------------------

    def _next_data(self) -> Any:
        while True:
            if not self._find_next():
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if len(self._task_info[self._rcvd_idx]) == 2:
                worker_id, data = self._task_info.pop(self._rcvd_idx)
                self._rcvd_idx += 1
                return self._process_data(data, worker_id)
            number, data = self._get_data()
            self._tasks_outstanding -= 1
            if isinstance(data, _IterableDatasetStopIteration) and self._dataset_kind == _DatasetKind.Iterable:
                self._workers_status[data.worker_id] = False
                if not self._persistent_workers:
                    self._channels[data.worker_id].put(None)
                self._try_put_index()
            elif number == self._rcvd_idx or not self._in_order:
                worker_id = self._task_info.pop(number)[0]
                self._rcvd_idx += number == self._rcvd_idx
                return self._process_data(data, worker_id)
            else:
                self._task_info[number] += (data,)

    def _find_next(self) -> bool:
        """Go to the next batch that is there or will come; returns whether there is one."""
        while self._rcvd_idx < self._send_idx:
            info = self._task_info.get(self._rcvd_idx)
            if info is not None:
                if len(info) == 2 or self._workers_status[info[0]]:
                    return True
                del self._task_info[self._rcvd_idx]
            self._rcvd_idx += 1
        return False

    def _process_data(self, data: Any, worker_id: int) -> Any:
        self._workers_num_tasks[worker_id] -= 1
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    def _get_data(self) -> tuple[Any, Any]:
        """The next batch that arrives, with its number."""
        end = time.monotonic() + self._timeout if self._timeout > 0 else None
        while not self._arrived:
            seconds = _utils.MP_STATUS_CHECK_INTERVAL
            if end is not None:
                seconds = min(seconds, end - time.monotonic())
                if seconds <= 0:
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            self._receive(seconds)
        return self._arrived.popleft()

    def _receive(self, seconds: float) -> None:
        """Wait until something arrives or a worker ends. Raises if one that still has work has ended."""
        poll = select.poll()
        waiting = {}
        for worker_id, channel in enumerate(self._channels):
            if self._workers_status[worker_id] or channel.sends:
                waiting[channel.fileno()] = worker_id
                poll.register(channel, select.POLLIN | (select.POLLOUT if channel.sends else 0))
        ready = {waiting[descriptor] for descriptor, _ in poll.poll(seconds * 1000)}
        failed = []
        # when nothing comes: a worker may be gone while another process has a copy of its end
        for worker_id in ready or [i for i in waiting.values() if not self._workers[i].is_alive()]:
            channel = self._channels[worker_id]
            try:
                channel.flush()
                self._arrived += channel.receive()
                gone = not ready
            except Closed:
                gone = True
            if gone and self._workers_status[worker_id]:
                self._workers_status[worker_id] = False
                failed.append(self._workers[worker_id])
        if failed:
            pids = ", ".join(str(worker.pid) for worker in failed)
            raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from _cause(failed[0])

    # --- the end --------------------------------------------------------------------------------------------------------

    def _shutdown_workers(self) -> None:
        """End the workers: they finish what they are at, within a few seconds."""
        # at the interpreter's end, `multiprocessing` ends them; a forked process has nothing to do with its parent's
        if self._shutdown or _utils is None or _utils.python_exit_status or self._pid != os.getpid():
            return
        self._shutdown = True
        for channel in self._channels:
            channel.close()
        end = time.monotonic() + _utils.MP_STATUS_CHECK_INTERVAL
        for worker in self._workers:
            worker.join(max(0.0, end - time.monotonic()))
        for worker in self._workers:
            if worker.is_alive():
                worker.terminate()
                worker.join(_utils.MP_STATUS_CHECK_INTERVAL)
            if worker.is_alive():
                worker.kill()
                worker.join()
        self._arrived.clear()
        self._task_info.clear()

    def __del__(self) -> None:
        self._shutdown_workers()


def _cause(worker: Any) -> RuntimeError:
    """How a worker ended."""
    worker.join(_utils.MP_STATUS_CHECK_INTERVAL)
    code = worker.exitcode
    if code is not None and code < 0:
        return RuntimeError(f"DataLoader worker (pid {worker.pid}) is killed by signal: {signal.strsignal(-code)}. ")
    return RuntimeError(
        f"DataLoader worker (pid {worker.pid}) exited unexpectedly with exit code {code}. Details are lost due to multiprocessing. "
        "Rerunning with num_workers=0 may give better error trace."
    )
