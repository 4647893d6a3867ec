"""One recording: switches the recorder on and off, and turns what was logged into a `Session`."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from dataclasses import dataclass

from ..._dispatch import keys
from ..._forking import new_lock
from ..activity import HEAP, STORAGES
from ..model import places
from ..model.session import Info, Session, empty_session
from . import columns, recorder, stack_walk
from .collector_runs import CollectorRuns
from .columns import LogRecords
from .heap import Heap
from .memory import Storages
from .module_calls import ModuleCalls
from .names import Names
from .operators import Operators
from .python_tracer import PythonFunctions
from .recorder import Log
from .roles import TensorRoles
from .scopes import OpenScopes
from .source import Findings, Source
from .survivors import References
from .threads import Threads
from .watching import ScopesAndBackward

__all__ = ["Capture", "Settings", "abandon", "active", "caller", "is_clean"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What to record."""

    record_shapes: bool = False
    with_stack: bool = False
    memory: str | None = None  # what it is counted by
    with_flops: bool = False
    with_modules: bool = False
    all_threads: bool = True
    overload_names: bool = False
    python_gc: bool = False
    cpu: bool = True

    @property
    def data_flow(self) -> bool:
        """Whether to record what a memory timeline is made of."""
        return self.record_shapes and self.with_stack and self.memory == STORAGES


class Capture:
    """A recording that runs between `start` and `stop`. There is one at a time in a process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.started_at = ""  # where in the program, for the message to whoever starts another
        self.survivors: References = {}  # storages that lived at the end, where memory is recorded
        self._operators = Operators(_form(settings))
        self._log = recorder.log_of(self._operators.key_set)
        self._sources = _sources(settings, self._log, self._operators)
        self._started = 0.0
        self._epoch_ns = 0  # of the Unix clock when the recorder's reads 0
        self._thread = 0
        self._pid = os.getpid()
        self._steps: list[tuple[float, int]] = []
        self._collecting = False

    def prepare(self, *, warm: bool = False) -> None:
        """Compile the recording variant of every operator that has run, so that events show no compilation.

        With `warm`, operators record from now on to no effect: what they call only while recorded gets compiled too.
        """
        if not self.settings.cpu:
            return
        self._operators.compile()
        if warm:
            global _may_be_on
            _may_be_on = self._sources
            self._operators.resume()

    def cancel(self) -> None:
        """End what `prepare` began."""
        self._operators.discard()

    def start(self, step: int = 0) -> None:
        """Begin to record. Events of a call that is running already are not recorded."""
        global active, _may_be_on
        with _lock:
            if active is not None:
                raise RuntimeError(
                    f"a profiler is already recording (started at {active.started_at}); stop it before you start another"
                )
            active, _may_be_on = self, self._sources
        try:
            self._start(step)
        except BaseException:
            abandon()
            raise

    def _start(self, step: int) -> None:
        self.started_at = caller()
        self._thread = threading.get_ident()
        for source in self._sources:
            source.begin()
        self._started = recorder.clock()
        self._epoch_ns = time.time_ns() - round(self._started * 1e9) if recorder.clock is time.perf_counter else 0
        self._steps = [(self._started, step)]
        self.resume()

    def resume(self) -> None:
        """Collect again after `pause`."""
        if not self._collecting:
            self._collecting = True
            for source in self._sources:
                source.resume()

    def pause(self) -> None:
        """Stop collecting, keeping what was collected. Scopes that are open go on."""
        if self._collecting:
            now = recorder.clock()  # what stopping takes is in nobody's frame
            for source in reversed(self._sources):
                source.pause(now)
            self._collecting = False  # last: after an interrupt, the next call does the rest

    def mark_step(self, step: int) -> None:
        """Events from here on belong to this step."""
        self._steps.append((recorder.clock(), step))

    @property
    def is_running(self) -> bool:
        return active is self and self._pid == os.getpid()

    def stop(self, kinds: set[str] | None = None) -> Session:
        """End the recording, and keep events of these kinds (None: of all). Scopes that were never left end here."""
        global active, _may_be_on
        if not self.is_running:
            return empty_session()
        try:
            self.pause()
            for source in reversed(self._sources):
                source.end()
            findings = Findings(stopped=recorder.clock())
            for source in self._sources:
                source.take(findings)
            active, _may_be_on = None, ()
        except BaseException:
            abandon()
            raise
        self.survivors = findings.survivors
        return columns.assemble(
            columns.Context(
                info=self._info(findings.stopped),
                epoch_ns=self._epoch_ns,
                steps=self._steps,
                only_thread=None if self.settings.all_threads else self._thread,
                kinds=kinds,
                found=findings,
            )
        )

    def _info(self, stopped: float) -> Info:
        s = self.settings
        return Info(
            started_ns=round(self._started * 1e9) + self._epoch_ns,
            stopped_ns=round(stopped * 1e9) + self._epoch_ns,
            pid=self._pid,
            process_name=os.path.basename(sys.executable) or "python",
            source_roots=places.search_path(),
            record_shapes=s.record_shapes,
            with_stack=s.with_stack,
            profile_memory=s.memory is not None,
            with_modules=s.with_modules,
            with_flops=s.with_flops,
            overload_names=s.overload_names,
        )


def _form(settings: Settings) -> tuple[int, ...]:
    """The keys that say what the records of operators hold."""
    wanted = {
        keys.RECORD_SHAPES: settings.record_shapes,
        keys.RECORD_STACKS: settings.with_stack,
        keys.RECORD_STORAGES: settings.memory == STORAGES,
        keys.RECORD_HEAP: settings.memory == HEAP,
        keys.RECORD_OPERANDS: settings.data_flow,
    }
    return tuple(key for key, is_wanted in wanted.items() if is_wanted)


def _sources(settings: Settings, log: Log, operators: Operators) -> tuple[Source, ...]:
    """What is observed, in the order in which it is switched on.

    At the end, open scopes and calls of modules are written to the log; then the log is read, which frees it, should memory be short.
    Storages and roles come late in that order, because they look at all objects there are. Operators record when all that they write to is on, and
    Python functions begin last.
    """
    if not settings.cpu:
        return (LogRecords(log), Names(), Threads())
    modules = ModuleCalls(log, record=settings.with_modules)
    owner = modules.owner if settings.with_modules else None
    wanted: list[tuple[Source, bool]] = [
        (OpenScopes(log), True),
        (modules, settings.with_modules or settings.with_stack),
        (LogRecords(log), True),
        (Names(), True),
        (Threads(), True),
        (TensorRoles(), settings.data_flow),
        (Storages(with_stack=settings.with_stack), settings.memory == STORAGES),
        (Heap(), settings.memory == HEAP),
        (CollectorRuns(log), settings.python_gc),
        (ScopesAndBackward(log, owner, with_roles=settings.data_flow), True),
        (operators, True),
        # with modules that record themselves, the tracer leaves theirs out: it does not see every thread
        (PythonFunctions(log, None if settings.with_modules else modules), settings.with_stack),
    ]
    return tuple(source for source, is_wanted in wanted if is_wanted)


active: Capture | None = None
_may_be_on: tuple[Source, ...] = ()  # the sources of a recording that runs or warms up, or of one whose end was interrupted
_lock = new_lock()


def is_clean() -> bool:
    """Whether nothing of any recording is switched on."""
    return not _may_be_on


def caller() -> str:
    """Return the line of the program that runs, as `file:line`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and stack_walk.is_internal(frame.f_code):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def abandon() -> None:
    """Give up what is being recorded, however far it has come. After an interrupt, what is left is done by the next call."""
    global active, _may_be_on
    with contextlib.ExitStack() as backwards:  # each is given up, whatever happens to the others
        for source in _may_be_on:
            backwards.callback(source.discard)
    if active is not None:
        active._collecting = False
    active, _may_be_on = None, ()


os.register_at_fork(after_in_child=abandon)  # a forked process starts without the recording of its parent, which goes on there
