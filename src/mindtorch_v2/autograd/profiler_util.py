"""Events and lists of events: `torch.autograd.profiler_util`."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from ..profiler.device_type import DeviceType  # noqa: F401 - torch's module has the name too
from ..profiler.model.averages import FunctionEventAvg
from ..profiler.model.event_metadata import METADATA_KEYS, EventMetadata, metadata_of
from ..profiler.model.events import FormattedTimesMixin, FunctionEvent, Interval, Kernel
from ..profiler.output import table
from ..profiler.output.event_list import EventList
from ..profiler.writing import units

__all__ = [
    "EventList",
    "EventMetadata",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MemRecordsAcc",
    "StringTable",
]

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"

# Events that say nothing about the program.
_LEFT_OUT = frozenset(
    {
        MEMORY_EVENT_NAME,
        OUT_OF_MEMORY_EVENT_NAME,
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    }
)
# Frames that say nothing about the program: part of the file's name, part of the function's.
_FRAMES_LEFT_OUT = (
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
    ("_internal/common_utils", "prof_callable"),
    ("_internal/common_utils", "prof_func_call"),
    ("_internal/common_utils", "prof_meth_call"),
)

_attr_formatter = units.time_text
_build_metadata = metadata_of
_build_table = table.render
_EVENT_METADATA_KEYS = METADATA_KEYS


class StringTable(defaultdict[str, str]):
    """Names as they are shown, by the names that were recorded. Nothing here is compiled C++, so they are the same."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Memory records by time. A record is a sequence whose first item has a `start_ns()`."""

    def __init__(self, mem_records: Sequence[Any]) -> None:
        self._records = sorted(mem_records, key=lambda record: record[0].start_ns())
        self._starts_ns = [record[0].start_ns() for record in self._records]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[Any]:
        """The records from `start_ns` to `end_ns`, both included."""
        first = bisect.bisect_left(self._starts_ns, start_ns)
        yield from self._records[first : bisect.bisect_right(self._starts_ns, end_ns)]


def _format_time(time_us: float) -> str:
    return units.time(time_us)


def _format_time_share(time_us: float, total_time_us: float) -> str:
    return units.share(time_us, total_time_us)


def _format_memory(nbytes: int) -> str:
    return units.memory(nbytes)


def _filter_name(name: str) -> bool:
    """Whether to leave out events of this name."""
    return name in _LEFT_OUT


def _filter_stack_entry(entry: str) -> bool:
    """Whether to keep this line of a stack."""
    return not any(file in entry and function in entry for file, function in _FRAMES_LEFT_OUT)


def _rewrite_name(name: str, with_wildcard: bool = False) -> str:
    """The name to show; with a wildcard, the same one for all steps."""
    return "ProfilerStep*" if with_wildcard and name.startswith("ProfilerStep#") else name
