"""Threads that compute parts of one kernel, beside the thread that called it.

A helper is woken for one job at a time. The caller takes parts like everybody else, and at the end takes the job back from helpers that have
not come to it: it never waits for a thread that has nothing to finish, so that a busy machine delays it by one part at most, and callers
do not wait for each other. A call for which no helper is idle runs on the calling thread alone.

Helpers are made when they are first needed, and stay. Python does not count them among its threads: it does not wait for them at exit,
they are in no list, and no profiler is told of them.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable

from ._backends.cpu.machinery.floating_errors import IGNORED, state_variable
from ._forking import call_in_child, new_lock

__all__ = ["Part", "Work", "run"]

Part = tuple[int, int]  # from where to where
Work = Callable[[int, int], object]

_idle: list[_Helper] = []
_started = 0
_starting = new_lock()


class _Job:
    """Work, and the parts of it that nobody has begun."""

    __slots__ = ("error", "parts", "work")

    def __init__(self, work: Work, parts: list[Part]) -> None:
        self.work = work
        self.parts = parts
        self.error: BaseException | None = None

    def take_part(self) -> None:
        """Work until nothing is left to begin."""
        work, parts = self.work, self.parts
        while parts:
            try:
                begin, end = parts.pop()
            except IndexError:  # another thread was faster
                return
            work(begin, end)


class _Ticket:
    """A job for one helper, which the caller may take back as long as the helper has not begun."""

    __slots__ = ("finished", "jobs")

    def __init__(self, job: _Job) -> None:
        self.jobs = [job]  # popped by whoever comes first
        self.finished = _thread.allocate_lock()  # released by the helper when it is through with the job
        self.finished.acquire()

    def take(self) -> _Job | None:
        try:
            return self.jobs.pop()
        except IndexError:
            return None


class _Helper:
    """A thread that waits for a ticket."""

    __slots__ = ("ticket", "wake")
    ticket: _Ticket

    def __init__(self) -> None:
        self.wake = _thread.allocate_lock()
        self.wake.acquire()
        _thread.start_new_thread(self._serve, ())

    def _serve(self) -> None:
        state_variable.set(IGNORED)  # of floating-point errors, which each thread has for itself
        while True:
            self.wake.acquire()
            ticket = self.ticket
            job = ticket.take()
            if job is not None:
                try:
                    job.take_part()
                except BaseException as error:
                    job.error = error
                    job.parts.clear()
                del job
            _idle.append(self)  # first, so that the caller finds it when it comes with the next job
            ticket.finished.release()


def run(work: Work, parts: list[Part], threads: int) -> None:
    """Call `work` once for each part, on this thread and on others: so many in all, if they are idle.

    The list is used up, from its end. When this returns or raises, no part is being worked on.
    """
    job = _Job(work, parts)
    tickets: list[_Ticket] = []
    try:
        while len(tickets) < threads - 1 and (helper := _idle_helper(threads)) is not None:
            helper.ticket = ticket = _Ticket(job)
            tickets.append(ticket)
            helper.wake.release()
        job.take_part()
    finally:
        _settle(job, tickets)
    if job.error is not None:
        raise job.error


def _idle_helper(threads: int) -> _Helper | None:
    try:
        return _idle.pop()
    except IndexError:
        return _new_helper() if _started < threads - 1 else None


def _new_helper() -> _Helper | None:
    """One more thread, unless the system has none to give, or the interpreter is about to exit."""
    global _started
    with _starting:
        try:
            helper = _Helper()
        except RuntimeError:
            return None
        _started += 1
        return helper


def _settle(job: _Job, tickets: list[_Ticket]) -> None:
    """Wait for the parts that helpers are in the middle of. An interrupt comes after them: they write to memory that the caller goes on with."""
    interrupt: BaseException | None = None
    job.parts.clear()
    for ticket in tickets:
        waiting = ticket.take() is None
        while waiting:
            try:
                ticket.finished.acquire()
                waiting = False
            except BaseException as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt


def _forget() -> None:
    """In a forked process there are no helpers yet."""
    global _started
    _idle.clear()
    _started = 0


call_in_child(_forget)
