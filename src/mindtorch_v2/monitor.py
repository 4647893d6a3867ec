"""torch.monitor: numbers of a process that are summed up over a time and given to handlers."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from ._forking import new_lock

__all__ = [
    "COUNT",
    "MAX",
    "MEAN",
    "MIN",
    "STAT_EVENT",
    "SUM",
    "VALUE",
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]

STAT_EVENT = "torch.monitor.Stat"
data_value_t = int | float | bool | str


class Aggregation(enum.IntEnum):
    """What is made of the numbers of a `Stat`."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6

    def __str__(self) -> str:
        return f"Aggregation.{self.name}"


VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation

_OF_SAMPLES: dict[Aggregation, Callable[[list[float]], float]] = {
    Aggregation.MEAN: lambda samples: sum(samples) / len(samples) if samples else 0.0,
    Aggregation.COUNT: lambda samples: float(len(samples)),
    Aggregation.SUM: lambda samples: float(sum(samples)),
    Aggregation.MAX: lambda samples: max(samples, default=0.0),
    Aggregation.MIN: lambda samples: min(samples, default=0.0),
}


class Event:
    """Something that happened, for handlers."""

    def __init__(self, name: str, timestamp: datetime, data: dict[str, data_value_t]) -> None:
        if not isinstance(name, str) or not isinstance(timestamp, datetime):
            raise TypeError(f"an event has a name and a datetime, got {name!r} and {timestamp!r}")
        wrong = {key: value for key, value in data.items() if not isinstance(key, str) or not isinstance(value, data_value_t)}
        if wrong:
            raise TypeError(f"the data of an event are numbers and texts by name, got {wrong}")
        self.name = name
        self.timestamp = timestamp
        # torch: a bool is kept as a number
        self.data = {key: float(value) if isinstance(value, bool) else value for key, value in data.items()}


class EventHandlerHandle:
    """What `unregister_event_handler` takes."""

    def __init__(self, handler: Callable[[Event], None]) -> None:
        self._handler = handler


_handles: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Have a function called with each event."""
    handle = EventHandlerHandle(callback)
    _handles.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Call a function no more."""
    if handler in _handles:
        _handles.remove(handler)


def log_event(event: Event) -> None:
    """Give an event to all handlers."""
    for handle in list(_handles):
        handle._handler(event)


class Stat:
    """Numbers that are summed up over windows of time; each window that ends with numbers in it is an event.

    Args:
        name: the name, with which the values in the event begin: `name.mean`.
        aggregations: what is made of the numbers.
        window_size: the length of a window.
        max_samples: so many numbers end what is summed up early; further ones of the same window are left out.
    """

    def __init__(
        self, name: str, aggregations: Sequence[Aggregation], window_size: timedelta, max_samples: int | None = None
    ) -> None:
        if not all(isinstance(a, Aggregation) for a in aggregations):
            raise TypeError(f"aggregations are members of torch.monitor.Aggregation, got {list(aggregations)}")
        self._name = name
        self._made = [a for a in Aggregation if a in aggregations and a in _OF_SAMPLES]
        self._window_s, self._most = window_size.total_seconds(), max_samples
        self._lock = new_lock()
        self._samples: list[float] = []
        self._last: list[float] = []
        self._window = self._now()
        self._is_full = False

    def _now(self) -> int:
        return int(time.time() // self._window_s)

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def count(self) -> int:
        """The number of numbers in the window that runs."""
        self._turn()
        return len(self._samples)

    def add(self, v: float) -> None:
        """Add a number to the window that runs."""
        value = float(v) if isinstance(v, int | float) else None
        if value is None:
            raise TypeError(f"a number is added to a Stat, got {type(v).__name__}")
        self._turn()
        with self._lock:
            if self._is_full:
                return
            self._samples.append(value)
            self._is_full = self._most is not None and len(self._samples) >= self._most
        if self._is_full:
            self._end()

    def get(self) -> dict[Aggregation, float]:
        """The values of the last window that ended."""
        self._turn()
        return {a: _OF_SAMPLES[a](self._last) for a in self._made}

    def _turn(self) -> None:
        """End a window whose time is over."""
        now = self._now()
        if now != self._window:
            self._end()
            self._window, self._is_full = now, False

    def _end(self) -> None:
        with self._lock:
            if not self._samples:
                return
            self._last, self._samples = self._samples, []
        values: dict[str, Any] = {f"{self._name}.{a.name.lower()}": _OF_SAMPLES[a](self._last) for a in self._made}
        log_event(Event(STAT_EVENT, datetime.now(), values))

    def __del__(self) -> None:
        if getattr(self, "_samples", None):
            self._end()


class TensorboardEventHandler:
    """A handler that writes the values of `Stat` events as scalars.

    Args:
        writer: a `torch.utils.tensorboard.SummaryWriter`.
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
