"""The data of a report: parts by name, each packed for itself, so that the page unpacks what it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...model.session import Session
from .sections.events import events
from .sections.operators import operators
from .sections.overview import overview
from .sources import Process

__all__ = ["SECTIONS", "parts"]

# Functions of a process, by the name that the page asks for.
SECTIONS: dict[str, Callable[[Process], dict[str, Any]]] = {
    "overview": overview,
    "operators": operators,
}


def parts(sessions: Sequence[Session]) -> Iterator[tuple[str, Any]]:
    """The parts of a report: `report`, then for each process its sections, as `operators.0`."""
    base_ns = min(session.info.started_ns for session in sessions)
    yield "report", {"processes": [_process(session) for session in sessions], "base": base_ns}
    for number, session in enumerate(sessions):
        process = Process(session)
        for name, section in SECTIONS.items():
            yield f"{name}.{number}", section(process)
        yield f"events.{number}", events(process, base_ns)


def _process(session: Session) -> dict[str, Any]:
    info = session.info
    return {
        "pid": info.pid,
        "parent": info.parent_pid,
        "name": info.process_name,
        "command": list(info.command),
        "events": len(session),
    }
