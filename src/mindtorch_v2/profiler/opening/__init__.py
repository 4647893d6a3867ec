"""Recordings from files: saved sessions, folders of them, and traces of torch, torch_npu and this package."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from ..model.session import Session
from ..spool.frames import MAGIC
from ..writing.garbage import paused_collection
from .trace_columns import NO_ROW, TraceColumns
from .trace_reader import NotATraceError, TraceReader
from .trace_session import sessions as sessions_of_trace

__all__ = ["NotATraceError", "Progress", "Recordings", "open_recording"]

Progress = Callable[[int, int], None]  # bytes that were read, and how many there are

SPOOL = ".spool"
FIRST = "run.session"  # of a folder: the process that started the others
# the trace in a folder that torch_npu wrote
TRACE_VIEWS = ("trace_view.json", os.path.join("ASCEND_PROFILER_OUTPUT", "trace_view.json"))


@dataclass(frozen=True)
class Recordings:
    """What a file or folder holds: a session for each process, the one that started the others first."""

    path: str
    sessions: tuple[Session, ...]

    @property
    def session(self) -> Session:
        """The session of the first process."""
        return self.sessions[0]


def open_recording(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Recordings:
    """The recording in a file or folder.

    A file is a saved session, a spool, whether its recording was stopped or not, or a trace in Kineto's format (`.json`, `.json.gz`): of torch on any device, of torch_npu, of this package. A
    folder has a `.session` for each process, as `mindtorch profile` leaves it, or the output of torch_npu. A file of another kind, or a damaged one, is a ValueError that
    says so. `progress(bytes read, bytes in all)` is called now and then.
    """
    name = os.fspath(path)
    if os.path.isdir(name):
        return Recordings(name, _of_folder(name, progress))
    with open(name, "rb") as file:
        start = file.read(4)
    if not start:
        raise ValueError(f"{name} is empty")
    if start == MAGIC[:4]:
        return Recordings(name, (_of_spool(name),))
    if start == b"PK\x03\x04":
        return Recordings(name, (Session.load(name),))
    return Recordings(name, _of_trace(name, progress))


def _of_folder(folder: str, progress: Progress | None) -> tuple[Session, ...]:
    found_here = set(os.listdir(folder))
    # the spool of a process that was not stopped; others are removed when the session is saved
    unfinished = {name for name in found_here if name.endswith(SPOOL) and name.removesuffix(SPOOL) + ".session" not in found_here}
    names = sorted(
        [name for name in found_here if name.endswith(".session")] + list(unfinished),
        key=lambda name: (os.path.splitext(name)[0] != os.path.splitext(FIRST)[0], name),
    )
    if not names:
        for view in TRACE_VIEWS:
            if os.path.exists(os.path.join(folder, view)):
                return _of_trace(os.path.join(folder, view), progress)
        raise ValueError(f"{folder} has no .session file; give a trace or a session in it, or what `mindtorch profile` left")
    paths = [os.path.join(folder, name) for name in names]
    sizes = [os.path.getsize(path) for path in paths]
    found = []
    for at, path in enumerate(paths):
        found.append(_of_spool(path) if path.endswith(SPOOL) else Session.load(path))
        if progress is not None:
            progress(sum(sizes[: at + 1]), sum(sizes))
    return tuple(found)


def _of_spool(name: str) -> Session:
    from ..spool.reader import read_spool  # costly: the runtime, by whose recorder it was written

    return read_spool(name).session


def _of_trace(name: str, progress: Progress | None) -> tuple[Session, ...]:
    reader, columns = TraceReader(name, progress=progress), TraceColumns()
    with paused_collection():
        for block in reader.blocks():
            columns.add(block)
        try:
            found = tuple(sessions_of_trace(columns, reader.header))
        except ValueError as error:
            raise ValueError(f"{name} cannot be read as a recording: {error}") from None
    unreadable = columns.left_out[NO_ROW]
    if unreadable and not any(len(session) or session.memory is not None for session in found):
        raise NotATraceError(f"{name} is no trace: none of its {unreadable:,} rows is an event")
    return found
