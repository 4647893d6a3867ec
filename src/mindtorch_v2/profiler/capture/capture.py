"""One recording: switches the recorder on and off, and turns what was logged into a `Session`."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections import ChainMap
from dataclasses import dataclass
from typing import Any

from ..._dispatch import dispatcher, keys
from ..._forking import new_lock
from ..._storage import UntypedStorage
from ..activity import HEAP, STORAGES
from ..model import places
from ..model.session import Info, Label, Session, empty_session
from . import (
    call_inputs,
    columns,
    heap,
    labels,
    living,
    memory,
    module_calls,
    python_tracer,
    recorder,
    roles,
    scopes,
    stack_walk,
    survivors,
    tasks,
    threads,
    watching,
)
from .node_scopes import NodeScopes, NodeScopesWithRoles, forget_names

__all__ = ["Capture", "Settings", "abandon", "active", "is_clean"]


RECORDING_KEYS = keys.PROFILER | sum(recorder.FORMS.values())


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
        self._log = recorder.log_of(sum(self._keys()))
        self._started = 0.0
        self._epoch_ns = 0  # of the Unix clock when the recorder's reads 0
        self._thread = 0
        self._pid = os.getpid()
        self._steps: list[tuple[float, int]] = []
        self.survivors: survivors.References = {}  # storages that lived at the end, where memory is recorded
        self._collecting = False
        self._warm = False
        self._modules: module_calls.ModuleCalls | None = None

    def prepare(self, *, warm: bool = False) -> None:
        """Compile the recording variant of every operator that has run, so that events show no compilation.

        With `warm`, operators record from now on to no effect: what they call only while recorded gets compiled too.
        """
        if not self.settings.cpu:
            return
        dispatcher.precompile(sum(self._keys()))
        if warm:
            global _touched
            _touched = self._warm = True
            self._activate()

    def cool_down(self) -> None:
        """End what `prepare` began."""
        if self._warm and self._pid == os.getpid():
            self._deactivate()
        self._warm = False

    def start(self, step: int = 0) -> None:
        """Begin to record. Events of a call that is running already are not recorded."""
        global active, _touched
        with _lock:
            if active is not None:
                raise RuntimeError(
                    f"a profiler is already recording (started at {active.started_at}); stop it before you start another"
                )
            active, _touched = self, True
        try:
            self._start(step)
        except BaseException:
            abandon()
            raise

    def _start(self, step: int) -> None:
        self.started_at = caller()
        self._thread = threading.get_ident()
        self._log.records.clear()
        call_inputs.forget_if_many()
        _forget_names()
        scopes.use(self._log)
        if dispatcher.active_keys() & keys.EXECUTION_TRACE:  # whose operators are other functions
            dispatcher.precompile(sum(self._keys()) | keys.EXECUTION_TRACE)
        threads.begin(recorder.clock)
        if self.settings.data_flow:
            roles.begin()
        self._started = recorder.clock()
        self._epoch_ns = time.time_ns() - round(self._started * 1e9) if recorder.clock is time.perf_counter else 0
        self._steps = [(self._started, step)]
        if self.settings.memory == STORAGES:
            # not again after a pause: what is freed meanwhile counts
            memory.begin(with_stack=self.settings.with_stack)
        if self.settings.cpu:
            if self.settings.with_modules or self.settings.with_stack:
                self._modules = module_calls.ModuleCalls(self._log)
            if self._modules is not None and self.settings.with_modules:
                self._modules.install()  # the tracer sees them as well, but not on every thread
            self.resume()

    def resume(self) -> None:
        """Collect again after `pause`."""
        if self._collecting:
            return
        self._collecting = True
        if self.settings.memory == HEAP:
            heap.begin()
        if self.settings.with_stack:
            python_tracer.start(self._log, None if self.settings.with_modules else self._modules)
        if self.settings.python_gc:
            gc.callbacks.append(_on_gc)
        owner = self._modules.owner if self._modules is not None and self.settings.with_modules else None
        watching.set_profiler((NodeScopesWithRoles if self.settings.data_flow else NodeScopes)(self._log, owner))
        if self._modules is not None:
            self._modules.collecting = True
        self._activate()
        self.cool_down()
        if self.settings.with_stack:
            python_tracer.begin_now()

    def pause(self) -> None:
        """Stop collecting, keeping what was collected. Scopes that are open go on."""
        if not self._collecting:
            return
        now = recorder.clock()  # what stopping takes is in nobody's frame
        self._collecting = False
        self._deactivate()
        if self._modules is not None:
            self._modules.collecting = False
        watching.set_profiler(None)
        if _on_gc in gc.callbacks:
            gc.callbacks.remove(_on_gc)
        if self.settings.with_stack:
            python_tracer.stop(now)
        heap.end()

    def _activate(self) -> None:
        for key in self._keys():
            dispatcher.activate(key)

    def _deactivate(self) -> None:
        for key in reversed(self._keys()):
            dispatcher.deactivate(key)

    def _keys(self) -> list[int]:
        # what to note comes first: with the last key, recording begins
        shapes = [keys.RECORD_SHAPES] if self.settings.record_shapes else []
        stacks = [keys.RECORD_STACKS] if self.settings.with_stack else []
        counted = {STORAGES: [keys.RECORD_STORAGES], HEAP: [keys.RECORD_HEAP], None: []}[self.settings.memory]
        operands = [keys.RECORD_OPERANDS] if self.settings.data_flow else []
        return [*shapes, *stacks, *counted, *operands, keys.PROFILER]

    def _look_at_what_lives(self) -> dict[int, int]:
        """Note the storages that live; returns what is known of them."""
        objects = living.objects(*roles.KINDS, UntypedStorage)
        self.survivors = survivors.references(objects)
        return roles.now(objects)

    def _end_modules(self, now: float) -> None:
        calls, self._modules = self._modules, None
        if calls is not None:
            calls.end(now)

    def mark_step(self, step: int) -> None:
        """Events from here on belong to this step."""
        self._steps.append((recorder.clock(), step))

    @property
    def is_running(self) -> bool:
        return active is self and self._pid == os.getpid()

    def stop(self, kinds: set[str] | None = None) -> Session:
        """End the recording, and keep events of these kinds (None: of all). Scopes that were never left end here."""
        global active, _touched
        if not self.is_running:
            return empty_session()
        try:
            self.pause()
            memory.end()
            stopped = recorder.clock()
            scopes.close_all(stopped)
            self._end_modules(stopped)
            records = [columns.drain(self._log)]  # first of all: it frees the log, should memory be short
            roles.end()  # looks at all there is, which is no part of the recording
            roles_at_end = self._look_at_what_lives() if self.settings.memory == STORAGES else {}
            # only now: other threads may have been at work until then
            known_tasks, known_threads = dict(tasks.known), threads.end()
            stacks = {number: stack_walk.resolve(frames) for number, frames in list(stack_walk.taken.items())}
            noted = memory.take() if self.settings.memory == STORAGES else None
            known_roles = roles.take() if self.settings.data_flow else None
            known_labels, inputs = labels.table(), ChainMap(call_inputs.take_texts(), call_inputs.table)
            watching.forget_tasks()
            _forget_names()
            active, _touched = None, False
        except BaseException:
            abandon()
            raise
        s = self.settings
        info = Info(
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
        return columns.assemble(
            records.pop(),  # held by nobody else, so that parts of it can be given up
            columns.Context(
                info=info,
                epoch_ns=self._epoch_ns,
                steps=self._steps,
                labels=known_labels,
                threads=known_threads,
                tasks=known_tasks,
                only_thread=None if s.all_threads else self._thread,
                kinds=kinds,
                inputs=inputs,
                stacks=stacks,
                memory=noted,
                roles=known_roles,
                roles_at_end=roles_at_end,
            ),
        )


active: Capture | None = None
_touched = False  # whether something of a recording may be switched on: also after an interrupt in the middle of `abandon`
_lock = new_lock()


def is_clean() -> bool:
    """Whether nothing of any recording is switched on."""
    return not _touched


def caller() -> str:
    """Return the line of the program that runs, as `file:line`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and stack_walk.is_internal(frame.f_code):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _forget_names() -> None:
    """Free the names of scopes, functions and modules, and the stacks. Those of the session are its own."""
    labels.clear()
    forget_names()
    call_inputs.take_texts()
    stack_walk.forget()


_gc_started: dict[int, float] = {}
_GC = Label("Python GC", "gc")


def _on_gc(phase: str, info: dict[str, Any]) -> None:
    thread = threading.get_ident()
    if phase == "start":
        _gc_started[thread] = recorder.clock()
    elif active is not None and (start := _gc_started.pop(thread, None)) is not None:
        active._log.write(labels.label_number(_GC), start, recorder.clock(), tasks.track_number())


def abandon() -> None:
    """Give up what is being recorded, however far it has come. After an interrupt, what is left is done by the next call."""
    global active, _touched
    given_up = active
    dispatcher.drop(RECORDING_KEYS)
    watching.set_profiler(None)
    watching.forget_tasks()
    roles.end()
    memory.end()
    heap.end()
    if _on_gc in gc.callbacks:
        gc.callbacks.remove(_on_gc)
    python_tracer.stop()
    threads.end()
    if given_up is not None:
        given_up._collecting = given_up._warm = False
        given_up._end_modules(recorder.clock())
        scopes.use(given_up._log)
        given_up._log.records.clear()
    _forget_names()
    active, _touched = None, False


def _forget_in_child() -> None:
    """A forked process starts without the recording of its parent, which goes on there."""
    _gc_started.clear()
    abandon()


os.register_at_fork(after_in_child=_forget_in_child)
