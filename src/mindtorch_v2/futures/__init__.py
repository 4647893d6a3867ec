"""torch.futures: results that come later, from another thread or a callback."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from .._forking import new_lock

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that is not there yet, and then a value or an exception, once and for all."""

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        if devices:
            raise RuntimeError(f"a future waits for no device here; got devices={list(devices)!r}")
        self._done = threading.Event()
        self._lock = new_lock()
        self._callbacks: list[Callable[[], None]] = []
        self._value: Any = None
        self._exception: BaseException | None = None

    def done(self) -> bool:
        """Whether the value or the exception is there."""
        return self._done.is_set()

    def wait(self) -> T:
        """Wait for the value; raises the exception, if there is one."""
        self._done.wait()
        return self._result()

    def value(self) -> T:
        """The value, which must be there; raises the exception, if there is one."""
        if not self.done():
            raise RuntimeError("value() was called on a future that is not complete; call wait(), or value() in a callback")
        return self._result()

    def _result(self) -> T:
        if self._exception is not None:
            raise self._exception
        value: T = self._value
        return value

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """The future of what a callback returns when it is given this one, complete."""
        if not callable(callback):
            raise TypeError(f"then(): the callback must be callable, got {type(callback).__name__}")
        chained: Future[S] = Future()

        def run() -> None:
            try:
                result = callback(self)
            except Exception as error:
                text = f"Got the following error when running the callback: {type(error).__name__}: {error}"
                chained.set_exception(RuntimeError(text))
            else:
                chained.set_result(result)

        self._when_done(run)
        return chained

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call a function with this future when it is complete. What it raises is printed."""

        def run() -> None:
            try:
                callback(self)
            except Exception:
                print("a callback of a future failed, and what it raised is lost:", file=sys.stderr)
                traceback.print_exc()

        self._when_done(run)

    def _when_done(self, run: Callable[[], None]) -> None:
        with self._lock:
            if not self.done():
                self._callbacks.append(run)
                return
        run()

    def set_result(self, result: T) -> None:
        """Complete the future with a value."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Complete the future with an exception."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, exception: BaseException | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked completed once."
                )
            self._value, self._exception = value, exception
            callbacks, self._callbacks = self._callbacks, []
            self._done.set()
        for run in callbacks:
            run()


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """The future of the list, complete when all of its futures are: with the first exception among them, if there is one."""
    collected: Future[list[Future[Any]]] = Future()
    lock = new_lock()
    missing = len(futures)

    def arrived(future: Future[Any]) -> None:
        nonlocal missing
        with lock:
            missing -= 1
            is_last = missing == 0
        if is_last:
            complete()

    def complete() -> None:
        failed = [f._exception for f in futures if f._exception is not None]
        if failed:
            collected.set_exception(failed[0])
        else:
            collected.set_result(futures)

    for future in futures:
        future.add_done_callback(arrived)
    if not futures:
        complete()
    return collected


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all futures, in order; raises the first exception."""
    return [future.wait() for future in collect_all(futures).wait()]
