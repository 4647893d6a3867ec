"""The file of a report: the built page, with the data in it."""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ...advice import Advice
from ...model.session import Session
from ...writing.atomic_file import replacing
from ...writing.garbage import paused_collection
from . import data, packing

__all__ = ["write"]

PAGE = Path(__file__).with_name("report.html")  # made by `make report-ui` of the folder report-ui
TITLE, DATA = "{{TITLE}}", "{{DATA}}"

Progress = Callable[[int, int], None]


def write(
    sessions: Sequence[Session],
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    progress: Progress | None = None,
    advice: Advice | None = None,
) -> None:
    """Write a page that shows these sessions, one for each process, the first of which started the others.

    It needs nothing but a browser. `progress(parts written, parts in all)` is called now and then. `advice` is that on the first
    session, for those who have asked for it already.
    """
    if not sessions:
        raise ValueError("a report shows at least one session")
    before, after = PAGE.read_text(encoding="utf-8").split(DATA)
    before = before.replace(TITLE, html.escape(title or _title(sessions[0])))
    count = len(sessions) * len(data.SECTIONS) + 1
    with paused_collection(), replacing(path) as file:
        file.write(before.encode("utf-8", "backslashreplace"))
        for done, (name, value) in enumerate(data.parts(sessions, advice), 1):
            file.write(_block(name, value))
            if progress is not None:
                progress(done, count)
        file.write(after.encode())


def _title(session: Session) -> str:
    command = session.info.command
    return os.path.basename(command[0]) if command and command[0] else session.info.process_name


def _block(name: str, value: object) -> bytes:
    """An element that holds a part: base64 has no character that could end it."""
    return b'<script type="application/octet-stream" id="%s">%s</script>\n' % (
        name.encode(),
        base64.b64encode(packing.pack(value)),
    )
