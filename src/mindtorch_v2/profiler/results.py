"""The results of a finished recording: the same for one that was just made and for one that was saved."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

from . import advice
from ._memory_profiler import MemoryProfile, MemoryProfileTimeline
from .model.averages import FunctionEventAvg
from .model.grouping import GroupBy
from .model.leaks import Leaks
from .model.module_times import ModuleTimes
from .model.session import Session
from .model.summary import Summary
from .output import chrome_trace, report
from .output.event_list import EventList

__all__ = ["Results", "Summaries", "check_memory_flags", "write_memory_timeline"]


class Summaries(ABC):
    """Averages, tables and sums over the events of a recording, which torch's two profilers and saved sessions have in common."""

    @property
    @abstractmethod
    def session(self) -> Session:
        """The recording as columns, to save and to compute with."""

    @abstractmethod
    def _all_events(self) -> EventList:
        """Every event, ordered by start; made once."""

    @abstractmethod
    def _has_made_events(self) -> bool:
        """Whether there are events that a program may have changed."""

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        group_by_module: bool = False,
    ) -> EventList:
        """Events summed by name and, if asked, by input shapes, the innermost n frames, overload, and module and phase."""
        by = GroupBy(group_by_input_shape, group_by_stack_n, group_by_overload_name, group_by_module)
        return self._all_events().key_averages(*by) if self._has_made_events() else EventList.averages_of(self.session, by)

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
        return self._all_events().table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
            max_width=max_width,
        )

    def total_average(self) -> FunctionEventAvg:
        """Sums over all events."""
        return self._all_events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the self times of all events, in microseconds."""
        return self._all_events().self_cpu_time_total

    def summary(self) -> Summary:
        """Where the wall time of the recording went: operators, the program's own Python, loading of data, compilation, the recorder."""
        return Summary.of(self.session)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write one line a stack for flame graphs; needs `with_stack=True`."""
        if not self.session.info.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._all_events().export_stacks(path, metric)


class Results(Summaries):
    """The results of a recording: events, averages, tables and files.

        results = Results.load("run.session")
        print(results.key_averages().table(sort_by="self_cpu_time_total"))

    Has the methods of a finished `profile`, with the same answers. `session` is the recording as columns.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._events: EventList | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Results:
        """The results of the session that was saved to this file."""
        return cls(Session.load(path))

    @property
    def session(self) -> Session:
        """The recording as columns, to save and to compute with."""
        return self._session

    def events(self) -> EventList:
        """Every event, ordered by start."""
        return self._all_events()

    def _all_events(self) -> EventList:
        if self._events is None:
            self._events = EventList.of(self.session)
        return self._events

    def _has_made_events(self) -> bool:
        return self._events is not None

    def by_module(self) -> ModuleTimes:
        """The time of each module, forward and backward; needs `with_modules=True`."""
        return ModuleTimes.of(self.session)

    def leaks(self, group_by_stack_n: int | None = None, *, collect: bool = False) -> Leaks:
        """Storages that were made inside the recording and were alive at its end, by operator and stack; needs `profile_memory=True`.

        `group_by_stack_n` takes so many frames into account, the innermost (None: all); the stacks need `with_stack=True`.
        `collect` runs the garbage collector now, and leaves out what only that frees: tensors in reference cycles. It is for the
        process that recorded, as long as it lives.
        """
        if collect:
            raise ValueError("leaks(collect=True) is for the process that recorded: ask there, before you save the session")
        return Leaks.of(self.session, group_by_stack_n)

    def advise(self, *, min_share: float = 0.01, rules: Any = None) -> advice.Advice:
        """Say what could be faster, with evidence and an estimate of the gain. See `mindtorch_v2.profiler.advise`."""
        return advice.advise(self.session, min_share=min_share, rules=rules)

    def export_chrome_trace(self, path: str) -> None:
        """Write the trace for Perfetto, TensorBoard and others; gzipped if the path ends with `.gz`."""
        chrome_trace.write(self.session, path)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Write how much memory of each category was in use over time; needs shapes, memory and stacks.

        `.html` is a page to look at, `.raw.json.gz` a list of `[time, action, bytes, category]`, anything else `[times, sizes by
        category]` as JSON, gzipped if the path ends with `.gz`.
        """
        info = self.session.info
        check_memory_flags(record_shapes=info.record_shapes, profile_memory=info.profile_memory, with_stack=info.with_stack)
        write_memory_timeline(MemoryProfileTimeline(MemoryProfile(self.session)), path, device, info.use_device)

    def export_report(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write a page that answers where the time went: one HTML file, which needs nothing but a browser."""
        report.write([self.session], path, title=title)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to a file that `Results.load` and `Session.load` read."""
        self.session.save(path)


def check_memory_flags(**flags: Any) -> None:
    """Raise an error that names what a memory timeline needs and was not recorded."""
    if missing := [f"{flag}=True" for flag, is_on in flags.items() if not is_on]:
        raise ValueError(f"{', '.join(missing)} required for memory profiling.")


def write_memory_timeline(
    timeline: MemoryProfileTimeline, path: str | os.PathLike[str], device: str | None, use_device: str | None
) -> None:
    """Write a timeline in the format that the path's ending says."""
    device = device or (f"{use_device}:0" if use_device else "cpu")
    name = os.fspath(path)
    if name.endswith(".html"):
        timeline.export_memory_timeline_html(path, device)
    elif name.endswith("raw.json.gz"):
        timeline.export_memory_timeline_raw(path, device)
    else:
        timeline.export_memory_timeline(path, device)
