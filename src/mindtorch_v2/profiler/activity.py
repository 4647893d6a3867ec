"""Activities that can be recorded."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from .. import npu

__all__ = [
    "InvalidArgumentError",
    "ProfilerActivity",
    "kineto_available",
    "memory_source",
    "parse_activities",
    "supported_activities",
]


class InvalidArgumentError(ValueError, AssertionError):
    """An argument with a value that makes no sense. torch raises AssertionError; ValueError is what Python's users expect."""


class ProfilerActivity(enum.Enum):
    """A place where work happens: the host, or the device (which torch's programs call by other names)."""

    CPU = 0
    NPU = 5
    CUDA = 5  # noqa: PIE796 - an alias: programs written for that device record this one
    GPU = 5  # noqa: PIE796
    PrivateUse1 = 5  # noqa: PIE796

    def __str__(self) -> str:
        return f"ProfilerActivity.{self.name}"


# Kinds of events that an activity is made of, by the names that torch's filters use.
ACTIVITY_TYPES = {
    ProfilerActivity.CPU: {
        "CPU_OP": "op",
        "USER_ANNOTATION": "scope",
        "CPU_INSTANT_EVENT": "memory",
        "PYTHON_FUNCTION": "python_function",
    },
    ProfilerActivity.NPU: {"PRIVATEUSE1_RUNTIME": "runtime", "CONCURRENT_KERNEL": "kernel"},
}


def kineto_available() -> bool:
    """True: there is nothing that would have to be built in."""
    return True


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be recorded on this machine."""
    return {ProfilerActivity.CPU, ProfilerActivity.NPU} if npu.is_available() else {ProfilerActivity.CPU}


def parse_activities(
    activities: Iterable[ProfilerActivity | Mapping[ProfilerActivity, Iterable[str]]] | None,
) -> tuple[set[ProfilerActivity], dict[ProfilerActivity, set[str]]]:
    """The activities asked for, and for those that name their types of events, the types."""
    if activities is None:
        return supported_activities(), {}
    wanted: set[ProfilerActivity] = set()
    filters: dict[ProfilerActivity, set[str]] = {}
    for item in activities:
        for activity, types in item.items() if isinstance(item, Mapping) else [(item, None)]:
            _check(activity)
            if activity in wanted:
                raise ValueError(f"Activity {activity} specified more than once")
            wanted.add(activity)
            if types is not None:
                filters[activity] = set(types)
                _check_types(activity, filters[activity])
    if not wanted:
        raise InvalidArgumentError("No valid profiler activities found")
    return wanted, filters


def _check(activity: object) -> None:
    if not isinstance(activity, ProfilerActivity):
        names = ", ".join(f"ProfilerActivity.{name}" for name in ProfilerActivity.__members__)
        raise InvalidArgumentError(f"{activity!r} is not an activity; the activities are {names}")


def _check_types(activity: ProfilerActivity, types: set[str]) -> None:
    for name in types:
        if name not in ACTIVITY_TYPES[activity]:
            valid = ", ".join(ACTIVITY_TYPES[activity])
            raise RuntimeError(f"Unknown or non-member activity type name: {name!r}; {activity} consists of {valid}")


STORAGES, HEAP = "storages", "tracemalloc"  # what memory can be counted by


def memory_source(profile_memory: bool | str) -> str | None:
    """Return what memory is counted by: the storages of tensors, or Python's allocations; None if it is not asked for."""
    if not isinstance(profile_memory, str):
        return STORAGES if profile_memory else None
    if profile_memory not in (STORAGES, HEAP):
        raise ValueError(f"profile_memory={profile_memory!r}: memory is counted by {STORAGES!r} (as with True) or by {HEAP!r}")
    return profile_memory


def kinds_wanted(filters: Mapping[ProfilerActivity, set[str]]) -> set[str] | None:
    """The kinds of events that filters let through; None for all."""
    if not filters:
        return None
    kinds = {"gc", "compile"}
    for activity, types in ACTIVITY_TYPES.items():
        kinds |= {kind for name, kind in types.items() if name in filters.get(activity, types)}
    return kinds
