"""The handle of an operation between processes that may still run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from .._forking import new_lock
from ..futures import Future

__all__ = ["Work"]


class Work:
    """An operation that was begun. `wait()` returns when it is done, and raises what went wrong."""

    def __init__(self, run: Callable[[], Any] | None = None, name: str = "") -> None:
        self._run_function = run
        self._name = name
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._outputs: list[Any] = []
        self._source = -1
        self._future: Future[list[Any]] = Future()

    def _run(self) -> None:
        """Do it, on the thread that calls this."""
        error: BaseException | None = None
        try:
            if self._run_function is not None:
                self._outputs = self._run_function() or []
        except BaseException as problem:
            error = problem
        self._finish(error)

    def _finish(self, error: BaseException | None) -> None:
        self._error = error
        self._run_function = None  # which keeps the tensors alive
        self._done.set()
        if error is None:
            self._future.set_result(self._outputs)
        else:
            self._future.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is done."""
        seconds = None if timeout is None or timeout <= timedelta(0) else timeout.total_seconds()
        if not self._done.wait(seconds):
            raise RuntimeError("Operation timed out!")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether it is done, well or not."""
        return self._done.is_set()

    def is_success(self) -> bool:
        """Whether it is done, and well."""
        return self._done.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        """What went wrong."""
        return self._error

    def result(self) -> list[Any]:
        """The tensors that were written."""
        if not self.is_completed():
            raise RuntimeError("Work needs to be completed before calling result(). Should call wait() before result().")
        return self._outputs

    def source_rank(self) -> int:
        """Of a message that any process could send: the rank of who did."""
        if self._source < 0:
            raise RuntimeError("sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call.")
        return self._source

    _source_rank = source_rank

    def synchronize(self) -> None:
        """Wait until it is done; there are no streams here."""
        self.wait()

    block_current_stream = synchronize

    def get_future(self) -> Future[list[Any]]:
        """The future of the tensors that are written."""
        return self._future

    get_future_result = get_future

    def _get_op_type(self) -> str:
        return self._name

    def boxed(self) -> Work:
        """The handle itself."""
        return self

    unbox = boxed


class ReceiveWork(Work):
    """A message that is taken when somebody waits for it."""

    def __init__(self, run: Callable[[], tuple[int, list[Any]]], has_come: Callable[[], bool]) -> None:
        super().__init__(None, "recv")
        self._take = run
        self._has_come = has_come
        self._lock = new_lock()

    def wait(self, timeout: timedelta | None = None) -> bool:
        with self._lock:
            if not self._done.is_set():
                error: BaseException | None = None
                try:
                    self._source, self._outputs = self._take()
                except BaseException as problem:
                    error = problem
                self._finish(error)
        return super().wait(timeout)

    def is_completed(self) -> bool:
        if not self._done.is_set() and self._has_come():
            self.wait()
        return self._done.is_set()
