"""torch.cpu: the one CPU, with the functions that programs for any device call."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from .._types import OptionalDevice
from . import amp

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "memory",
    "set_device",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1, however many cores it has."""
    return 1


def get_capabilities() -> dict[str, bool]:
    """The instructions that the processor has, by name, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return {}
    flags = next((line.partition(":")[2] for line in lines if line.startswith(("flags", "Features"))), "")
    return dict.fromkeys(flags.split(), True)


def current_device() -> str:
    """`"cpu"`."""
    return "cpu"


def set_device(device: OptionalDevice) -> None:
    """Nothing to choose."""


def synchronize(device: OptionalDevice = None) -> None:
    """Nothing to wait for: an operator that returned is done."""


class Stream:
    """A queue of work. On the CPU work is done when it is asked for, so that there is nothing to order."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        pass

    def record_event(self) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass


class Event:
    """A point in a queue of work, always reached."""

    def query(self) -> bool:
        return True

    def record(self, stream: Any = None) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def wait(self, stream: Any = None) -> None:
        pass


_current_stream = _default_cpu_stream = Stream()


def current_stream(device: OptionalDevice = None) -> Stream:
    """The stream in use."""
    return _current_stream


class StreamContext(AbstractContextManager[None]):
    """Makes a stream the one in use; `None` leaves it."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self.prev_stream = _default_cpu_stream

    def __enter__(self) -> None:
        global _current_stream
        if self.stream is not None:
            self.prev_stream, _current_stream = _current_stream, self.stream

    def __exit__(self, *exception: object) -> None:
        global _current_stream
        if self.stream is not None:
            _current_stream = self.prev_stream


def stream(stream: Stream | None) -> StreamContext:
    """A context in which this stream is the one in use."""
    return StreamContext(stream)
