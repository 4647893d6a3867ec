"""Show where the time went: a row for each operator, scope and function.

FILE is a saved session, a folder that `mindtorch profile` left, or a trace: torch's own, from any machine, torch_npu's, or one of
mindtorch_v2. Times are of the CPU. Mean, median and max are of whole events, with what they call.

examples:
  mindtorch top run.session
  mindtorch top trace.json.gz --by shape --sort max --limit 50
  mindtorch top run.session --by step --name aten::mm
  mindtorch top gpu.json.gz --device              kernels instead
  mindtorch top run.session --json | jq '.rows[0]'
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .console import Heading, add_file, add_json, opened, option_of, print_json, print_table, progress, terminal_width
from .frame import CommandError, UsageError, near
from .texts import flops, idle_line, share, size, time

if TYPE_CHECKING:
    from ..profiler.device import DeviceActivity
    from ..profiler.model.session import Session
    from ..profiler.model.top_rows import TopRow

__all__ = ["add_arguments", "add_process", "chosen", "run"]

GROUPINGS = ("name", "shape", "stack", "module", "step", "overload")
SORT_KEYS = ("self", "total", "mean", "median", "max", "count", "device", "self-device", "memory", "self-memory", "flops", "name")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument(
        "--by", metavar="WHAT", choices=GROUPINGS, default="name", help=f"a row for each: {', '.join(GROUPINGS)} (default: name)"
    )
    parser.add_argument("--sort", metavar="KEY", choices=SORT_KEYS, help=f"{', '.join(SORT_KEYS)} (default: self)")
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="rows to show, -1 for all (default: 20)")
    parser.add_argument(
        "--name", metavar="PATTERN", action="append", help="rows whose name has this in it, or matches it with * and ?"
    )
    add_process(parser)
    parser.add_argument("--device", action="store_true", help="kernels and copies instead of what ran on the CPU")
    add_json(parser)


def add_process(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--process", metavar="PID", type=int, help="one process of several; without it, all of them")


def chosen(sessions: Sequence[Session], pid: int | None) -> Sequence[Session]:
    """The sessions of the process that was asked for."""
    if pid is None:
        return sessions
    found = [session for session in sessions if session.info.pid == pid]
    if not found:
        pids = [str(session.info.pid) for session in sessions]
        raise CommandError(f"there is no process {pid} in the file; it has {', '.join(pids)}{near(str(pid), pids)}")
    return found


def run(options: argparse.Namespace) -> None:
    from ..profiler.device import DeviceActivity  # costly: NumPy, which help needs not
    from ..profiler.model.top_rows import SORT_KEYS as ATTRIBUTES  # costly: the same
    from ..profiler.model.top_rows import top_rows  # costly: the same

    sessions = chosen(opened(options.file).sessions, options.process)
    where = _filter(options.name)
    with progress("looking at devices"):
        activity = DeviceActivity(tuple(device for session in sessions for device in DeviceActivity.of(session).devices))
    if options.device:
        _show_kernels(options, activity, where)
        return
    _check(options, sessions)
    with progress("summing up"):
        rows = top_rows(sessions, options.by, where=where)
    sort = ATTRIBUTES[options.sort or "self"]
    rows = sorted(rows, key=lambda row: getattr(row, sort), reverse=sort != "name")
    shown = rows if options.limit < 0 else rows[: options.limit]
    whole_ns = sum(row.self_ns for row in rows)
    if options.json:
        facts = [{**dataclasses.asdict(row), "self_share": row.self_ns / whole_ns if whole_ns else 0.0} for row in shown]
        told = {"file": options.file, "by": options.by, "sort": options.sort or "self", "self_ns": whole_ns, "row_count": len(rows)}
        print_json({**told, "rows": facts, **activity.as_dict()})
        return
    notes = [f"Self CPU time: {time(whole_ns)} in {sum(row.count for row in rows):,} events; {_shown(len(shown), len(rows))}"]
    if len(sessions) > 1:
        notes.append(f"{len(sessions)} processes together; --process shows one: {', '.join(str(s.info.pid) for s in sessions)}")
    if options.by == "stack" and terminal_width() is not None:
        notes.append("Sources are the program's own lines; in a pipe and with --json they have those of libraries, too.")
    notes += map(idle_line, activity.devices)
    columns = _columns(options.by, shown, whole_ns)
    print_table([heading for heading, _ in columns], [[value(row) for _, value in columns] for row in shown], notes=notes)


def _check(options: argparse.Namespace, sessions: Sequence[Session]) -> None:
    """Raise if the recording lacks what the grouping needs."""
    needed = {"shape": ("record_shapes", "shapes"), "stack": ("with_stack", "stacks"), "module": ("with_modules", "modules")}
    if options.by in needed:
        option, what = needed[options.by]
        if not any(getattr(session.info, option) for session in sessions):
            raise CommandError(
                f"{options.file} has no {what}: record with {option_of(option)}, or {option}=True, or group by something else"
            )


def _filter(patterns: Sequence[str] | None) -> Callable[[str], bool] | None:
    if not patterns:
        return None
    return lambda name: any(fnmatch.fnmatchcase(name, p) if any(c in p for c in "*?[") else p in name for p in patterns)


def _shown(shown: int, whole: int) -> str:
    return f"all {whole} rows" if shown == whole else f"{shown} of {whole} rows (--limit -1 shows all)"


Columns = list[tuple[Heading, Callable[[Any], Any]]]


def _columns(by: str, rows: Sequence[TopRow], whole_ns: int) -> Columns:
    """The headings, and what stands under them."""
    columns: Columns = [
        (Heading("name", is_text=True), lambda row: row.name),
        *_grouping_columns(by),
        (Heading("self"), lambda row: time(row.self_ns)),
        (Heading("self %", left_out=6), lambda row: share(row.self_ns, whole_ns)),
        (Heading("total", left_out=8), lambda row: time(row.total_ns)),
        (Heading("mean", left_out=5), lambda row: time(row.mean_ns)),
        (Heading("median", left_out=4), lambda row: time(row.median_ns)),
        (Heading("max", left_out=7), lambda row: time(row.max_ns)),
        (Heading("calls"), lambda row: f"{row.count:,}"),
    ]
    if any(row.device_ns for row in rows):
        columns.append((Heading("device self", left_out=9), lambda row: time(row.self_device_ns)))
        columns.append((Heading("device total", left_out=3), lambda row: time(row.device_ns)))
    if any(row.memory_bytes for row in rows):
        columns.append((Heading("memory", left_out=2), lambda row: size(row.memory_bytes)))
    if any(row.flops for row in rows):
        columns.append((Heading("FLOPs", left_out=1), lambda row: flops(row.flops)))
    return columns


def _grouping_columns(by: str) -> Columns:
    return {
        "shape": [(Heading("input shapes", is_text=True), lambda row: row.shapes)],
        "stack": [(Heading("source", is_text=True), lambda row: " < ".join(_frames(row.stack)))],
        "module": [(Heading("module", is_text=True), lambda row: row.module), (Heading("phase"), lambda row: row.phase)],
        "step": [(Heading("step"), lambda row: row.step)],
        "overload": [(Heading("overload"), lambda row: row.overload)],
    }.get(by, [])


def _frames(stack: Sequence[str]) -> Sequence[str]:
    """The frames to show: on a terminal, which has no room for all, those of the program."""
    from ..profiler.model.places import RUNTIME  # costly: NumPy, which help needs not

    own = [] if terminal_width() is None else [frame for frame in stack if not frame.startswith(RUNTIME)]
    return own or stack


def _show_kernels(options: argparse.Namespace, activity: DeviceActivity, where: Callable[[str], bool] | None) -> None:
    if not activity:
        raise CommandError(f"{options.file} has no device activity")
    attribute = {
        "self": "total_ns",
        "total": "total_ns",
        "mean": "mean_ns",
        "median": "median_ns",
        "max": "max_ns",
        "count": "count",
    }
    sort = options.sort or "total"
    if sort not in (*attribute, "name"):
        raise UsageError(f"kernels are sorted by {', '.join(attribute)} or name, not by {sort!r}")
    kernels = [(device, kernel) for device in activity.devices for kernel in device.kernels if where is None or where(kernel.name)]
    kernels.sort(key=lambda pair: getattr(pair[1], attribute.get(sort, "name")), reverse=sort != "name")
    shown = kernels if options.limit < 0 else kernels[: options.limit]
    if options.json:
        rows = [{"device": f"{d.type}:{d.index}", **dataclasses.asdict(k)} for d, k in shown]
        print_json({"file": options.file, "sort": sort, "row_count": len(kernels), "rows": rows})
        return
    headings = [
        Heading("name", is_text=True),
        Heading("device", left_out=1),
        Heading("sort", left_out=2),
        Heading("total"),
        Heading("%"),
    ]
    headings += [
        Heading("mean", left_out=4),
        Heading("median", left_out=3),
        Heading("min", left_out=2),
        Heading("max"),
        Heading("calls"),
    ]
    cells = [
        [k.name, f"{d.type}:{d.index}", k.sort, time(k.total_ns), f"{k.share:.1%}", time(k.mean_ns), time(k.median_ns)]
        + [time(k.min_ns), time(k.max_ns), f"{k.count:,}"]
        for d, k in shown
    ]
    print_table(headings, cells, notes=[_shown(len(shown), len(kernels)), *map(idle_line, activity.devices)])
