"""`torch.Stream` and `torch.Event`: queues of work of any device. The CPU's is always empty."""

from __future__ import annotations

from ._device import device as device_type
from ._types import OptionalDevice

__all__ = ["Event", "Stream"]


def _cpu(device: OptionalDevice) -> device_type:
    """The CPU, which is the only device with streams."""
    found = device_type("cpu" if device is None else device)
    if found.type != "cpu":
        raise RuntimeError(f"PyTorch is not linked with support for {found.type} devices")
    return found


class Stream:
    """A queue of work: on the CPU, work is done when it is asked for."""

    def __init__(self, device: OptionalDevice = None, *, priority: int = 0) -> None:
        self.device = _cpu(device)
        self.device_index, self.stream_id = -1, 0

    def query(self) -> bool:
        """True: nothing waits."""
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait_event(self, event: Event) -> None:
        """Nothing to wait for."""

    def wait_stream(self, stream: Stream) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Event | None = None) -> Event:
        """Refused, as in PyTorch: the CPU has no events."""
        made = Event() if event is None else event
        made.record(self)
        return made

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, stream_id={self.stream_id}"


class Event:
    """A point in a queue of work. On the CPU none can be recorded."""

    def __init__(
        self, device: OptionalDevice = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self.device = _cpu(device)
        self.event_id = 0
        self._enable_timing = enable_timing

    def record(self, stream: Stream | None = None) -> None:
        """Refused, as in PyTorch."""
        raise RuntimeError("cpu backend doesn't support events.")

    def query(self) -> bool:
        """True: nothing waits."""
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, stream: Stream | None = None) -> None:
        """Nothing to wait for."""

    def elapsed_time(self, end_event: Event) -> float:
        """Refused, as in PyTorch: neither event was recorded."""
        if not (self._enable_timing and end_event._enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise ValueError("Both events must be recorded before calculating elapsed time.")

    def __repr__(self) -> str:
        return f"torch.Event device_type={self.device.type}, device_index=-1, event_flag=0, event_id={self.event_id}"
