"""A list of events as a table of text, the way torch prints it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..device_type import DeviceType
from ..model import grouping
from ..model.recorded_events import rows_of
from ..model.session import COMPILE
from ..writing import units
from ..writing.html_table import html_table
from ..writing.text_table import GAP, Column, TextTable, end_of, printable
from .table_columns import fit

if TYPE_CHECKING:
    from ..model.averages import FunctionEventAvg
    from ..model.events import FunctionEvent

__all__ = ["attribute", "render", "render_html"]

_ON_DEVICE = (DeviceType.CUDA, DeviceType.PrivateUse1, DeviceType.MTIA, DeviceType.XPU)
_DEVICES = ("cuda", "xpu", "privateuse1", "npu")
_SOURCE = "Source Location"
_SORTED_BY = (
    *("self_cpu_time_total", "cpu_time_total", "cpu_time", "count", "cpu_memory_usage", "self_cpu_memory_usage", "flops"),
    *("self_device_time_total", "device_time_total", "device_time", "device_memory_usage", "self_device_memory_usage", "key"),
)


@dataclass(frozen=True)
class Overview:
    """The facts about all events, shown or not, that the table as a whole depends on."""

    examples: Sequence[Any]  # events of every name, shapes, stack, …
    cpu_us: float  # what all events took for themselves
    device_us: float
    has_device_time: bool
    count: int
    compilation: tuple[float, int]  # what it took in microseconds, and of how many functions


def attribute(name: str) -> str:
    """The attribute for a metric that may name a device: `cuda_time_total` is `device_time_total`."""
    return "_".join("device" if word in _DEVICES else word for word in name.split("_"))


def render(
    events: Sequence[Any],
    sort_by: str | None = None,
    header: str | None = None,
    row_limit: int = 100,
    max_src_column_width: int | None = 75,
    max_name_column_width: int | None = 55,
    max_shapes_column_width: int | None = 80,
    with_flops: bool = False,
    profile_memory: bool = False,
    top_level_events_only: bool = False,
    time_unit: str | None = None,
    *,
    max_width: int | None = None,
    gaps: Sequence[str] = (),
) -> str:
    """The table: headings, a row for each event (and a line for each place in its stack), and totals below."""
    units.check_time_unit(time_unit)
    _check_row_limit(row_limit)
    if sort_by is not None:
        events = _sorted(events, sort_by)
    overview = _overview(events)
    widths = (max_name_column_width, max_shapes_column_width, max_src_column_width)
    columns = _columns(events, overview, widths, time_unit, with_flops=with_flops, profile_memory=profile_memory)
    source = [column for column in columns if column.heading == _SOURCE]
    notes: list[str] = []
    if max_width is not None:
        columns, notes = fit(columns, max_width, attribute(sort_by or ""))
        source = [column for column in columns if column.heading == _SOURCE]
    text = TextTable(columns, _shown(events, row_limit, top_level_events_only), _further_places(source[0]) if source else None)
    double_line = "=" * len(text.rule)
    lines = [double_line, "\n".join(map(printable, header.split("\n")))] if header is not None else []
    if top_level_events_only:
        lines += [double_line, "This report only display top-level ops statistics"]
    lines += [line + GAP for line in text.lines()]  # torch: blanks after the last column, too
    lines += [*_totals(events, overview, time_unit), *gaps]
    if max_width is not None:
        lines = [line.rstrip() for line in lines]  # blanks at the end of a line would wrap, too
    return "\n".join([*lines, *notes, ""])


def render_html(
    events: Sequence[Any],
    sort_by: str | None,
    row_limit: int,
    *,
    with_flops: bool = False,
    profile_memory: bool = False,
    gaps: Sequence[str] = (),
) -> str:
    """The same table for a notebook, in HTML; names and shapes are whole, of a stack the innermost place is shown."""
    if sort_by is not None:
        events = _sorted(events, sort_by)
    overview = _overview(events)
    columns = _columns(events, overview, (None, None, None), None, with_flops=with_flops, profile_memory=profile_memory)
    totals = [*_totals(events, overview, None), *gaps]
    if 0 <= row_limit < len(events):
        totals = [f"{len(events) - row_limit:,} rows more", *totals]
    return html_table(columns, _shown(events, row_limit, False), totals)


def _columns(
    events: Sequence[Any],
    overview: Overview,
    widths: tuple[int | None, int | None, int | None],
    time_unit: str | None,
    *,
    with_flops: bool,
    profile_memory: bool,
) -> list[Column]:
    """The columns of a table of these events; `widths` are those of names, shapes and places at most."""
    examples, has_device_time = overview.examples, overview.has_device_time
    use_device = events[0].use_device if events else None
    if has_device_time and not use_device:
        raise RuntimeError("use_device is None, but there is device performance data.")
    name_width, shapes_width, source_width = widths
    return [
        *_names(examples, name_width),
        *_modules(examples, name_width),
        *_cpu_times(overview.cpu_us, time_unit),
        *(_device_times(_device(events), overview.device_us, time_unit) if has_device_time else ()),
        *(_memory(examples, _device(events), bool(use_device)) if profile_memory else ()),
        *_counts(examples),
        *_shapes(examples, shapes_width),
        *(_flops(examples) if with_flops else ()),
        *_source(examples, source_width),  # the last one: further places of a stack stand below the first
    ]


def _device(events: Sequence[Any]) -> str:
    """The name of the device, as headings have it."""
    use_device = events[0].use_device if events else None
    return use_device.upper() if use_device else "None"


def _totals(events: Sequence[Any], overview: Overview, time_unit: str | None) -> list[str]:
    """The lines below a table."""
    lines = _compilation(*overview.compilation, time_unit)
    lines.append(f"Self CPU time total: {units.time(overview.cpu_us, time_unit)}")
    if overview.has_device_time:
        lines.append(f"Self {_device(events)} time total: {units.time(overview.device_us, time_unit)}")
    total = units.time(overview.cpu_us + overview.device_us, time_unit)
    return [*lines, f"Count: {overview.count:,} {'event' if overview.count == 1 else 'events'}, Total: {total}"]


def _sorted(events: Sequence[Any], sort_by: str) -> list[Any]:
    """The events by an attribute, largest first."""
    if not isinstance(sort_by, str):
        raise TypeError(f"sort_by takes the name of an attribute such as 'self_cpu_time_total', got {sort_by!r}")
    key = attribute(sort_by)
    if unlike := next((event for event in events if not hasattr(event, key)), None):
        raise AttributeError(_unknown_attribute(unlike, key, sort_by))
    try:
        return sorted(events, key=lambda event: getattr(event, key), reverse=True)
    except TypeError as error:
        raise TypeError(f"sort_by={sort_by!r} has no order ({error}); sort by a number such as 'self_cpu_time_total'") from None


def _unknown_attribute(event: FunctionEventAvg | FunctionEvent, key: str, sort_by: str) -> str:
    numbers = [name for name in _SORTED_BY if hasattr(event, name)]
    near = difflib.get_close_matches(key, numbers, n=3)
    others = f"did you mean {' or '.join(map(repr, near))}?" if near else f"sort by one of {', '.join(numbers)}"
    return f"'{type(event).__name__}' object has no attribute '{key}' (sort_by={sort_by!r}); {others}"


def _check_row_limit(row_limit: object) -> None:
    if row_limit is not None and not isinstance(row_limit, int | float) and not hasattr(row_limit, "__index__"):
        raise TypeError(f"row_limit takes a number of rows, -1 for all of them; got {row_limit!r}")


def _shown(events: Iterable[Any], row_limit: int, top_level_events_only: bool) -> Iterable[Any]:
    shown = 0
    for event in events:
        if shown == row_limit:
            return
        if not (top_level_events_only and event.cpu_parent is not None):
            shown += 1
            yield event


def _overview(events: Sequence[Any]) -> Overview:
    if (recorded := rows_of(events)) is not None:
        recording, rows = recorded
        return Overview(
            examples=grouping.examples(recording, rows),
            cpu_us=grouping.self_cpu_us(recording, rows),
            device_us=grouping.kernels_us(recording, rows),
            has_device_time=bool((recording.self_device_ns[rows] > 0).any()),
            count=len(rows),
            compilation=grouping.compilation(recording, rows),
        )
    compilations = [event for event in events if event.key == COMPILE]
    return Overview(
        examples=events,
        cpu_us=sum(event.self_cpu_time_total for event in events),
        # a legacy event has its kernels' time, others have events for their kernels
        device_us=sum(
            event.self_device_time_total
            for event in events
            if (event.is_legacy if event.device_type == DeviceType.CPU else _is_kernel(event))
        ),
        has_device_time=any(event.self_device_time_total > 0 for event in events),
        count=sum(event.count for event in events),
        compilation=(sum(e.self_cpu_time_total for e in compilations), sum(e.count for e in compilations)),
    )


def _compilation(time_us: float, count: int, unit: str | None) -> list[str]:
    """The line about functions that were compiled inside the recording."""
    functions = "function" if count == 1 else "functions"
    return [f"Compilation: {units.time(time_us, unit)} in {count:,} {functions}"] if count else []


def _is_kernel(event: FunctionEventAvg | FunctionEvent) -> bool:
    return event.device_type in _ON_DEVICE and not event.is_user_annotation


def _beginning_of(text: str, width: int | None) -> str:
    return text if width is None or len(text) < width - 3 else text[: width - 3] + "..."


def _fitting(texts: Iterable[str], limit: int | None) -> int:
    """Width of a column for these texts."""
    width = max(map(len, texts), default=0) + 4
    return width if limit is None else min(width, limit)


def _names(events: Sequence[Any], limit: int | None) -> list[Column]:
    width = _fitting([printable(event.key) for event in events] or ["Name"], limit)
    columns = [
        Column("Name", lambda event: _beginning_of(printable(event.key), limit), width, whole=lambda event: printable(event.key))
    ]
    if any(event.overload_name for event in events):
        columns.append(Column("Overload Name", lambda event: _beginning_of(event.overload_name or "", limit), width))
    return columns


def _modules(events: Sequence[Any], limit: int | None) -> list[Column]:
    paths = [printable(event.module) for event in events]
    if not any(paths):
        return []
    width = _fitting([*paths, "Module"], limit)
    return [
        Column("Module", lambda event: end_of(printable(event.module), width), width, "<"),
        Column("Phase", lambda event: event.phase, len("backward"), "<"),
    ]


def _cpu_times(whole_us: float, unit: str | None) -> list[Column]:
    def self_share(event: Any) -> str:
        event.self_cpu_percent = units.share(event.self_cpu_time_total, whole_us)
        return str(event.self_cpu_percent)

    def total_share(event: Any) -> str | int:
        event.total_cpu_percent = 0 if event.is_async else units.share(event.cpu_time_total, whole_us)
        return event.total_cpu_percent

    return [
        Column("Self CPU %", self_share),
        Column("Self CPU", lambda event: units.time(event.self_cpu_time_total, unit)),
        Column("CPU total %", total_share),
        Column("CPU total", lambda event: units.time(event.cpu_time_total, unit)),
        Column("CPU time avg", lambda event: units.time(event.cpu_time, unit)),
    ]


def _device_times(device: str, whole_us: float, unit: str | None) -> list[Column]:
    def share(event: Any) -> str:
        event.total_device_percent = units.share(event.self_device_time_total, whole_us)
        return str(event.total_device_percent)

    return [
        Column(f"Self {device}", lambda event: units.time(event.self_device_time_total, unit)),
        Column(f"Self {device} %", share),
        Column(f"{device} total", lambda event: units.time(event.device_time_total, unit)),
        Column(f"{device} time avg", lambda event: units.time(event.device_time, unit)),
    ]


def _memory(events: Sequence[Any], device: str, use_device: bool) -> list[Column]:
    columns = [
        Column("CPU Mem", lambda event: units.memory(event.cpu_memory_usage)),
        Column("Self CPU Mem", lambda event: units.memory(event.self_cpu_memory_usage)),
    ]
    if use_device and any(event.self_device_memory_usage > 0 for event in events):
        columns += [
            Column(f"{device} Mem", lambda event: units.memory(event.device_memory_usage)),
            Column(f"Self {device} Mem", lambda event: units.memory(event.self_device_memory_usage)),
        ]
    return columns


def _counts(events: Sequence[Any]) -> list[Column]:
    columns = [Column("# of Calls", lambda event: event.count)]
    if any(event.node_id != -1 for event in events):
        columns.append(Column("Node ID", lambda event: event.node_id))
    return columns


def _shapes(events: Sequence[Any], limit: int | None) -> list[Column]:
    if not any(event.input_shapes for event in events):
        return []
    width = _fitting((str(event.input_shapes) for event in events), limit)
    return [Column("Input Shapes", lambda event: str(event.input_shapes)[:width], width)]


def _source(events: Sequence[Any], limit: int | None) -> list[Column]:
    places = [printable(place) for event in events for place in event.stack or ()]
    if not places:
        return []
    width = _fitting(places, limit)
    return [Column(_SOURCE, lambda event: end_of(printable(event.stack[0]), width) if event.stack else "", width, "<")]


def _further_places(source: Column) -> Callable[[Any], list[str]]:
    """Gives the lines below an event: the places of its stack after the first, and an empty one."""
    return lambda event: [*(end_of(printable(place), source.width) for place in (event.stack or ())[1:]), ""]


def _flops(events: Sequence[Any]) -> list[Column]:
    known = [event.flops for event in events if event.flops and event.flops > 0]
    if not known:
        return []
    scale, unit = units.flops_unit(min(known))
    return [Column(f"Total {unit}", lambda event: f"{event.flops * scale:8.3f}" if event.flops and event.flops > 0 else "--")]
