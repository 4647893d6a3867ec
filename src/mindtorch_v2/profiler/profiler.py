"""`profile`: records the steps that a schedule picks, and hands each finished recording on."""

from __future__ import annotations

import copy
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Unpack

from .. import _record
from . import autograd_profile
from ._memory_profiler import MemoryProfile, MemoryProfileTimeline
from .activity import ProfilerActivity, parse_activities, supported_activities
from .advice import Advice
from .background import BackgroundHandler
from .bounds import BoundOptions, Bounds
from .capture import capture, claims
from .execution_trace import ExecutionTraceObserver, _ITraceObserver
from .experimental_config import _ExperimentalConfig
from .model.callers_level import callers_level
from .model.leaks import Leaks
from .model.module_times import ModuleTimes
from .model.session import Session
from .model.summary import Summary
from .options import OptionAttributes, Options
from .output.event_list import EventList
from .output.tensorboard import tensorboard_trace_handler
from .record_function import record_function, step_scope
from .results import Results, check_memory_flags, write_memory_timeline
from .schedule import TRANSITIONS, ProfilerAction, record_always, sampled, schedule
from .step_tracker import KinetoStepTracker

__all__ = [
    "ExecutionTraceObserver",
    "ProfilerAction",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

PROFILER_STEP_NAME = "ProfilerStep"


class _KinetoProfile(OptionAttributes):
    """Recording without steps: `start`, `stop`, results and exports. The arguments are those of `profile`."""

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity | dict[ProfilerActivity, list[str]]] | None = None,
        record_shapes: bool = False,
        profile_memory: bool | str = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        execution_trace_observer: _ITraceObserver | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        **bounds: Unpack[BoundOptions],
    ) -> None:
        wanted, filters = parse_activities(activities)
        options = Options(
            activities=wanted,
            activity_filters=filters,
            use_device="npu" if ProfilerActivity.NPU in wanted else None,
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
        self._set_options(options.consistent())
        self.execution_trace_observer = execution_trace_observer
        self.profiler: autograd_profile.profile | None = None
        self.has_cudagraphs = False
        self.mem_tl: Any = None
        self.preset_metadata: dict[str, str] = {}
        self._metadata: dict[str, Any] = {}
        self._prepared: autograd_profile.profile | None = None

    # --- recording --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to record."""
        self._refuse_second_start()
        try:
            claims.claim(self)
            self.prepare_trace()
            self.start_trace()
        except BaseException:
            self._cancel_trace()
            claims.release(self)
            raise

    def stop(self) -> None:
        """End the recording; stopping twice is harmless."""
        try:
            self.stop_trace()
        finally:
            claims.release(self)

    def _refuse_second_start(self) -> None:
        if claims.is_claimed_by(self):
            raise RuntimeError("this profiler is already running; stop it before you start it again")

    def prepare_trace(self) -> None:
        """Get ready to record. What was recorded before stays until the new recording begins."""
        self._cancel_trace()
        if self.acc_events and self.profiler is not None:
            self._prepared = self.profiler
        else:
            self._prepared = autograd_profile.profile._with(self._options())
            self._prepared.metadata = self._metadata
        self._prepared._prepare_trace(warm=self._is_warming_up())

    def _is_warming_up(self) -> bool:
        return False

    def start_trace(self) -> None:
        """Record from here on."""
        if self._prepared is None:
            raise AssertionError("Profiler must be initialized before starting trace; call prepare_trace() first")
        for flag in ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops"):
            if getattr(self, flag):
                self.add_metadata_json(flag, "1")
        for key, value in self.preset_metadata.items():
            self.add_metadata_json(key, value)
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        try:
            self._prepared._start_trace(self._first_step())
        except BaseException:
            if self.execution_trace_observer:
                self.execution_trace_observer.stop()
            raise
        self.profiler, self._prepared = self._prepared, None

    def _first_step(self) -> int:
        return 0

    def stop_trace(self) -> None:
        """End the recording; stopping twice is harmless."""
        try:
            if self.profiler is None:
                raise AssertionError("Profiler must be initialized before stopping trace")
            self.profiler._stop_trace(read_later=self._reads_later())  # first, so that ending the other is no part of the recording
        finally:
            if self.execution_trace_observer:
                self.execution_trace_observer.stop()

    def _reads_later(self) -> bool:
        """Whether the session of a recording is made by its handler, and not at the stop."""
        return False

    def _cancel_trace(self) -> None:
        """Give up what was prepared and never recorded."""
        if self._prepared is not None:
            self._prepared._cancel_trace()
            self._prepared = None

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stop (`enable=False`) and resume collecting these activities inside a recording."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    # --- metadata ---------------------------------------------------------------------------------------------------

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text into the trace file, under a key of the user's."""
        if not isinstance(value, str):
            raise AttributeError(f"add_metadata takes a str, got {type(value).__name__}; use add_metadata_json for other values")
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a value, given as JSON, into the trace file. What is not JSON is kept as the text it is."""
        try:
            self._metadata[key] = json.loads(value)
        except ValueError:
            self._metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Do `add_metadata_json` for every recording that begins after this."""
        self.preset_metadata[key] = value

    def _get_distributed_info(self) -> dict[str, Any] | None:
        return None if _record.processes is None else _record.processes()

    # --- results ----------------------------------------------------------------------------------------------------

    def _finished(self, purpose: str) -> Results:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}{self._why_nothing_was_recorded()}")
        return self.profiler._finished

    def _why_nothing_was_recorded(self) -> str:
        return ""

    @property
    def session(self) -> Session:
        """The recording as columns, to save and to compute with."""
        return self._finished("accessing the session").session

    def events(self) -> EventList:
        """Every event, ordered by start."""
        return self._finished("accessing events").events()

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        group_by_module: bool = False,
    ) -> EventList:
        """The events summed up: one row for each name, in order of the first event of each.

        Args:
            group_by_input_shape: make a row for each name and shapes of the inputs. Needs `record_shapes=True`.
            group_by_stack_n: make a row for each name and the innermost `n` places in the source. Needs `with_stack=True`; 0 for
                none.
            group_by_overload_name: make a row for each overload of an operator. Needs
                `_ExperimentalConfig(capture_overload_names=True)`.
            group_by_module: make a row for each name, module and phase (forward or backward). Needs `with_modules=True`.
        """
        finished = self._finished("getting key averages")
        return finished.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name, group_by_module)

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the self times of all events, in microseconds."""
        return self._finished("summing up times").self_cpu_time_total

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The events as a table, a row for each; `key_averages().table()` has a row for each name. See `EventList.table`."""
        return self._finished("making a table").table(sort_by, row_limit, **options)

    def summary(self) -> Summary:
        """Where the wall time of the recording went: operators, the program's own Python, loading of data, compilation, the recorder."""
        return self._finished("summing up the wall time").summary()

    def by_module(self) -> ModuleTimes:
        """The time of each module, forward and backward; needs `with_modules=True`."""
        return self._finished("getting times of modules").by_module()

    def leaks(self, group_by_stack_n: int | None = None, *, collect: bool = False) -> Leaks:
        """Storages that were made inside the recording and were alive at its end, by operator and stack; needs `profile_memory=True`.

        `group_by_stack_n` takes so many frames into account, the innermost (None: all); the stacks need `with_stack=True`.
        `collect` runs the garbage collector now, and leaves out what only that frees: tensors in reference cycles.
        """
        return self._finished("listing leaks").leaks(group_by_stack_n, collect=collect)

    def advise(self, *, min_share: float = 0.01, rules: Any = None) -> Advice:
        """Say what could be faster, with evidence and an estimate of the gain. See `mindtorch_v2.profiler.advise`."""
        return self._finished("giving advice").advise(min_share=min_share, rules=rules)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the trace for Perfetto, TensorBoard and others; gzipped if the path ends with `.gz`."""
        self._finished("exporting chrome trace").export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write one line a stack for flame graphs; needs `with_stack=True`."""
        self._finished("exporting stacks").export_stacks(path, metric)

    def export_report(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write a page that answers where the time went: one HTML file, which needs nothing but a browser."""
        self._finished("exporting a report").export_report(path, title=title)

    def _memory_profile(self) -> MemoryProfile:
        """Return the history of each piece of memory; needs shapes, memory and stacks."""
        check_memory_flags(record_shapes=self.record_shapes, profile_memory=self.profile_memory, with_stack=self.with_stack)
        return MemoryProfile(self._finished("memory profiling").session)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Write how much memory of each category was in use over time; needs shapes, memory and stacks.

        `.html` is a page to look at, `.raw.json.gz` a list of `[time, action, bytes, category]`, anything else `[times, sizes by
        category]` as JSON, gzipped if the path ends with `.gz`.
        """
        self.mem_tl = MemoryProfileTimeline(self._memory_profile())
        write_memory_timeline(self.mem_tl, path, device, self.use_device)


class profile(_KinetoProfile):  # noqa: N801 - torch's name
    """Record what a program does: operators, scopes, backward, optimizers, on all threads.

        with torch.profiler.profile() as prof:
            train_step()
        print(prof.key_averages().table(sort_by="self_cpu_time_total"))

    With a `schedule`, call `prof.step()` after each step; `on_trace_ready(prof)` is called at the end of each cycle.

    Args:
        activities: what to record: `ProfilerActivity.CPU` (operators, scopes, Python functions) and `ProfilerActivity.NPU` (work on a
            device). A dictionary in the list narrows an activity to some kinds of events. By default all that this machine supports.
        schedule: a function that says for each step what to do (a `ProfilerAction`); `schedule(wait=…, warmup=…, active=…)` makes
            one. By default everything from start to stop is recorded.
        on_trace_ready: a function that is called with the profiler whenever a recording is finished, to print or export it.
            `tensorboard_trace_handler(folder)` makes one that writes trace files.
        record_shapes: record the shapes, strides, types and plain values of each operator's inputs.
        profile_memory: record storage that is made and freed. `True` counts the bytes of tensors exactly, `"tracemalloc"` counts all of
            Python's heap instead.
        with_stack: record where in the source each operator was called, and the calls of Python functions.
        with_flops: count the floating point operations of each operator from the shapes of its inputs, which are recorded, too.
        with_modules: record the calls of `nn.Module`s, and which module each operator belongs to.
        experimental_config: further options, an `_ExperimentalConfig`.
        execution_trace_observer: an `ExecutionTraceObserver` that writes an execution trace of the same steps.
        acc_events: keep the events of all cycles. By default a new cycle replaces the one before.
        use_cuda: deprecated; use `activities`.
        custom_trace_id_callback: a function that gives each recording its id. By default an id is drawn at random.
        post_processing_timeout_s: the seconds that making events may take; events that would take longer are left out, and the
            logger `torch.autograd.profiler` says so. By default there is no limit.
        background: call `on_trace_ready` in a thread of its own, with a profiler that has what was recorded by then, while the program goes on.
            A cycle waits for the handler of the one before, and `stop` for the last; what a handler raises is raised there.
        sample_steps: record one of so many steps (`10`), or this share of them (`0.1`, drawn at random, the same in each run); in the others nothing is
            recorded and operators cost what they cost unrecorded. Of a schedule, its active steps are sampled. Needs `prof.step()`, too.
        max_events: keep so many events at most. By default as many as a quarter of the machine's free memory has room for, which a warning says
            when it is reached. What is not kept is counted, and shown wherever the recording is.
        max_bytes: the same in bytes of records.
        keep: `"first"` keeps the events that end first, and what is open around them; `"last"` those that end last, as a flight recorder does.
        last_seconds: keep the last seconds of the recording.
        min_duration_us: leave out events that are shorter.
        max_depth: leave out events that have so many others around them.
        include: keep operators whose names match one of these patterns (`aten::*conv*`); scopes and functions stay.
        exclude: leave out operators whose names match one of these patterns.
        threads: keep the events of these threads, given by their names or the numbers that the system has for them.
        spool: a file to which the recording is written while it goes on, so that a crash leaves what was recorded; `mindtorch recover` and
            whatever opens recordings reads it. A new cycle begins the file anew, unless `acc_events` keeps the cycles before.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity | dict[ProfilerActivity, list[str]]] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool | str = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        execution_trace_observer: _ITraceObserver | None = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        background: bool = False,
        sample_steps: float | None = None,
        **bounds: Unpack[BoundOptions],
    ) -> None:
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
            wanted = set(parse_activities(activities)[0])
            wanted = wanted | {ProfilerActivity.CUDA} if use_cuda else wanted - {ProfilerActivity.CUDA}
            activities = list(wanted)
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer or ExecutionTraceObserver.build_execution_trace_obs_from_env(),
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
            **bounds,
        )
        if schedule is not None and not callable(schedule):
            raise TypeError(f"schedule must be a function of the step number, got {type(schedule).__name__}")
        if on_trace_ready is not None and not callable(on_trace_ready):
            raise TypeError(f"on_trace_ready must be a function of the profiler, got {type(on_trace_ready).__name__}")
        self.schedule = schedule or record_always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self._background = BackgroundHandler() if background else None
        self._is_sampled = sampled(sample_steps)
        self._active_steps = 0  # that were recorded, or would have been
        self.step_num = 0
        self.step_rec_fn: record_function | None = None
        self._stopping = False
        self.current_action = self._action_of(0)
        KinetoStepTracker.init_step_count(PROFILER_STEP_NAME)

    @property
    def action_map(self) -> dict[tuple[ProfilerAction, ProfilerAction | None], list[Callable[[], None]]]:
        """The functions to call between two successive actions of the schedule; None stands for the end."""
        # made when asked for: kept in an attribute, the bound methods would keep the profiler alive until a collection
        return {pair: [getattr(self, action) for action in actions] for pair, actions in TRANSITIONS.items()}

    def __enter__(self) -> profile:
        try:
            self.start()
            return self
        except KeyboardInterrupt:
            claims.release(self)  # it may have come after the start
            raise

    def __exit__(self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None) -> None:
        try:
            try:
                try:
                    self.stop()
                finally:
                    if self.execution_trace_observer:
                        self.execution_trace_observer.cleanup()
            finally:
                KinetoStepTracker.erase_step_count(PROFILER_STEP_NAME)
                claims.release(self)  # for an interrupt in the middle of `stop`
        except Exception as error:
            if exc_type is None:
                raise
            # the user's exception is on its way: nothing may come over it
            warnings.warn(f"stopping the profiler failed: {type(error).__name__}: {error}", stacklevel=2)

    def start(self) -> None:
        """Begin with the current step."""
        self._refuse_second_start()
        try:
            claims.claim(self)
            self._transit_action(ProfilerAction.NONE, self.current_action)
            self._sample_step()
            self._open_step()
        except BaseException:
            self._cancel_trace()
            claims.release(self)
            raise

    def stop(self) -> None:
        """End, and hand over what was recorded. Stopping twice is harmless."""
        if self._stopping or not claims.is_claimed_by(self):
            return  # stopped already, by its own handler maybe, or running in the process that this one was forked from
        try:
            self._stopping = True
            self._close_step()
            self._transit_action(self.current_action, None)
        finally:
            self._stopping = False
            claims.release(self)
        if self._background is not None:
            self._background.wait()
        if self.record_steps and self.profiler is None and sys.exc_info()[0] is None:  # nothing comes over a program's error
            warnings.warn(f"nothing was recorded: {self._reached()}", stacklevel=callers_level())

    def _reached(self) -> str:
        """Say how far the schedule of a profiler came that recorded nothing."""
        calls = f"step() was called {self.step_num} {'time' if self.step_num == 1 else 'times'}"
        first = getattr(self.schedule, "first_active_step", None)  # a program's own schedule has none
        if first is None:
            return f"the schedule has no active step among steps 0 to {self.step_num}, {calls}"
        return f"the schedule's first active step is step {first}, {calls}"

    def _why_nothing_was_recorded(self) -> str:
        return f"; no step was recorded: {self._reached()}" if self.record_steps else ""

    def step(self) -> None:
        """Say that the next step begins."""
        if not claims.is_claimed_by(self):
            raise RuntimeError(
                "step() on a profiler that is not running; use it inside `with profile(...) as prof:` or between start() and stop()"
            )
        action = self._action_of(self.step_num + 1)  # a schedule that raises leaves everything as it is
        self._close_step()
        previous, self.current_action = self.current_action, action
        self.step_num += 1
        if os.environ.get("KINETO_USE_DAEMON"):  # torch: steps are counted for a daemon alone
            KinetoStepTracker.increment_step(PROFILER_STEP_NAME)
        if capture.active is not None:
            capture.active.mark_step(self.step_num)
        try:
            self._transit_action(previous, action)
        finally:
            self._sample_step()
            self._open_step()

    def _sample_step(self) -> None:
        """Record the step that begins, or not."""
        if self._is_sampled is not None and capture.active is not None and claims.is_claimed_by(self):
            capture.active.sample_step(is_wanted=self._is_sampled(self._active_steps))
            self._active_steps += 1

    def _action_of(self, step: int) -> ProfilerAction:
        action = self.schedule(step)
        if not isinstance(action, ProfilerAction):
            raise TypeError(f"a schedule must return a ProfilerAction, got {action!r} for step {step}")
        if action is ProfilerAction.DEVICE_STOPPED:
            raise ValueError("ProfilerAction.DEVICE_STOPPED is the profiler's own; a schedule must not return it")
        return action

    def _first_step(self) -> int:
        return self.step_num

    def _reads_later(self) -> bool:
        return self._background is not None and self.on_trace_ready is not None

    def _is_warming_up(self) -> bool:
        return self.current_action is ProfilerAction.WARMUP

    def _open_step(self) -> None:
        if self.record_steps and claims.is_claimed_by(self):
            self.step_rec_fn = step_scope(f"{PROFILER_STEP_NAME}#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _close_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _transit_action(self, previous: ProfilerAction, current: ProfilerAction | None) -> None:
        errors: list[BaseException] = []
        for name in TRANSITIONS.get((previous, current), ()):
            if not claims.is_claimed_by(self):
                break  # the handler stopped it
            if errors and name == "_trace_ready":
                continue  # stopping failed: there is nothing to hand over
            try:
                getattr(self, name)()
            except BaseException as error:
                # the user's handler, or a warning that is an error: the rest is done all the same, since the program may go on
                errors.append(error)
        if errors:
            raise errors[0]

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None and self._background is not None:
            self._background.start(self.on_trace_ready, self._as_finished())
        elif self.on_trace_ready is not None:
            claims.begin_handler(self)
            try:
                self.on_trace_ready(self)
            finally:
                claims.end_handler(self)

    def _as_finished(self) -> profile:
        """This profiler with what it has recorded by now, whatever it records next."""
        finished = copy.copy(self)
        finished.profiler, finished._prepared, finished.step_rec_fn = copy.copy(self.profiler), None, None
        finished._metadata = dict(self._metadata)
        if finished.profiler is not None:
            finished.profiler.metadata = finished._metadata
        return finished

    def _warn_warmup_without_record(self) -> None:
        warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=4)

    def _warn_record_without_save(self) -> None:
        following = "WARMUP" if self.current_action is ProfilerAction.WARMUP else "NONE"
        warnings.warn(f"Incorrect schedule: RECORD followed by {following}", stacklevel=4)

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Have the ids of later recordings made by this function."""
        self.custom_trace_id_callback = callback
        if self.profiler is not None:
            self.profiler.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The id of the recording; None before the first."""
        return None if self.profiler is None else self.profiler.trace_id

    def _stats(self) -> Any:
        return None if self.profiler is None else self.profiler._stats
