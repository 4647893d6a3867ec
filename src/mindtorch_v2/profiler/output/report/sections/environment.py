"""Where and how the recording was made."""

from __future__ import annotations

import datetime
from typing import Any

from ....model import dropping
from ....model.session import Info
from ....writing import units
from ....writing.json_text import json_text
from ..sources import Process

__all__ = ["environment"]

# Options of a recording: the field of `Info`, what it is called, and what it records.
OPTIONS = (
    ("record_shapes", "record_shapes=True", "shapes of inputs"),
    ("with_stack", "with_stack=True", "stacks and Python functions"),
    ("profile_memory", "profile_memory=True", "memory"),
    ("with_modules", "with_modules=True", "modules"),
    ("with_flops", "with_flops=True", "floating point operations"),
)


def environment(process: Process) -> dict[str, Any]:
    """Groups of names and values, all of them text."""
    info = process.session.info
    groups = {
        "Program": [
            ("command", " ".join(info.command)),
            ("process", f"{info.process_name} {info.pid}"),
            ("started by process", str(info.parent_pid) if info.parent_pid else ""),
            ("recorded from", _moment(info.started_ns)),
            ("until", _moment(info.stopped_ns)),
            ("not in the recording", "; ".join(dropping.gaps(info))),
        ],
        "Machine and versions": [(name, str(value)) for name, value in info.environment.items()],
        "Devices": [(f"device {i}", _device(dict(device))) for i, device in enumerate(info.device_properties)],
        "Distributed": []
        if info.distributed is None
        else [(str(key), json_text(value)) for key, value in info.distributed.items()],
        "Metadata": [(str(key), value if isinstance(value, str) else json_text(value)) for key, value in info.metadata.items()],
    }
    return {
        "groups": [
            [title, [[name, value] for name, value in rows if value]] for title, rows in groups.items() if any(v for _, v in rows)
        ],
        "options": [[option, what, bool(getattr(info, field))] for field, option, what in OPTIONS],
        "threads": _threads(process, info),
    }


def _device(facts: dict[str, Any]) -> str:
    """The name of a device and what of its properties says how fast it is; all of them where there is no name."""
    if not isinstance(facts.get("name"), str):
        return json_text(facts)
    memory, processors = facts.get("totalGlobalMem"), facts.get("numSms")
    version = [facts.get("computeMajor"), facts.get("computeMinor")]
    known = [facts["name"]]
    if type(memory) is int:
        known.append(units.memory(memory))
    if None not in version:
        known.append("compute capability {}.{}".format(*version))
    if processors is not None:
        known.append(f"{processors} multiprocessors")
    return ", ".join(known)


def _moment(time_ns: int) -> str:
    return datetime.datetime.fromtimestamp(time_ns / 1e9, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC") if time_ns else ""


def _threads(process: Process, info: Info) -> list[list[str]]:
    return [
        [
            track.name or f"thread {track.tid}",
            str(track.thread_id),
            "started the recording" if track.thread_id == info.thread_id else "",
        ]
        for track in process.session.tracks
        if track.device_type == "CPU"
    ]
