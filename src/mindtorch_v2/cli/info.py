"""Show what a file holds: processes, options, events, environment, losses.

examples:
  mindtorch info run.session
  mindtorch info trace.json.gz --json
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .console import add_file, add_json, opened, print_json, printed, terminal_width
from .texts import time

if TYPE_CHECKING:
    from ..profiler.model.session import Session

__all__ = ["add_arguments", "run"]

STEP = "ProfilerStep#"  # events of steps have names that begin with this
OPTIONS = ("record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    recordings = opened(options.file)
    facts = {"file": options.file, "processes": [_facts(session) for session in recordings.sessions]}
    if options.json:
        print_json(facts)
        return
    print(f"{options.file}: {len(recordings.sessions)} {'process' if len(recordings.sessions) == 1 else 'processes'}")
    for process, depth in _tree(facts["processes"]):
        print()
        for line in _lines(process):
            print(_wrapped(f"{'  ' * depth}{printed(line)}"))


def _wrapped(line: str) -> str:
    """A line of a name and its value; on a terminal, what has no room stands below the value's beginning."""
    width = terminal_width()
    if width is None or len(line) <= width:
        return line
    value = re.match(r" *\S+(?: \S+)*  +", line)
    return textwrap.fill(line, width, subsequent_indent=" " * (value.end() if value else 4), break_on_hyphens=False)


def _facts(session: Session) -> dict[str, Any]:
    info = session.info
    counts = Counter(session.label.tolist())
    kinds = Counter({label.kind: 0 for label in session.labels})
    for number, count in counts.items():
        kinds[session.labels[number].kind] += count
    has_steps = any(session.labels[number].name.startswith(STEP) for number in counts)
    steps = sorted(set(session.step.tolist())) if has_steps else []
    return {
        "pid": info.pid,
        "parent_pid": info.parent_pid,
        "name": info.process_name,
        "command": list(info.command),
        "started_ns": info.started_ns,
        "duration_ns": info.stopped_ns - info.started_ns,
        "options": [option for option in OPTIONS if getattr(info, option)],
        "events": {kind: count for kind, count in kinds.items() if count},
        "event_count": len(session),
        "steps": [steps[0], steps[-1]] if steps else [],
        "threads": [track.name or str(track.tid) for track in session.tracks if track.device_type == "CPU"],
        "streams": [f"{t.device_type}:{t.device_index} stream {t.thread_id}" for t in session.tracks if t.device_type != "CPU"],
        "memory_changes": 0 if session.memory is None else len(session.memory.time_ns),
        "devices": [dict(properties) for properties in info.device_properties],
        "distributed": None if info.distributed is None else dict(info.distributed),
        "environment": dict(info.environment),
        "metadata": dict(info.metadata),
        "dropped": dict(info.dropped),
        "unrecorded": list(info.unrecorded),
        "ended": info.ended,
        "adjusted": dict(info.adjusted),
    }


def _tree(processes: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Processes below the one that started them, with their depth."""
    pids = {process["pid"] for process in processes}

    def below(parent: int, depth: int) -> list[tuple[dict[str, Any], int]]:
        found = []
        for process in processes:
            is_root = process["parent_pid"] not in pids or process["parent_pid"] == process["pid"]
            if (is_root and not depth) or (not is_root and depth and process["parent_pid"] == parent):
                found += [(process, depth), *(below(process["pid"], depth + 1) if depth < len(processes) else [])]
        return found

    return below(0, 0)


def _counted(names: Iterable[str]) -> str:
    """Names, each once: `8 × A100`."""
    return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in Counter(names).items())


def _lines(process: dict[str, Any]) -> list[str]:
    """What is said of a process; nothing of what is not there."""
    events = ", ".join(f"{count:,} {kind}" for kind, count in sorted(process["events"].items(), key=lambda item: -item[1]))
    told = {
        "command": " ".join(process["command"]),
        "duration": time(process["duration_ns"]),
        "events": f"{process['event_count']:,} ({events})" if events else "none",
        "steps": "{} to {}".format(*process["steps"]) if process["steps"] else "",
        "recorded with": ", ".join(process["options"]),
        "threads": ", ".join(process["threads"]),
        "streams": ", ".join(dict.fromkeys(process["streams"])),
        "memory": f"{process['memory_changes']:,} changes" if process["memory_changes"] else "",
        "devices": _counted(str(device.get("name", "?")) for device in process["devices"]),
        "distributed": ", ".join(f"{k} {v}" for k, v in (process["distributed"] or {}).items() if not isinstance(v, list | dict)),
        "environment": ", ".join(f"{name} {value}" for name, value in process["environment"].items()),
        "not recorded": "; ".join(process["unrecorded"]),
        "dropped": ", ".join(f"{count:,} by {what}" for what, count in process["dropped"].items()),
        "ended": process["ended"],
        "adjusted": ", ".join(f"{count:,} {what}" for what, count in process["adjusted"].items()),
    }
    width = max(map(len, told))
    heading = f"process {process['pid']} ({process['name']})"
    return [heading, *(f"  {name:<{width}}  {value}" for name, value in told.items() if value)]
