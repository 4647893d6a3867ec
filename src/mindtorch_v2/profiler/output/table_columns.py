"""Which columns of a table of events fit into the width of a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from ..writing.text_table import GAP, Column

__all__ = ["fit"]

_NAME_WIDTH = 24  # a name is not made shorter than this as long as there are columns to leave out

# Columns that can be left out, the first ones first, and the attribute that each shows. `*` stands for the name of a device or a unit.
_LEAST_USED = {
    "CPU total %": "",
    "Self * %": "",
    "CPU time avg": "cpu_time",
    "* time avg": "device_time",
    "Node ID": "node_id",
    "CPU Mem": "cpu_memory_usage",
    "* Mem": "device_memory_usage",
    "Self CPU %": "",
    "Source Location": "stack",
    "Input Shapes": "input_shapes",
    "Total *": "flops",
    "Self * Mem": "self_device_memory_usage",
    "Overload Name": "overload_name",
    "Phase": "phase",
    "Module": "module",
    "* total": "device_time_total",
    "CPU total": "cpu_time_total",
    "# of Calls": "count",
}


def fit(columns: Sequence[Column], max_width: int, sort_by: str) -> tuple[list[Column], list[str]]:
    """The columns that fit, and a line that says what is missing. Names give way first, then the columns of least use."""
    if isinstance(max_width, bool) or not isinstance(max_width, int) or max_width < 1:
        raise ValueError(f"max_width takes a number of characters from 1, got {max_width!r}")
    kept, left_out = list(columns), []
    for pattern, shows in _LEAST_USED.items():
        if _width(kept) - max(_width(kept[:1]) - _NAME_WIDTH, 0) <= max_width:
            break
        found = [column for column in kept[1:] if _is_like(column.heading, pattern) and shows != (sort_by or None)]
        kept = [column for column in kept if column not in found]
        left_out += [column.heading for column in found]
    name = kept[0]
    room = max(max_width - _width(kept[1:]) - len(GAP), len(name.heading))
    if narrower := room < _width([name]):
        kept[0] = name.narrowed(room)
    facts = [f"without {', '.join(left_out)}"] if left_out else []
    facts += ["names shortened"] if narrower else []
    return kept, [f"To fit {max_width} characters: {'; '.join(facts)}"] if facts else []


def _width(columns: Sequence[Column]) -> int:
    return sum(column.width or 0 for column in columns) + len(GAP) * max(len(columns) - 1, 0)


def _is_like(heading: str, pattern: str) -> bool:
    before, star, after = pattern.partition("*")
    if not star:
        return heading == pattern
    inner = heading.removeprefix(before).removesuffix(after)
    return heading == before + inner + after and bool(inner) and not (inner == "CPU" or " " in inner)
