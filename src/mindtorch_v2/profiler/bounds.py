"""Which recorded events are kept: how many, the first or the last of them, and which ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from .container_memory import left_by_limits
from .model.dropping import MEMORY

__all__ = ["BoundOptions", "Bounds", "free_bytes"]

FIRST, LAST = "first", "last"
NO_BOUND = sys.maxsize
LONGEST_S = 1 << 32  # of a recording: more than a century


class BoundOptions(TypedDict, total=False):
    """The arguments of `profile` that say which events are kept; they are explained there."""

    max_events: int | None
    max_bytes: int | None
    keep: str
    last_seconds: float | None
    min_duration_us: float
    max_depth: int | None
    include: Sequence[str]
    exclude: Sequence[str]
    threads: Sequence[str | int] | None
    spool: str | os.PathLike[str] | None


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Which events are kept. The names are those of the arguments of `profile`, where they are explained."""

    max_events: int | None = None
    max_bytes: int | None = None
    keep: str = FIRST
    last_seconds: float | None = None
    min_duration_us: float = 0.0
    max_depth: int | None = None
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    threads: Sequence[str | int] | None = None
    spool: str | os.PathLike[str] | None = None
    ends_recording: bool = False  # whether the recording ends where the first events are complete, with its step, which is kept whole; no argument of `profile`

    def __post_init__(self) -> None:
        for name in ("max_events", "max_bytes", "max_depth"):
            _check_count(name, getattr(self, name))
        if self.keep not in (FIRST, LAST):
            raise ValueError(f"keep must be {FIRST!r} or {LAST!r}, got {self.keep!r}")
        if self.last_seconds is not None and not (_is_number(self.last_seconds) and 0 < self.last_seconds < LONGEST_S):
            raise ValueError(f"last_seconds must be a number of seconds above 0, got {self.last_seconds!r}")
        if not (_is_number(self.min_duration_us) and self.min_duration_us >= 0):
            raise ValueError(f"min_duration_us must be a number of microseconds, 0 or more, got {self.min_duration_us!r}")
        if self.keep == LAST and self.max_events is None and self.max_bytes is None and self.last_seconds is None:
            raise ValueError("keep='last' needs to know how much: give max_events, max_bytes or last_seconds")
        if self.spool is not None:
            # absolute: the program may change the directory between two recordings. A number, which would be somebody else's open file, is refused
            object.__setattr__(self, "spool", os.path.abspath(self.spool))
        for name, kinds in (("include", str), ("exclude", str), ("threads", (str, int))):
            object.__setattr__(self, name, _names(name, getattr(self, name), kinds))

    @classmethod
    def of(cls, options: BoundOptions) -> Bounds:
        """The bounds by arguments of `profile`; one that it does not take is its TypeError."""
        unknown = [name for name in options if name not in BoundOptions.__annotations__]
        if unknown:
            raise TypeError(f"profile() got an unexpected keyword argument {unknown[0]!r}")
        return cls(**options)

    @property
    def keeps_last(self) -> bool:
        """Whether late events take the place of early ones."""
        return self.keep == LAST or self.last_seconds is not None

    @property
    def is_given(self) -> bool:
        """Whether an option says how many events are kept."""
        return self.max_events is not None or self.max_bytes is not None

    def most_kept(self, bytes_per_event: int) -> tuple[int, str]:
        """How many events are kept at most, and the option that says so."""
        return (NO_BOUND, MEMORY) if self.ends_recording else self.most_events(bytes_per_event)

    def most_events(self, bytes_per_event: int) -> tuple[int, str]:
        """How many events the options allow, and the option that says so."""
        by_option = {
            "max_events": self.max_events,
            "max_bytes": None if self.max_bytes is None else max(1, self.max_bytes // bytes_per_event),
        }
        given = {name: count for name, count in by_option.items() if count is not None}
        name = min(given, key=given.__getitem__) if given else MEMORY
        return given.get(name, NO_BOUND), name


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating))


def _names(name: str, values: Any, kinds: type | tuple[type, ...]) -> tuple[Any, ...] | None:
    """The names that an option gives, which are asked for again and again."""
    if values is None and name == "threads":
        return None
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of names, got {values!r}; write {name}=[…]")
    found = tuple(values)
    for value in found:
        if not isinstance(value, kinds):
            raise TypeError(f"{name} must be a list of names, and {value!r} is none")
    return found


def _check_count(name: str, value: object) -> None:
    if value is not None and (type(value) is not int or value < 1):
        raise ValueError(f"{name} must be a whole number above 0, got {value!r}")


def free_bytes() -> int:
    """The memory that this process could take: of the machine, of its container, and of its own limit."""
    known = [size for size in (_of_machine(), left_by_limits(), _of_process()) if size is not None]
    return min(known, default=8 << 30)


def _of_machine() -> int | None:
    try:
        with open("/proc/meminfo") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _of_process() -> int | None:
    try:
        import resource  # not on every system

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return None
    return None if limit == resource.RLIM_INFINITY else max(0, limit - used)
