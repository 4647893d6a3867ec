"""One event: what ran, when, where, and what ran inside."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..device_type import DeviceType
from ..writing import units
from .event_metadata import EventMetadata, metadata_of

__all__ = ["FormattedTimesMixin", "FunctionEvent", "Interval", "Kernel"]

_DEVICES = (DeviceType.CUDA, DeviceType.PrivateUse1, DeviceType.MTIA, DeviceType.HPU, DeviceType.XPU)


class Interval:
    """From one time to another, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        return self.end - self.start


class Kernel(NamedTuple):
    """Work that an operator started on a device; the duration is in microseconds."""

    name: Any
    device: Any
    duration: Any


def _deprecated(new: str, text: str) -> property:
    """A property that warns and gives the value of the attribute that took its place."""

    def value(self: FunctionEvent) -> Any:
        warnings.warn(text, FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(value)


def _without_children(total: str) -> property:
    """A property: an event's total less the totals of its children."""

    def value(self: FunctionEvent) -> float:
        if self._has_no_self:
            return 0
        return getattr(self, total) - sum(getattr(child, total) for child in self._counted_children)

    return property(value)


class FormattedTimesMixin:
    """Times per call, and times as text, computed from `count` and the total times."""

    count: int
    cpu_time_total: Any
    device_time_total: Any
    flops: int | None

    cpu_time_str = units.time_text("cpu_time")
    device_time_str = units.time_text("device_time")
    cpu_time_total_str = units.time_text("cpu_time_total")
    device_time_total_str = units.time_text("device_time_total")
    self_cpu_time_total_str = units.time_text("self_cpu_time_total")
    self_device_time_total_str = units.time_text("self_device_time_total")

    @property
    def cpu_time(self) -> float:
        return 0.0 if self.count == 0 else 1.0 * self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        return 0.0 if self.count == 0 else 1.0 * self.device_time_total / self.count

    @property
    def gflops_per_second(self) -> float:
        """Billions of floating point operations in a second of the device's time, or of the CPU's when there was no device."""
        time_us = self.device_time_total or self.cpu_time_total
        return (self.flops or 0) / time_us / 1000 if time_us else 0.0

    cuda_time = _deprecated("device_time", "`cuda_time` is deprecated, please use `device_time` instead.")


class FunctionEvent(FormattedTimesMixin):
    """An event with torch's attributes. Times are microseconds; `time_range` counts from the start of the recording.

    An asynchronous event ends on another thread than it began on: it has no children and no time of its own.
    """

    # Of the class, because events made by hand have torch's attributes and no more.
    module: str = ""  # `GPT.blocks.0.mlp`, with `with_modules=True`
    module_hierarchy: str = ""  # the same with classes, as torch writes it
    phase: str = ""  # `forward` in a module, `backward` in a backward pass

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: Sequence[Sequence[int]] | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: list[Any] | None = None,
        kwinputs: dict[str, Any] | None = None,
        is_user_annotation: bool | None = False,
        is_python_function: bool = False,
        activity_type: str | None = None,
        metadata_json: str | None = None,
        flow_id: int | None = None,
        flow_type: int | None = None,
        flow_start: bool | None = None,
        external_id: int = 0,
        linked_correlation_id: int = 0,
        extra_meta: dict[str, str] | None = None,
        structured_input_shapes: list[Any] | None = None,
        structured_input_strides: list[Any] | None = None,
        input_dtypes: list[str] | None = None,
        python_id: int = -1,
        python_parent_id: int = -1,
        python_module_id: int = -1,
    ) -> None:
        self.id = id
        self.node_id = node_id
        self.name = name
        self.overload_name = overload_name
        self.trace_name = trace_name
        self.time_range = Interval(start_us, end_us)
        self.thread = thread
        self.fwd_thread = fwd_thread
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes = input_shapes
        self.concrete_inputs = concrete_inputs
        self.kwinputs = kwinputs
        self.stack: Any = stack
        self.scope = scope
        self.use_device = use_device
        self.cpu_memory_usage = cpu_memory_usage
        self.device_memory_usage = device_memory_usage
        self.is_async = is_async
        self.is_remote = is_remote
        self.sequence_nr = sequence_nr
        self.device_type = device_type
        self.device_index = device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_legacy = is_legacy
        self.flops = flops
        self.is_user_annotation = is_user_annotation
        self.is_python_function = is_python_function
        self.activity_type = activity_type
        # Shares of the whole, as text, once a table has shown the event.
        self.self_cpu_percent: Any = -1
        self.total_cpu_percent: Any = -1
        self.total_device_percent: Any = -1
        self._metadata_json = metadata_json
        self.flow_id = flow_id
        self.flow_type = flow_type
        self.flow_start = flow_start
        self.external_id = external_id
        self.linked_correlation_id = linked_correlation_id
        self.event_metadata: EventMetadata | None = metadata_of(extra_meta) if extra_meta else None
        self.structured_input_shapes = structured_input_shapes
        self.structured_input_strides = structured_input_strides
        self.input_dtypes = input_dtypes
        self.python_id = python_id
        self.python_parent_id = python_parent_id
        self.python_module_id = python_module_id

    @property
    def key(self) -> str:
        return self.name

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Note work on a device that this event started."""
        self._check_cpu(self, "device_type")
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Note an event directly inside this one."""
        self._check_cpu(self, "device_type")
        self._check_cpu(child, "child")
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Note the event directly around this one."""
        self._check_cpu(self, "device_type")
        self._check_cpu(parent, "parent")
        self.cpu_parent = parent

    @staticmethod
    def _check_cpu(event: FunctionEvent, role: str) -> None:
        if not isinstance(event, FunctionEvent):
            raise AssertionError(f"Expected {role} to be a FunctionEvent")
        if event.device_type != DeviceType.CPU:
            raise AssertionError(
                "Expected device_type to be CPU" if role == "device_type" else f"Expected {role} device_type to be CPU"
            )

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    self_cpu_time_total = _without_children("cpu_time_total")
    self_cpu_memory_usage = _without_children("cpu_memory_usage")
    self_device_memory_usage = _without_children("device_memory_usage")

    @property
    def device_time_total(self) -> float:
        if self.is_async or not self.use_device:
            return 0
        if self.device_type == DeviceType.CPU:
            own = sum(kernel.duration for kernel in self.kernels)
            # torch: the single kernel of a legacy event stands for all that it started
            return own if self.is_legacy else own + sum(child.device_time_total for child in self._counted_children)
        self._check_device()
        return self.time_range.elapsed_us()

    @property
    def self_device_time_total(self) -> float:
        if self.is_async or not self.use_device:
            return 0
        if self.device_type == DeviceType.CPU:
            return self.device_time_total - sum(child.device_time_total for child in self._counted_children)
        self._check_device()
        return self.device_time_total

    @property
    def _counted_children(self) -> list[FunctionEvent]:
        """The events inside whose times are no part of this one's own."""
        return self.cpu_children

    @property
    def _has_no_self(self) -> bool:
        return self.is_async or self.device_type != DeviceType.CPU

    def _check_device(self) -> None:
        if self.device_type not in _DEVICES:
            raise AssertionError(f"Expected device_type to be CUDA, PrivateUse1, MTIA, HPU or XPU, but got {self.device_type}")

    metadata_json = _deprecated("_metadata_json", "`metadata_json` is deprecated. Use `event_metadata` instead.")
    cuda_time_total = _deprecated("device_time_total", "`cuda_time_total` is deprecated. Use `device_time_total` instead.")
    self_cuda_time_total = _deprecated(
        "self_device_time_total", "`self_cuda_time_total` is deprecated. Use `self_device_time_total` instead."
    )
    self_cuda_memory_usage = _deprecated(
        "self_device_memory_usage", "`self_cuda_memory_usage` is deprecated. Use `self_device_memory_usage` instead."
    )

    def __repr__(self) -> str:
        device = self.use_device
        facts = {
            "id": self.id,
            "name": self.name,
            "overload_name": self.overload_name,
            "device_type": self.device_type,
            "node_id": self.node_id,
            "cpu_time": self.cpu_time_str,
            "start_us": self.time_range.start,
            "end_us": self.time_range.end,
            "cpu_children": [child.id for child in self.cpu_children],
            f"{device}_time": self.device_time_str,
            "name ": self.name,  # torch: the name comes twice
            "thread": self.thread,
            "input_shapes": self.input_shapes,
            "cpu_memory_usage": self.cpu_memory_usage,
            f"{device}_memory_usage": self.device_memory_usage,
            "is_async": self.is_async,
            "is_remote": self.is_remote,
            "seq_nr": self.sequence_nr,
            "is_legacy": self.is_legacy,
        }
        return f"<FunctionEvent {' '.join(f'{name.strip()}={value!s}' for name, value in facts.items())}>"
