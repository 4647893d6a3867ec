"""`spawn`: one function in several processes, and the first error of any of them."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]

_SECONDS_TO_END = 30  # that processes have after SIGTERM


class ProcessException(Exception):  # noqa: N818 - torch's name
    """One of the processes failed."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.msg, self.error_index, self.error_pid))


class ProcessRaisedException(ProcessException):
    """One of the processes raised an exception; the text has its traceback."""


class ProcessExitedException(ProcessException):
    """One of the processes was killed by a signal, or exited with a status of its own."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name))


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], error_file: str) -> None:
    """What each process does. An exception's text goes to the file."""
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent has it, too
    except Exception:
        with open(error_file, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that run, to be joined."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The number of each process."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for some of the processes; returns whether all have ended.

        When one failed, the others are ended, and its error is raised. They have the grace period to end by themselves,
        then as long after SIGTERM.
        """
        if not self.sentinels:
            return True
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout):
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                self._end_all(grace_period)
                raise self._error(index)
        return not self.sentinels

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._join_all(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._join_all(_SECONDS_TO_END if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def _join_all(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def _error(self, index: int) -> ProcessException:
        failed = self.processes[index]
        try:
            with open(self.error_files[index], encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return self._exit_error(index, failed)
        os.unlink(self.error_files[index])
        return ProcessRaisedException(f"\n\n-- Process {index:d} terminated with the following error:\n{text}", index, failed.pid)

    def _exit_error(self, index: int, failed: Any) -> ProcessExitedException:
        code = failed.exitcode
        if code >= 0:
            return ProcessExitedException(f"process {index:d} terminated with exit code {code:d}", index, failed.pid, code)
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        return ProcessExitedException(f"process {index:d} terminated with signal {name}", index, failed.pid, code, name)


class SpawnContext(ProcessContext):
    """`ProcessContext` by its old name."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, error_files)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in this many processes. Returns when all have ended, or at once with their context."""
    context: Any = multiprocessing.get_context(start_method)
    processes, error_files = [], []
    for i in range(nprocs):
        descriptor, error_file = tempfile.mkstemp(prefix="mindtorch-error-", suffix=".txt")
        os.close(descriptor)
        os.unlink(error_file)  # it is there again if there is an error
        process = context.Process(target=_run, args=(fn, i, args, error_file), daemon=daemon)
        process.start()
        processes.append(process)
        error_files.append(error_file)
    running = ProcessContext(processes, error_files)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in this many new processes; see `start_processes`."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method use:\n\t\t "
            "torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon)
