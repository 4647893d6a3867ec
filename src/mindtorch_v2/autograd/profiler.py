"""`torch.autograd.profiler`: the profiler below `torch.profiler`, and older ways to reach it."""

from __future__ import annotations

import logging
import sqlite3
import time
import uuid
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import _device, _dtype
from ..profiler.activity import InvalidArgumentError, ProfilerActivity, kinds_wanted, kineto_available, memory_source
from ..profiler.capture import capture, claims, event_ids, python_tracer, survivors
from ..profiler.capture.capture import Capture, Settings
from ..profiler.device_type import DeviceType
from ..profiler.experimental_config import _ExperimentalConfig
from ..profiler.model.event_list import EventList
from ..profiler.model.events import FunctionEvent
from ..profiler.model.leaks import Leaks
from ..profiler.model.session import Session, empty_session, join
from ..profiler.record_function import record_function
from ..profiler.results import Results
from .profiler_util import MEMORY_EVENT_NAME, OUT_OF_MEMORY_EVENT_NAME, MemRecordsAcc

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]

_log = logging.getLogger("torch.autograd.profiler")  # torch's name, so that a program's settings for it apply here


@dataclass
class _ProfilerStats:
    """What the profiler itself took."""

    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0


class profile:  # noqa: N801 - torch's name
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
        self.use_cuda = use_cuda
        self.use_cpu = use_cpu
        self.use_device = _available_device(use_device)
        if not use_cpu and self.use_device is None:
            raise InvalidArgumentError(
                f"No activities specified for the profiler: no device of the kind {str(use_device).upper()} is available here; "
                "to record what runs on the CPU, add ProfilerActivity.CPU to the activities"
            )
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        memory_source(profile_memory)
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.experimental_config = resolve_config(experimental_config, with_stack=with_stack)
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.activity_filters = dict(activity_filters or {})
        self.trace_id = ""
        self.entered = False
        self.metadata: dict[str, Any] = {}  # for traces, as JSON knows it
        self.kineto_activities = {ProfilerActivity.CPU} if use_cpu else set()
        if self.use_device is not None:
            self.kineto_activities.add(ProfilerActivity.NPU)
        self._stats = _ProfilerStats()
        self._capture: Capture | None = None
        self._session: Session | None = None
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

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> bool | None:
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
        config = self.experimental_config
        self._capture = Capture(
            Settings(
                record_shapes=self.record_shapes,
                with_stack=self.with_stack,
                memory=memory_source(self.profile_memory),
                with_flops=self.with_flops,
                with_modules=self.with_modules,
                all_threads=config.profile_all_threads,
                overload_names=config.capture_overload_names,
                python_gc=config.record_python_gc_info,
                cpu=self.use_cpu,
            )
        )
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

    def _stop_trace(self) -> None:
        capture, self._capture = self._capture, None
        if capture is None or not capture.is_running:
            return  # stopped already, or begun in the process that this one was forked from
        began = time.perf_counter_ns()
        session = capture.stop(kinds=kinds_wanted(self.activity_filters))
        config = self.experimental_config
        info = replace(
            session.info,
            first_ids=((0, event_ids.take(len(session))),),
            use_device=self.use_device,
            trace_id=self.trace_id,
            verbose=config.verbose,
            external_ids=not config.disable_external_correlation,
            expose_metadata=config.expose_kineto_event_metadata,
        )
        session = session.replace(info=info)
        self._session = join([self._session, session]) if self.acc_events and self._session is not None else session
        self._events = self._results = None
        self._survivors, self._collected = capture.survivors, set()
        self._stats.profiler_disable_call_duration_us = (time.perf_counter_ns() - began) // 1000
        self._stats.profiling_window_duration_sec = (info.stopped_ns - info.started_ns) / 1e9
        self._stats.number_of_events = len(self._session)
        python_tracer.warn_of_gaps()

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
    def session(self) -> Session:
        """What was recorded, with the metadata known by now."""
        if self._session is None:
            return empty_session()
        info = replace(self._session.info, metadata={**self._session.info.metadata, **self.metadata})
        return self._session.replace(info=info)

    @property
    def kineto_results(self) -> Any:
        """The recording as torch's libraries walk it; None before the end of the first."""
        if self._results is None and self._session is not None:
            from ..profiler.model.kineto_results import KinetoResults

            self._results = KinetoResults(self.session, dtype=vars(_dtype).__getitem__, device=_device.device)
        return self._results

    @property
    def function_events(self) -> EventList:
        if self.experimental_config.trace_only:
            raise RuntimeError(
                "events() is not available when trace_only=True in ExperimentalConfig. Use export_chrome_trace() instead."
            )
        if self._events is None:
            began = time.perf_counter_ns()
            events = EventList.of(_in_time(self.session, self.post_processing_timeout_s))
            self._stats.parse_kineto_call_duration_us = (time.perf_counter_ns() - began) // 1000
            if self._session is None:
                return events
            self._events = events
        return self._events

    def _ensure_function_events(self) -> None:
        _ = self.function_events

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if not self.enabled or self._session is None else repr(self.function_events)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if not self.enabled or self._session is None else str(self.function_events)

    @property
    def _finished(self) -> _LiveResults:
        return _LiveResults(self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        *,
        max_width: int | None = None,
    ) -> str:
        """The events as a table, a row for each; `key_averages().table()` has a row for each name. See `EventList.table`."""
        return self._finished.table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
            max_width=max_width,
        )

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        group_by_module: bool = False,
    ) -> EventList:
        """Events summed by name and, if asked, by input shapes, the innermost n frames, overload, and module and phase."""
        return self._finished.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name, group_by_module)

    def total_average(self) -> Any:
        """Sums over all events."""
        return self._finished.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the self times of all events, in microseconds."""
        return self._finished.self_cpu_time_total

    def export_chrome_trace(self, path: str, metadata: Mapping[str, Any] | None = None, use_python_export: bool = False) -> None:
        """Write the trace for Perfetto, TensorBoard and others; gzipped if the path ends with `.gz`."""
        session = self.session
        if metadata:
            session = session.replace(info=replace(session.info, metadata={**session.info.metadata, **metadata}))
        Results(session).export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write one line a stack for flame graphs; needs `with_stack=True`."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._finished.export_stacks(path, metric)


class _LiveResults(Results):
    """The results of a profiler that may record again: those of its last recording."""

    def __init__(self, owner: profile) -> None:
        self._owner = owner

    @property
    def session(self) -> Session:
        return self._owner.session

    def events(self) -> EventList:
        return self._owner.function_events

    def _has_made_events(self) -> bool:
        owner = self._owner
        return owner._events is not None or owner.post_processing_timeout_s is not None or owner.experimental_config.trace_only

    def leaks(self, group_by_stack_n: int | None = None, *, collect: bool = False) -> Leaks:
        owner = self._owner
        if collect:
            owner._collected |= survivors.freed_by_collecting(owner._survivors)
        return Leaks.of(self.session, group_by_stack_n, without=owner._collected if collect else ())


def _in_time(session: Session, timeout_s: float | None) -> Session:
    """As much of a session as events can be made of in this time, at the speed seen on its beginning."""
    if timeout_s is None:
        return session
    sample = session.head(10_000)
    began = time.perf_counter()
    EventList.of(sample)
    took = time.perf_counter() - began
    count = int(len(sample) * timeout_s / took) if len(sample) else 0
    if count < len(session):
        _log.warning("Profiler timed out after %.3f seconds of making events: partial results with %d events", timeout_s, count)
    return session.head(count)


def _available_device(name: str | None) -> str | None:
    """The device to record, if there is one."""
    if name is None:
        return None
    from .. import npu

    if name not in ("npu", "cuda", "privateuseone"):
        warnings.warn(f"The {name} is not a valid device option.", stacklevel=3)
        return None
    if not npu.is_available():
        warnings.warn(f"{name.upper()} is not available, disabling {name.upper()} profiling", stacklevel=3)
        return None
    return "npu"


def resolve_config(config: _ExperimentalConfig | None, *, with_stack: bool) -> _ExperimentalConfig:
    """The options as they will be used."""
    if config is None:
        return _ExperimentalConfig()
    if config.trace_only and with_stack:
        warnings.warn(
            "trace_only=True is incompatible with with_stack=True (stack traces require event post-processing). Disabling trace_only.",
            stacklevel=3,
        )
        return replace(config, trace_only=False)
    return config


class _Emit:
    """A block that would annotate its operators for another tool."""

    tool: str

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self.tool} annotation context manager is not reentrant")
        raise RuntimeError(
            f"{self.tool} is not part of this runtime; record with torch.profiler.profile and export a trace instead"
        )

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> bool | None:
        return False if self.enabled else None


class emit_itt(_Emit):  # noqa: N801 - torch's name
    """Annotations for Intel's VTune: needs ITT, and says so when entered."""

    tool = "ITT"


class emit_nvtx(_Emit):  # noqa: N801 - torch's name
    """Annotations for NVIDIA's Nsight: needs CUDA, and says so when entered."""

    tool = "NVTX"


class EnforceUnique:
    """Refuses keys that it has seen."""

    def __init__(self) -> None:
        self.seen: set[tuple[Any, ...]] = set()

    def see(self, *key: Any) -> None:
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


def load_nvprof(path: str) -> EventList:
    """The annotated functions of a file that nvprof wrote."""
    return EventList(parse_nvprof_trace(path))


def parse_nvprof_trace(path: str) -> list[FunctionEvent]:
    """Functions by start, each with the kernels that were launched inside it."""
    database = sqlite3.connect(path)
    database.row_factory = sqlite3.Row
    text = dict(database.execute("SELECT _id_, value FROM StringTable"))
    pairs = "CUPTI_ACTIVITY_KIND_MARKER b JOIN CUPTI_ACTIVITY_KIND_MARKER e ON b.id = e.id AND b.name != 0 AND e.name = 0"
    functions: dict[int, FunctionEvent] = {}
    unique = EnforceUnique()
    for row in database.execute(f"SELECT b.id id, b.name name, b.timestamp began, e.timestamp ended FROM {pairs}"):
        unique.see(row["id"])
        functions[row["id"]] = FunctionEvent(
            id=row["id"], node_id=0, name=text[row["name"]], start_us=row["began"], end_us=row["ended"], thread=0
        )
    launches = (
        "SELECT b.id id, r._id_ call, r.cbid cbid, k.name name, k.end - k.start took FROM "
        f"{pairs} JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON b.timestamp < r.start AND r.end < e.timestamp "
        "JOIN CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL k ON k.correlationId = r.correlationId"
    )
    unique = EnforceUnique()
    for row in database.execute(launches):
        unique.see(row["id"], row["call"])
        if row["cbid"] != 211:  # cudaLaunchKernel
            raise AssertionError(f"Expected cbid to be 211, but got {row['cbid']}")
        functions[row["id"]].append_kernel(row["name"], 0, row["took"])
    database.close()
    return sorted(functions.values(), key=lambda event: event.time_range.start)


class KinetoStepTracker:
    """Counts steps for several who make them: the global step is the largest count."""

    _current_step = 0
    _step_dict: dict[str, int] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count one more step of a requester; returns the global step."""
        cls._step_dict[requester] = cls._step_dict.get(requester, cls._current_step) + 1
        latest = max(cls._step_dict.values())
        if latest > cls._current_step + 1:
            warnings.warn(
                f"Profiler step count has increased more than 1 - current_step = {cls._current_step} step dict =  {cls._step_dict}",
                stacklevel=2,
            )
        cls._current_step = max(cls._current_step, latest)
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        return cls._current_step


def __getattr__(name: str) -> Any:
    if name == "_is_profiler_enabled":  # libraries of torch's ask for it
        return capture.active is not None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_ = (DeviceType, MEMORY_EVENT_NAME, OUT_OF_MEMORY_EVENT_NAME, kineto_available)  # names that programs import from here
