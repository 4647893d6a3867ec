"""The data of a report: parts by name, each packed for itself, so that the page unpacks what it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...advice import Advice
from ...model.session import Session
from .sections.advice import advice
from .sections.device import device
from .sections.environment import environment
from .sections.events import events
from .sections.flame import flame
from .sections.memory import memory
from .sections.modules import module_tree
from .sections.operators import operators
from .sections.overview import overview
from .sections.steps import steps
from .sources import Process

__all__ = ["SECTIONS", "parts"]

# Functions of a process, and of the time that the report counts from, by the name that the page asks for.
SECTIONS: dict[str, Callable[[Process, int], dict[str, Any]]] = {
    "overview": lambda process, _: overview(process),
    "steps": steps,
    "operators": lambda process, _: operators(process),
    "modules": lambda process, _: module_tree(process),
    "events": events,
    "flame": lambda process, _: flame(process),
    "memory": lambda process, _: memory(process),
    "device": device,
    "advice": lambda process, _: advice(process),
    "environment": lambda process, _: environment(process),
}


def parts(sessions: Sequence[Session], advice: Advice | None = None) -> Iterator[tuple[str, Any]]:
    """The parts of a report: `report`, then for each process its sections, as `operators.0`. The advice is on the first, if it is known."""
    base_ns = min(session.info.started_ns for session in sessions)
    yield "report", {"processes": [_process(session) for session in sessions], "base": base_ns}
    for number, session in enumerate(sessions):
        process = Process(session, None if number else advice)
        for name, section in SECTIONS.items():
            yield f"{name}.{number}", section(process, base_ns)


def _process(session: Session) -> dict[str, Any]:
    info = session.info
    return {
        "pid": info.pid,
        "parent": info.parent_pid,
        "name": info.process_name,
        "command": list(info.command),
        "events": len(session),
        "hasDevice": any(track.device_type != "CPU" for track in session.tracks),
    }
