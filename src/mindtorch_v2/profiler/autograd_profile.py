"""`torch.autograd.profiler.profile`: one recording at a time, of a `with` block, and its results."""

from __future__ import annotations

import functools
import logging
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Unpack

from .. import _device, _dtype, npu
from .activity import InvalidArgumentError, ProfilerActivity
from .bounds import BoundOptions, Bounds
from .capture import capture, claims, event_ids
from .capture.capture import Capture
from .capture.memory import survivors
from .capture.stacks import python_functions
from .experimental_config import _ExperimentalConfig
from .model.callers_level import callers_level
from .model.leaks import Leaks
from .model.session import Session, empty_session, join
from .once import Once
from .options import OptionAttributes, Options
from .output.event_list import EventList
from .output.in_time import events_in_time
from .output.kineto_results import KinetoResults
from .results import Results, Summaries

__all__ = ["profile"]

_log = logging.getLogger("torch.autograd.profiler")  # torch's name, so that a program's settings for it apply here


@dataclass
class _ProfilerStats:
    """Return the time of the profiler itself."""

    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0


class profile(OptionAttributes, Summaries):  # noqa: N801 - torch's name
    """Record what runs inside a `with` block. `torch.profiler.profile` adds steps, schedules and handlers to this.

    With `acc_events` the events of every block stay; otherwise a block replaces the one before. `post_processing_timeout_s` limits the time
    spent on making events: those that come after it are left out, and the logger `torch.autograd.profiler` says so.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool | str = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: _ExperimentalConfig | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Mapping[ProfilerActivity, set[str]] | None = None,
        **bounds: Unpack[BoundOptions],
    ) -> None:
        self.enabled = enabled
        if not enabled:
            return
        if use_cuda:
            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
                FutureWarning,
                stacklevel=2,
            )
            use_device = "cuda"
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        self._set_up(
            Options(
                activities={ProfilerActivity.CPU} if use_cpu else set(),
                activity_filters=dict(activity_filters or {}),
                use_device=use_device,
                record_shapes=record_shapes,
                profile_memory=profile_memory,
                with_stack=with_stack,
                with_flops=with_flops,
                with_modules=with_modules,
                experimental_config=experimental_config,
                acc_events=acc_events,
                custom_trace_id_callback=custom_trace_id_callback,
                post_processing_timeout_s=post_processing_timeout_s,
                bounds=Bounds.of(bounds),
            )
        )
        self.use_cuda = use_cuda

    @classmethod
    def _with(cls, options: Options) -> profile:
        """The profiler for options that another profiler was given."""
        made = cls.__new__(cls)
        made.enabled, made.use_cuda = True, False
        made._set_up(options)
        return made

    def _set_up(self, options: Options) -> None:
        device = _available_device(options.use_device)
        if not options.cpu and device is None:
            raise InvalidArgumentError(
                f"No activities specified for the profiler: no device of the kind {str(options.use_device).upper()} is available here; "
                "to record what runs on the CPU, add ProfilerActivity.CPU to the activities"
            )
        self.use_cpu = options.cpu
        self.kineto_activities = ({ProfilerActivity.CPU} if options.cpu else set()) | ({ProfilerActivity.NPU} if device else set())
        self._set_options(
            replace(
                options,
                activities=self.kineto_activities,
                use_device=device,
                record_shapes=options.shapes,
                experimental_config=options.config,
            ).consistent()
        )
        self.trace_id = ""
        self.entered = False
        self.metadata: dict[str, Any] = {}  # for traces, as JSON knows it
        self._stats = _ProfilerStats()
        self._capture: Capture | None = None
        self._recorded: Once[Session] | None = None
        self._sampled: list[int] | None = None  # steps of the recordings that were made
        self._parts: list[Once[Session]] = []  # the recordings that it is made of, with `acc_events`
        self._events: EventList | None = None
        self._results: Any = None
        self._survivors: survivors.References = {}
        self._collected: set[int] = set()  # addresses of storages that `leaks(collect=True)` freed

    # --- recording --------------------------------------------------------------------------------------------------

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        try:
            claims.claim(self)
            self._prepare_trace()
            self._start_trace()
        except BaseException:
            claims.release(self)
            raise
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        if not self.enabled:
            return None
        try:
            self._stop_trace()
        finally:
            claims.release(self)
        return False

    def _prepare_trace(self, *, warm: bool = False) -> None:
        """Get ready to record; `warm` if operators will run before recording begins."""
        self.entered = True
        began = time.perf_counter_ns()
        self.trace_id = self.create_trace_id()
        append = self.acc_events and self._recorded is not None
        self._capture = Capture(self._options(), append=append, sampled=self._sampled if append else None)
        self._sampled = self._capture.sampled
        self._capture.prepare(warm=warm)
        self._stats.profiler_prepare_call_duration_us = (time.perf_counter_ns() - began) // 1000

    def _cancel_trace(self) -> None:
        if self._capture is not None:
            self._capture.cancel()
            self._capture = None

    def _start_trace(self, step: int = 0) -> None:
        assert self._capture is not None
        began = time.perf_counter_ns()
        self._capture.start(step)
        self._stats.profiler_enable_call_duration_us = (time.perf_counter_ns() - began) // 1000

    def _stop_trace(self, *, read_later: bool = False) -> None:
        """End the recording. With `read_later` its session is made by whoever asks for it."""
        capture, self._capture = self._capture, None
        if capture is None or not capture.is_running:
            return  # stopped already, or begun in the process that this one was forked from
        began = time.perf_counter_ns()
        finish = capture.stop(read_later=read_later)
        part = Once(functools.partial(_finished_session, finish, self.trace_id))
        if not self.acc_events:
            self._recorded = part
        else:
            if self._recorded is not None and self._recorded.is_made:
                self._parts = [self._recorded]
            self._parts.append(part)
            self._recorded = Once(functools.partial(_joined, tuple(self._parts)), again=True)
        if not read_later:
            self._recorded()
        self._events = self._results = None
        self._survivors, self._collected = capture.survivors, set()
        self._stats.profiler_disable_call_duration_us = (time.perf_counter_ns() - began) // 1000
        self._stats.profiling_window_duration_sec = capture.window_s
        self._stats.number_of_events = self._stats.function_events_build_tree_call_duration_us = (
            0  # events are made when they are asked for
        )
        python_functions.warn_of_gaps()

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stop or resume collecting these activities inside the recording."""
        activities = set(activities)
        for activity in activities:
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(f"toggle_collection_dynamic expects ProfilerActivity, got {activity!r}")
        if self._capture is not None and self._capture.is_running and ProfilerActivity.CPU in activities:
            self._capture.resume() if enabled else self._capture.pause()

    def default_trace_id(self) -> str:
        return f"{uuid.uuid4().int:032X}"

    def create_trace_id(self) -> str:
        return self.custom_trace_id_callback() if self.custom_trace_id_callback else self.default_trace_id()

    # --- results ----------------------------------------------------------------------------------------------------

    @property
    def _session(self) -> Session | None:
        return None if self._recorded is None else self._recorded()

    @property
    def session(self) -> Session:
        """Return the session, with the metadata known by now."""
        session = self._session
        if session is None:
            return empty_session()
        if not self.metadata:
            return session  # programs ask in loops: a new one takes 18 µs
        return session.replace(info=replace(session.info, metadata={**session.info.metadata, **self.metadata}))

    @property
    def kineto_results(self) -> KinetoResults:
        """The recording as torch's libraries walk it; None before the end of the first."""
        if self._results is None and self._recorded is not None:
            self._results = KinetoResults(self.session, dtype=vars(_dtype).__getitem__, device=_device.device)
        return self._results

    @property
    def function_events(self) -> EventList:
        if self._is_trace_only():
            raise RuntimeError(
                "events() is not available when trace_only=True in ExperimentalConfig. Use export_chrome_trace() instead."
            )
        if self._events is None:
            began = time.perf_counter_ns()
            events = _in_time(self.session, self.post_processing_timeout_s)
            took_us = (time.perf_counter_ns() - began) // 1000 or 1
            # the tree is part of making events
            self._stats.parse_kineto_call_duration_us = self._stats.function_events_build_tree_call_duration_us = took_us
            self._stats.number_of_events = len(events)
            if self._recorded is None:
                return events
            self._events = events
        return self._events

    def _is_trace_only(self) -> bool:
        return self.experimental_config is not None and self.experimental_config.trace_only

    def _ensure_function_events(self) -> None:
        _ = self.function_events

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if not self.enabled or self._recorded is None else repr(self.function_events)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if not self.enabled or self._recorded is None else str(self.function_events)

    def _all_events(self) -> EventList:
        return self.function_events

    def _has_made_events(self) -> bool:
        return self._events is not None or self.post_processing_timeout_s is not None or self._is_trace_only()

    @property
    def _finished(self) -> Results:
        return _LiveResults(self)

    def export_chrome_trace(self, path: str, metadata: Mapping[str, Any] | None = None, use_python_export: bool = False) -> None:
        """Write the trace for Perfetto, TensorBoard and others; gzipped if the path ends with `.gz`."""
        session = self.session
        if metadata:
            session = session.replace(info=replace(session.info, metadata={**session.info.metadata, **metadata}))
        Results(session).export_chrome_trace(path)


class _LiveResults(Results):
    """The results of a profiler that may record again: those of its last recording."""

    def __init__(self, owner: profile) -> None:
        self._owner = owner

    @property
    def session(self) -> Session:
        return self._owner.session

    def _all_events(self) -> EventList:
        return self._owner._all_events()

    def _has_made_events(self) -> bool:
        return self._owner._has_made_events()

    def leaks(self, group_by_stack_n: int | None = None, *, collect: bool = False) -> Leaks:
        owner = self._owner
        if collect:
            owner._collected |= survivors.freed_by_collecting(owner._survivors)
        return Leaks.of(self.session, group_by_stack_n, without=owner._collected if collect else ())


def _finished_session(finish: Callable[[], Session], trace_id: str) -> Session:
    """The session of a recording that has ended."""
    session = finish()
    info = replace(session.info, first_ids=((0, event_ids.take(len(session))),), trace_id=trace_id)
    return session.replace(info=info)


def _joined(parts: Sequence[Once[Session]]) -> Session:
    """The sessions of recordings in one. What failed once is told once, and left out from then on."""
    sessions = [part() for part in parts if not part.has_failed]
    if not sessions:
        return parts[-1]()
    return sessions[0] if len(sessions) == 1 else join(sessions)


def _in_time(session: Session, timeout_s: float | None) -> EventList:
    """The events of a session, as many as are made in this time. If some are left out, torch's logger says so in torch's words."""
    if timeout_s is None:
        return EventList.of(session)
    events, count = events_in_time(session, timeout_s)
    if count < len(session):
        _log.warning(
            "Profiler _parse_kineto_results timed out after %.3f seconds, returning partial results with %d events",
            timeout_s,
            len(events),
        )
    return events


def _available_device(name: str | None) -> str | None:
    """The device to record, if there is one."""
    if name is None:
        return None
    if name not in ("npu", "cuda", "privateuseone"):
        warnings.warn(f"The {name} is not a valid device option.", stacklevel=callers_level())
        return None
    if not npu.is_available():
        warnings.warn(f"{name.upper()} is not available, disabling {name.upper()} profiling", stacklevel=callers_level())
        return None
    return "npu"


def is_profiler_enabled(name: str) -> bool:
    """`torch.autograd.profiler._is_profiler_enabled`, which is computed: that module's `__getattr__`."""
    if name == "_is_profiler_enabled":  # libraries of torch's ask for it
        return capture.active is not None
    raise AttributeError(f"module 'mindtorch_v2.autograd.profiler' has no attribute {name!r}")
