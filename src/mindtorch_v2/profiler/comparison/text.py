"""A comparison as people read it, in a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..writing import units
from ..writing.text_table import Column, TextTable, fitting, middle_cut, printable

if TYPE_CHECKING:
    from .comparison import Change, Comparison
    from .devices import DeviceChange, KernelChange

__all__ = ["detail", "markdown", "name", "sentences", "table"]

NAME_WIDTH = 48
DETAILED = 5  # changes with a line of their own
SHAPES_WIDTH = 100
LEAST_IDLE = 0.01  # a share of idle time that changed by less is not told
ALIKE = 0.05  # a difference of speed below this is not worth a sentence


def table(found: Comparison, row_limit: int, width: int | None = None) -> str:
    step_ns = found.step_ns[0] or 1
    blocks = [_block(_columns("Name", name, "a step", lambda c: c.delta_ns / step_ns), found.changes, row_limit, width)]
    blocks[0] += [
        f"{printable(name(change))}: {known}" for change in found.changes[:row_limit][:DETAILED] if (known := detail(change))
    ]
    memory = [
        _name_column("Memory kept in a step", name),
        Column("Before", lambda c: units.memory(round(c.bytes[0])), width=None, left_out=1),
        Column("After", lambda c: units.memory(round(c.bytes[1])), width=None),
    ]
    blocks.append(_block(memory, found.memory, row_limit, width))
    for device in found.devices:
        work_ns = device.work_ns[0] or 1
        columns = _columns(f"Kernel on {device.names[1]}", lambda k: k.name, "its work", partial(_share_of, whole=work_ns))
        blocks.append(_block(columns, device.kernels, row_limit, width))
    lines = [*sentences(found), *(line for block in blocks if block for line in ("", *block))]
    return "\n".join(line.rstrip() for line in lines)


def _columns(heading: str, named: Callable[[Any], str], whole: str, share: Callable[[Any], float]) -> list[Column]:
    return [
        Column("Change", lambda c: c.kind, width=None, align="<"),
        _name_column(heading, named),
        Column("Before", lambda c: _time(c.before_ns), width=None, left_out=1),
        Column("After", lambda c: _time(c.after_ns), width=None, left_out=2),
        Column(f"Adds to {whole}", lambda c: _signed(c.delta_ns), width=None),
        Column(f"of {whole}", lambda c: f"{share(c):+.1%}", width=None, left_out=3),
    ]


def _name_column(heading: str, named: Callable[[Any], str]) -> Column:
    def whole(row: Any) -> str:
        return printable(named(row))

    return Column(heading, lambda row: middle_cut(whole(row), NAME_WIDTH), width=None, align="<", whole=whole)


def _share_of(change: KernelChange, whole: float) -> float:
    return change.delta_ns / whole


def _block(columns: Sequence[Column], rows: Sequence[Any], row_limit: int, width: int | None) -> list[str]:
    """A table with the first of these rows; nothing without rows."""
    if not rows:
        return []
    shown = rows[:row_limit]
    return [*TextTable(fitting(columns, shown, width), shown).lines(), *_more(len(rows), row_limit)]


def markdown(found: Comparison, row_limit: int) -> str:
    lines = [*(f"{sentence}  " for sentence in sentences(found))]
    if found.changes:
        lines += ["", "| change | name | before | after | adds to a step | of a step |", "|---|---|--:|--:|--:|--:|"]
        for c in found.changes[:row_limit]:
            share = f"{c.delta_ns / (found.step_ns[0] or 1):+.1%}"
            cells = (c.kind, _code(name(c)), _time(c.before_ns), _time(c.after_ns), _signed(c.delta_ns), share)
            lines.append(f"| {' | '.join(cells)} |")
        lines += _more(len(found.changes), row_limit)
        known = [(c, detail(c)) for c in found.changes[:row_limit][:DETAILED]]
        lines += ["", *(f"- {_code(name(c))}: {_code(text)}" for c, text in known if text)]
    if found.memory:
        lines += ["", "| memory kept in a step | before | after |", "|---|--:|--:|"]
        for c in found.memory[:row_limit]:
            lines.append(f"| {_code(name(c))} | {units.memory(round(c.bytes[0]))} | {units.memory(round(c.bytes[1]))} |")
        lines += _more(len(found.memory), row_limit)
    for device in found.devices:
        if device.kernels:
            lines += ["", f"| change | kernel on {device.names[1]} | before | after | adds to its work |", "|---|---|--:|--:|--:|"]
            for k in device.kernels[:row_limit]:
                times = f"{_time(k.before_ns)} | {_time(k.after_ns)} | {_signed(k.delta_ns)}"
                lines.append(f"| {k.kind} | {_code(middle_cut(k.name, NAME_WIDTH))} | {times} |")
            lines += _more(len(device.kernels), row_limit)
    return "\n".join(lines)


def sentences(found: Comparison) -> list[str]:
    """What there is to say of the whole."""
    one, other = found.steps
    before, after = (units.time(ns / 1000) for ns in found.step_ns)
    if not found.is_measured:
        lines = [
            f"The recordings take {before} and {after} ({found.ratio - 1:+.1%}). Without steps, chance cannot be told from change."
        ]
    else:
        certainty = "not by chance" if found.changes or abs(found.speed - 1) > ALIKE else "within the noise"
        lines = [f"A step took {before} and now takes {after} ({found.ratio - 1:+.1%}, {certainty}; {one} and {other} steps)."]
    if abs(found.speed - 1) > ALIKE:
        word = "slower" if found.speed > 1 else "faster"
        factor = max(found.speed, 1 / found.speed)
        lines.append(
            f"All places together are {factor:.2f} times {word}: a busier machine, another number of threads, or a change that is "
            "everywhere, as of the dtype. What follows is compared at equal speed."
        )
    if found.peak_bytes is not None and found.peak_bytes[0] != found.peak_bytes[1]:
        peaks = [units.memory(size) for size in found.peak_bytes]
        lines.append(f"Peak memory: {peaks[0]} before, {peaks[1]} after.")
    lines += [_device(device) for device in found.devices]
    if not found.changes and not found.memory:
        lines.append("No place in the program changed.")
    if found.unclear:
        places = "1 place differs" if found.unclear == 1 else f"{found.unclear:,} places differ"
        lines.append(f"{places} by what may be noise; more steps would tell.")
    return lines


def _device(device: DeviceChange) -> str:
    """How much work a device has in a step, how busy it is, and the cause of idle time that changed most."""
    before, after = device.work_ns
    name = device.names[1] if device.names[0] == device.names[1] else " and ".join(device.names)
    text = f"{name}: the work of a step took {_time(before)} and now takes {_time(after)} ({after / (before or 1) - 1:+.1%}); "
    text += f"busy {device.busy_share[0]:.1%} of the time, now {device.busy_share[1]:.1%}"
    cause, (was, now) = max(device.idle_causes.items(), key=lambda item: abs(item[1][1] - item[1][0]))
    return text + (f" (idle, {cause}: {was:.1%}, now {now:.1%})." if abs(now - was) >= LEAST_IDLE else ".")


def name(change: Change) -> str:
    """The name of a place, with its module, its thread and what it was called before."""
    text = f"{change.was} → {change.name}" if change.was else change.name
    if change.module:
        text += f" in {change.module}"
    return f"{text} on {change.thread}" if change.thread else text


def detail(change: Change) -> str:
    """Where a change is, and what else is different; empty if nothing more is known."""
    known = []
    if change.path:
        known.append(f"inside {printable(' > '.join(change.path))}")
    if change.place:
        known.append(f"called at {printable(change.place)}")
    if change.kind in ("added", "removed"):
        if shapes := middle_cut(next(filter(None, change.shapes), ""), SHAPES_WIDTH):
            known.append(f"inputs {shapes}")
    elif any(change.shapes):
        before, after = (middle_cut(shapes, SHAPES_WIDTH) or "none" for shapes in change.shapes)
        known.append(f"inputs {before} before, {after} after")
    if change.note:
        known.append(change.note)
    return "; ".join(known)


def _more(count: int, row_limit: int) -> list[str]:
    return [f"… and {count - row_limit:,} more"] if count > row_limit else []


def _time(ns: float) -> str:
    return units.time(ns / 1000) if ns else "—"


def _signed(ns: float) -> str:
    return ("+" if ns >= 0 else "−") + units.time(abs(ns) / 1000)


def _code(text: str) -> str:
    """Text between backticks, with nothing in it that would end a cell or the code."""
    return "`" + printable(text).replace("`", "'").replace("|", "\\|").replace("\n", " ") + "`"
