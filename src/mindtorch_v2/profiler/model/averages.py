"""Sums over several events of one kind."""

from __future__ import annotations

from typing import Any

from ..device_type import DeviceType
from .events import FormattedTimesMixin, FunctionEvent

__all__ = ["FunctionEventAvg"]

SUMS = (
    "cpu_time_total",
    "device_time_total",
    "self_cpu_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "device_memory_usage",
    "self_cpu_memory_usage",
    "self_device_memory_usage",
    "count",
)
# What a row takes from the first of its events.
DESCRIPTION = (
    "key",
    "node_id",
    "is_async",
    "is_remote",
    "cpu_parent",
    "overload_name",
    "input_shapes",
    "stack",
    "scope",
    "device_type",
    "is_legacy",
    "use_device",
    "is_user_annotation",
)


class _Children:
    """A slot beside the attributes of an average, which are torch's. It holds the list of its children, or the event that has that list."""

    __slots__ = ("_children",)


class FunctionEventAvg(_Children, FormattedTimesMixin):
    """Sums over events: a row of `key_averages()`. `cpu_time` and `device_time` are per call."""

    module: str = ""  # of the class, as in `FunctionEvent`
    phase: str = ""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.is_async = False
        self.is_remote = False
        self.use_device: str | None = None
        self.cpu_time_total: float = 0
        self.device_time_total: float = 0
        self.self_cpu_time_total: float = 0
        self.self_device_time_total: float = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: Any = None
        self.scope: int | None = None
        self.cpu_memory_usage = 0
        self.device_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.self_device_memory_usage = 0
        self._children: Any = None  # the list, or the event that has it
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = DeviceType.CPU
        self.is_legacy = False
        self.is_user_annotation: bool | None = False
        self.flops: int | None = 0

    def describe(self, event: FunctionEvent | FunctionEventAvg) -> None:
        """Be a row of events like this one."""
        for name in DESCRIPTION:
            setattr(self, name, getattr(event, name))
        self._children = event
        if event.phase:
            self.module, self.phase = event.module, event.phase

    @property
    def cpu_children(self) -> Any:
        """Those of the first event. A million are made in a step, so they are asked for when they are wanted."""
        return self._children.cpu_children if isinstance(self._children, FunctionEvent | FunctionEventAvg) else self._children

    @cpu_children.setter
    def cpu_children(self, children: list[FunctionEvent] | None) -> None:
        self._children = children

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Count in an event, or what others took together. The first one gives the row its name."""
        if not isinstance(other, FunctionEvent | FunctionEventAvg):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if self.key is None:
            self.describe(other)
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.flops is not None:
            self.flops = other.flops + (self.flops or 0)
        return self

    def __iadd__(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f" self_{device}_time={self.self_device_time_total_str} {device}_time={self.device_time_str} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage}>"
        )
