"""torch.xpu.streams: classes to name; none of them can be made without the device."""

from __future__ import annotations

from typing import Any

__all__ = ["Event", "Stream", "StreamContext"]


class Stream:
    """A queue of work of the device."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Tried to instantiate dummy base class Stream")


class Event:
    """A point in such a queue."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Tried to instantiate dummy base class Event")


class StreamContext:
    """A context in which a stream is in use; nothing changes, for there is none but None."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass
