"""Show what the devices did: kernels, copies, streams, idle time and its causes.

For a trace of a GPU, an NPU or another device. Idle time is the time between its first and its last work
in which no stream has work. Its causes:

  host late         nothing was launched: the host was busy with something else
  synchronization   nothing was launched: the host had waited for the device
  memory copy       nothing was launched: the host was in a call that copies
  launch            launched in the gap, and begun so much later
  waiting for work  launched before the gap: it waited for other work or an event
  unknown           the file does not say what launched it

examples:
  mindtorch device gpu.json.gz
  mindtorch device trace_view.json --limit 5
  mindtorch device gpu.json.gz --step 12          with its critical path
  mindtorch device gpu.json.gz --json
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .console import Heading, add_file, add_json, opened, print_json, print_table, printed, progress
from .frame import CommandError
from .texts import idle_line, share, size, time
from .top import add_process, chosen

if TYPE_CHECKING:
    from ..profiler.device import Device
    from ..profiler.device.critical_path import CriticalPath

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument("--limit", metavar="N", type=int, default=10, help="kernels to show, -1 for all (default: 10)")
    parser.add_argument("--step", metavar="N", type=int, help="show the critical path of this step (default: the longest one)")
    add_process(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    from ..profiler.device import DeviceActivity  # costly: NumPy, which help needs not
    from ..profiler.device.critical_path import critical_path  # costly: the same

    sessions = chosen(opened(options.file).sessions, options.process)
    with progress("following the work"):
        devices = [(session, device) for session in sessions for device in DeviceActivity.of(session).devices]
        paths = [path for session in sessions if (path := critical_path(session, options.step)) is not None]
    if not devices:
        raise CommandError(f"{options.file} has no device activity: `mindtorch top` shows what ran on the CPU")
    if options.json:
        told = DeviceActivity(tuple(device for _, device in devices)).as_dict()
        print_json({"file": options.file, **told, "critical_paths": [path.as_dict() for path in paths]})
        return
    for _, device in devices:
        _show(device, options.limit)
    for path in paths:
        _show_path(path)


def _show(device: Device, limit: int) -> None:
    print(idle_line(device))
    print()
    headings = [Heading("work", is_text=True), Heading("time"), Heading("of span"), Heading("alone")]
    rows = [[sort, time(ns), share(ns, device.span_ns), time(device.alone[sort])] for sort, ns in device.sorts.items()]
    rows += [[f"{sorts} together", time(ns), share(ns, device.span_ns), ""] for sorts, ns in device.overlap.items()]
    print_table(headings, rows, notes=_overlap(device))
    print()
    headings = [
        Heading("stream", is_text=True),
        Heading("work"),
        Heading("busy"),
        Heading("busy %"),
        Heading("queue max"),
        Heading("queue mean"),
    ]
    print_table(
        headings,
        [
            [
                f"{stream.number} {stream.name}".strip(),
                f"{stream.count:,}",
                time(stream.busy_ns),
                share(stream.busy_ns, stream.span_ns),
            ]
            + [stream.queue.maximum, f"{stream.queue.mean:.2f}"]
            for stream in device.streams
        ],
    )
    print()
    _show_kernels(device, limit)
    if device.copies:
        headings = [Heading("copies", is_text=True), Heading("count"), Heading("time"), Heading("bytes"), Heading("bandwidth")]
        rows = [
            [c.direction, f"{c.count:,}", time(c.total_ns), size(c.size_bytes), f"{c.bandwidth:.2f} GB/s"] for c in device.copies
        ]
        print_table(headings, rows)
        print()
    launches = device.launches
    print(
        f"Launches: {launches.count:,}, from call to start {time(launches.delay_median_ns)} (median), {time(launches.delay_max_ns)} (longest); "
        f"{launches.shorter_than_call:,} took less time than the call that launched them."
    )
    print()


def _overlap(device: Device) -> list[str]:
    if not device.sorts["communication"]:
        return []
    return [f"Communication overlapped by computation: {device.communication_overlap:.1%}"]


def _show_kernels(device: Device, limit: int) -> None:
    kernels = device.kernels if limit < 0 else device.kernels[:limit]
    headings = [
        Heading("kernel", is_text=True),
        Heading("total"),
        Heading("%"),
        Heading("mean", left_out=2),
        Heading("median", left_out=1),
    ]
    headings += [Heading("max", left_out=3), Heading("count")]
    rows = [
        [k.name, time(k.total_ns), f"{k.share:.1%}", time(k.mean_ns), time(k.median_ns), time(k.max_ns), f"{k.count:,}"]
        for k in kernels
    ]
    notes = (
        [f"{len(kernels)} of {len(device.kernels)} kernels (--limit -1 shows all)"] if len(kernels) < len(device.kernels) else []
    )
    print_table(headings, rows, notes=notes)
    print()


def _show_path(path: CriticalPath) -> None:
    print(f"Critical path of {printed(path.name)}, {time(path.total_ns)}: {_parts(path)}")
    headings = [Heading("on the path", is_text=True), Heading("where"), Heading("time"), Heading("%"), Heading("pieces")]
    rows = [[s.name, s.place, time(s.total_ns), share(s.total_ns, path.total_ns), s.count] for s in path.by_name()[:8]]
    print_table(headings, rows)


def _parts(path: CriticalPath) -> str:
    return ", ".join(f"{place} {share(ns, path.total_ns)}" for place, ns in path.by_place().items() if ns)
