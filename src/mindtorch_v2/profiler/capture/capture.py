"""One recording: switches the recorder on and off, and turns what was logged into a `Session`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _record
from ..._dispatch import keys
from ..._forking import new_lock
from ..._threads import get_num_threads
from ..model import dropping, places
from ..model.callers_level import callers_level
from ..model.session import Info, Session, empty_session
from ..options import Options
from ..spool.writer import Spool
from . import columns, log_records, surroundings
from .collected_time import CollectedTime
from .collector_runs import CollectorRuns
from .draining import Draining
from .event_costs import EventCosts
from .log_records import LogRecords
from .memory.heap import Heap
from .memory.roles import TensorRoles
from .memory.storages import Storages
from .memory.survivors import References
from .names import Names
from .operators import recorder
from .operators.compile_events import Compilations
from .operators.operators import Operators
from .operators.recorder import Log
from .reserve import Reserve
from .scopes.module_calls import ModuleCalls
from .scopes.observers import ScopesAndBackward
from .scopes.scopes import OpenScopes
from .source import Findings, Source
from .stacks import stack_walk
from .stacks.python_functions import PythonFunctions
from .threads import Threads
from .turns import Turns

__all__ = ["Capture", "abandon", "active", "caller", "is_clean"]


class Capture:
    """A recording that runs between `start` and `stop`. There is one at a time in a process."""

    def __init__(self, options: Options, *, append: bool = False, sampled: list[int] | None = None) -> None:
        """`append` says that a spool keeps the recordings that it has, and `sampled` counts the steps of the recordings that this one is joined to."""
        self.options = options
        self.started_at = ""  # where in the program, for the message to whoever starts another
        self.survivors: References = {}  # storages that lived at the end, where memory is recorded
        self.window_s = 0.0  # from start to stop
        self._operators = Operators(_form(options), options.recorded_names)
        self._log = recorder.log_of(self._operators.key_set)
        self._costs = EventCosts(self._operators.key_set, functions=options.with_stack)
        self._time = CollectedTime()
        self._steps: list[tuple[float, int]] = []
        self.sampled = [0, 0] if sampled is None else sampled  # steps that were not recorded, and that were
        turns = Turns(is_wanted=options.bounds.spool is not None)
        self._records = LogRecords(self._log, options.bounds, turns)
        self._spool: Spool | None = None
        sources = _sources(options, self._log, self._records, self._operators)
        if options.bounds.spool is not None:
            self._spool = Spool(
                options.bounds.spool,
                self._log,
                self._spool_head,
                self._steps,
                records=self._records,
                storages=next((source for source in sources if isinstance(source, Storages)), None),
                append=append,
                turns=turns,
            )
            sources = (*sources, self._spool)  # it writes what the others have found
        reserve = Reserve()
        self._draining = Draining((reserve, *sources), self._records, turns)
        # the thread begins late: nothing that looks at threads takes it for the program's
        self._sources = (*sources, self._costs, reserve, self._draining, self._time)
        self._epoch_ns = 0  # of the Unix clock when the recorder's reads 0
        self._thread = self._native_id = 0
        self._pid = os.getpid()
        self._is_wanted = self._is_sampled = True  # by the program, and by the sample of steps
        self._collecting = False

    def prepare(self, *, warm: bool = False) -> None:
        """Compile the recording variant of every operator that has run, so that events show no compilation.

        With `warm`, operators record from now on to no effect: what they call only while recorded gets compiled too.
        """
        if not self.options.cpu:
            return
        self._operators.compile()
        self._costs.measure()
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
        self._thread, self._native_id = threading.get_ident(), threading.get_native_id()
        for source in self._sources:
            source.begin()
        self._epoch_ns = _epoch_ns() if recorder.clock is time.perf_counter else 0
        self._steps[:] = [(0.0, step)]
        self.resume()  # the time of the recording begins at the end of this

    def resume(self) -> None:
        """Collect again after `pause`, where the step is one that is recorded."""
        self._is_wanted = True
        self._collect()

    def pause(self) -> None:
        """Stop collecting, keeping what was collected. Scopes that are open go on."""
        self._is_wanted = False
        self._collect()

    def _collect(self) -> None:
        """Collect or not, as is wanted."""
        if not (self._is_wanted and self._is_sampled):
            self._pause(recorder.clock())
        elif not self._collecting:
            self._collecting = True
            for source in self._sources:
                source.resume()

    def _pause(self, now: float) -> None:
        if self._collecting:
            for source in reversed(self._sources):
                source.pause(now)
            self._collecting = False  # last: after an interrupt, the next call does the rest

    def mark_step(self, step: int) -> None:
        """Events from here on belong to this step."""
        self._steps.append((recorder.clock(), step))

    def sample_step(self, *, is_wanted: bool) -> None:
        """Record the step that begins, unless the program has paused, or nothing until the next one does."""
        self.sampled[is_wanted] += 1
        self._is_sampled = is_wanted
        self._collect()

    def _unrecorded(self) -> tuple[str, ...]:
        """What was not recorded, and so cannot be counted among events."""
        options, skipped = self.options, self.sampled[0]
        names = [f"{name}={list(patterns)}" for name in ("include", "exclude") if (patterns := getattr(options.bounds, name))]
        return (
            *[f"{dropping.BY_NAME}: {', '.join(names)}"] * (options.recorded_names is not None),
            *[f"{skipped:,} of {sum(self.sampled):,} steps are not recorded: sample_steps"] * (skipped > 0),
        )

    @property
    def event_count(self) -> int:
        """How many events were recorded so far."""
        return self._records.count

    @property
    def bytes_per_event(self) -> int:
        """What the record of an event takes."""
        return 8 * self._log.width

    @property
    def is_running(self) -> bool:
        return active is self and self._pid == os.getpid()

    def stop(self, *, read_later: bool = False) -> Callable[[], Session]:
        """End the recording. Scopes that were never left end here. Returns a function that makes the session of it, by whatever thread.

        With `read_later` most of the work is left for that function, so that the program goes on. An error of the recorder itself is told in a
        warning, and leaves a session without events.
        """
        global active, _may_be_on
        if not self.is_running:
            return empty_session
        count = 0
        try:
            # first of all: what stopping takes is no part of the recording
            findings = Findings(stopped=recorder.clock(), read_later=read_later)
            count = self.event_count
            self._read(findings)
            active, _may_be_on = None, ()
        except BaseException as error:
            abandon()
            if not _is_recorders(error):
                raise
            return functools.partial(self._lost, self._info(findings), count, error)
        self.survivors, self.window_s = findings.survivors, findings.stopped - self._time.started
        return functools.partial(self._finish, findings, self._info(findings))

    def _finish(self, findings: Findings, info: Info) -> Session:
        count = 0
        try:
            if findings.records is None:
                assert findings.read_records is not None
                findings.records, findings.read_records = findings.read_records(), None
            count = len(findings.records.label)
            session = self._assembled(findings, info)
        except BaseException as error:
            if not _is_recorders(error):
                raise
            return self._lost(info, count, error)
        self._say_what_is_missing(findings)
        return dropping.to_depth(session, self.options.bounds.max_depth)

    def _assembled(self, findings: Findings, info: Info) -> Session:
        return columns.assemble(
            columns.Context(
                info=dataclasses.replace(info, dropped=tuple(findings.dropped.items())),
                epoch_ns=self._epoch_ns,
                steps=self._steps,
                thread=self._thread,
                only_thread=None if self.options.config.profile_all_threads else self._thread,
                kinds=self.options.kinds,
                found=findings,
            )
        )

    def _lost(self, info: Info, count: int, error: BaseException) -> Session:
        """A session without events, which says that the recorder failed, after a warning that does."""
        frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
        place = f"{os.path.basename(frame.f_code.co_filename)}:{line}"
        what = "1 event is" if count == 1 else f"{count:,} events are"
        spool = os.fspath(self.options.bounds.spool or "")
        told = (
            f"the recorder failed at the end of the recording, and {what} lost: {type(error).__name__}: {error} ({place})"
            + f"; the spool {spool!r} has them" * (self._spool is not None)
        )
        warnings.warn(told, stacklevel=callers_level())
        return empty_session(dataclasses.replace(info, unrecorded=(*info.unrecorded, f"T{told[1:]}")))

    def _say_what_is_missing(self, findings: Findings) -> None:
        """Warn of what the user did not ask for."""
        by_default = findings.dropped.get(dropping.MEMORY, 0)
        if by_default:
            bounds = self.options.bounds
            why = (
                "memory was short"
                if bounds.is_given
                else "without max_events, a recording keeps as many as the memory of this machine allows"
            )
            missing = ["max_events"] * (not bounds.is_given) + ["spool"] * (bounds.spool is None)
            advice = ["record fewer steps (torch.profiler.schedule)", *[f"or give {' or '.join(missing)}"] * bool(missing)]
            warnings.warn(
                f"{by_default:,} events were not kept: {why}; {', '.join(advice)}",
                stacklevel=callers_level(),
            )
        if self._spool is not None and self._spool.problem:
            warnings.warn(
                f"the spool {os.fspath(self.options.bounds.spool or '')!r} ends early: {self._spool.problem}; what was recorded is whole in memory",
                stacklevel=callers_level(),
            )
        if self._draining.errors:
            warnings.warn(
                f"the recorder failed {self._draining.errors} times while the program went on, first by {self._draining.first_error}; "
                "what it could not do then was done at the end of the recording",
                stacklevel=callers_level(),
            )

    def _read(self, findings: Findings) -> None:
        """End what is observed, and read it. Where memory runs out, the earliest records make room."""
        left = list(self._sources)
        while True:
            try:
                self._pause(findings.stopped)
                for source in reversed(self._sources):
                    source.end()
                while left:
                    left[0].take(findings)
                    del left[0]
                return
            except MemoryError:
                if not log_records.make_room(self._log, findings) and not any(source.make_room() for source in self._sources):
                    raise

    def _info(self, findings: Findings) -> Info:
        options, config = self.options, self.options.config
        return Info(
            started_ns=self._unix_ns(self._time.started),
            stopped_ns=self._unix_ns(findings.stopped),
            collected=tuple((self._unix_ns(began), self._unix_ns(ended)) for began, ended in findings.collected),
            thread_id=self._native_id,
            thread_cpu_ns=findings.cpu_ns,
            event_costs_ns=findings.event_costs_ns,
            pid=self._pid,
            parent_pid=surroundings.parent_pid(),
            command=tuple(sys.argv),
            environment={**surroundings.environment(), "threads": get_num_threads()},
            process_name=surroundings.process_name(),
            source_roots=places.search_path(),
            record_shapes=options.shapes,
            with_stack=options.with_stack,
            profile_memory=options.storages or options.heap,
            with_modules=options.with_modules,
            with_flops=options.with_flops,
            use_device=options.use_device,
            overload_names=config.capture_overload_names,
            verbose=config.verbose,
            external_ids=not config.disable_external_correlation,
            expose_metadata=config.expose_kineto_event_metadata,
            unrecorded=self._unrecorded(),
            distributed=None if _record.processes is None else _record.processes(),
        )

    def _spool_head(self) -> tuple[Info, dict[str, Any]]:
        """The facts that a spool begins with."""
        config, kinds = self.options.config, self.options.kinds
        facts = {
            "started": self._time.started,
            "began_ns": self._records.kept.began,
            "epoch_ns": self._epoch_ns,
            "thread": self._thread,
            "only_thread": None if config.profile_all_threads else self._thread,
            "kinds": None if kinds is None else sorted(kinds),
            "max_depth": self.options.bounds.max_depth,
        }
        return self._info(Findings(stopped=self._time.started)), facts

    def _unix_ns(self, reading: float) -> int:
        """A reading of the recorder's clock as a time of the Unix clock."""
        return round(reading * 1e9) + self._epoch_ns


_NUMPY = os.path.join(os.path.dirname(np.__file__), "")


def _is_recorders(error: BaseException) -> bool:
    """Whether an error is of the recorder's own code: not memory that runs out, and not raised by a signal's handler that ran in the middle of it."""
    if not isinstance(error, Exception) or isinstance(error, MemoryError):
        return False
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return all(stack_walk.is_internal(code) or code.co_filename.startswith(_NUMPY) for code in codes)


_latest_epoch_ns = 0


def _epoch_ns() -> int:
    """The time of day at which the monotonic clock began. A clock that is set back meanwhile is not followed: of the recordings of a
    process, which may become one session, each begins after the last.
    """
    global _latest_epoch_ns
    _latest_epoch_ns = max(_latest_epoch_ns, time.time_ns() - round(recorder.clock() * 1e9))
    return _latest_epoch_ns


def _form(options: Options) -> int:
    """The keys that say what the records of operators hold."""
    wanted = {
        keys.RECORD_SHAPES: options.shapes,
        keys.RECORD_STACKS: options.with_stack,
        keys.RECORD_STORAGES: options.storages,
        keys.RECORD_HEAP: options.heap,
        keys.RECORD_OPERANDS: options.data_flow,
    }
    return sum(key for key, is_wanted in wanted.items() if is_wanted)


def _sources(options: Options, log: Log, records: LogRecords, operators: Operators) -> tuple[Source, ...]:
    """The sources, in the order in which they are switched on.

    At the end, open scopes and calls of modules are written to the log; then the log is read, which frees it, should memory be short.
    Storages and roles come late in that order, because they look at all objects there are. Operators record when all that they write to is on, and
    Python functions begin last.
    """
    if not options.cpu:
        return (records, Names(), Threads())
    modules = ModuleCalls(log, record=options.with_modules)
    owner = modules.owner if options.with_modules else None
    wanted: list[tuple[Source, bool]] = [
        (OpenScopes(log), True),
        (modules, options.with_modules or options.with_stack),
        (records, True),
        (Names(), True),
        (Threads(), True),
        (TensorRoles(), options.data_flow),
        (Storages(with_stack=options.with_stack), options.storages),
        (Heap(), options.heap),
        (CollectorRuns(log), options.config.record_python_gc_info),
        (ScopesAndBackward(log, owner, with_roles=options.data_flow), True),
        (Compilations(log), True),
        (operators, True),
        # with modules that record themselves, the tracer leaves theirs out: it does not see every thread
        (PythonFunctions(log, None if options.with_modules else modules), options.with_stack),
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
