"""Writing a spool: records as they are taken out of the log, with the tables that they refer to, by the recorder's own thread."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

import numpy as np

from ..capture import labels, tasks, threads
from ..capture.keeping import LABEL, TRACK, Column, Piece
from ..capture.log_records import LogRecords
from ..capture.memory.storages import Notes, Storages
from ..capture.operators import call_inputs, recorder
from ..capture.operators.recorder import FORMS, Log
from ..capture.scopes import scopes
from ..capture.source import Findings, Source
from ..capture.stacks import stack_walk
from ..capture.turns import Turns
from ..model.session import Info
from ..model.session_file import to_json
from .frames import CHUNK, END, HEAD, MAGIC, MEMORY, NOW, frame_bytes
from .memory import MemoryWritten, RolesNoted
from .own_file import OwnFile
from .whereabouts import Whereabouts

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

__all__ = ["Spool", "check_place"]

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
SYNC_S = 1.0
LOOK_S = 0.2  # at the threads

Head = Callable[[], tuple[Info, dict[str, Any]]]


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse a file that has something else in it, and what is no file."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise ValueError(f"spool: {os.fspath(path)!r} is a pipe or a device; give the name of a file")
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        start = file.read(len(MAGIC))
        if start not in (b"", MAGIC):
            raise ValueError(f"spool: {os.fspath(path)!r} has something other than a spool in it; give another name")


def _lock(file: IO[bytes]) -> bool:
    """Whether nobody else writes to the file, as long as it is open here."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


class Spool(Source):
    """Writes a recording to a file while it goes on. `head` gives the facts about it; `append` adds it to those that the file has.

    What goes wrong ends the file where it was whole, and the recording goes on without it: `problem` says what it was.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        log: Log,
        head: Head,
        steps: list[tuple[float, int]],
        *,
        records: LogRecords,
        storages: Storages | None,
        append: bool,
        turns: Turns | None = None,
    ) -> None:
        check_place(path)
        self._path = os.fspath(path)
        self._log, self._head, self._steps = log, head, steps
        self._records, self._storages = records, storages
        records.spool = self.write
        self._memory: MemoryWritten | None = None
        self._recorder_threads: set[int] = set()
        self._append = append
        self._turns = turns or Turns()
        self._file: OwnFile | None = None
        self._known: dict[str, set[int]] = {}  # numbers whose rows are in the file, by table
        self._numbers: dict[str, list[int]] = {}  # those that the next frame adds
        self._synced_at = self._looked_at = 0.0
        self.problem = ""

    def begin(self) -> None:
        self._known = {name: set() for name in ("labels", "inputs", "stacks", "tasks")}
        self._written_steps = self._written_threads = 0
        self._recorder_threads.clear()
        self._memory = None if self._storages is None else MemoryWritten(self._storages)
        self.problem = ""
        file = OwnFile(os.open(self._path, _FLAGS, 0o666), "ab")
        if not _lock(file):
            file.close()
            raise ValueError(f"spool: another process is recording to {self._path!r}; give another name")
        if not self._append or not file.tell():
            file.truncate(0)
            file.write(MAGIC)
        self._file, self._size = file, file.tell()
        self._has_head = False
        self._whereabouts = Whereabouts()

    def write(self, piece: Piece, results: Sequence[Notes] = ()) -> None:
        """Add records, and what operators made whose records are not among them."""
        if self._memory is not None:
            self._memory.add_results(results)
        columns = iter(piece[5:])
        inputs = next(columns) if self._log.shapes else np.empty(0, np.int32)
        stacks = next(columns) if self._log.stacks else np.empty(0, np.int32)
        facts = {
            "labels": self._new("labels", piece[LABEL], labels.table, list),
            "inputs": self._new("inputs", inputs, call_inputs.numbered, lambda values: [to_json(value) for value in values]),
            **self._places(stacks, piece[TRACK]),
            "time": recorder.clock(),
        }
        self._add(CHUNK, facts, piece)

    def _places(self, stacks: Column, tracks: Column, findings: Findings | None = None) -> dict[str, Any]:
        """The stacks and tasks that are new; of the findings, when the recording has ended."""
        taken, known = (stack_walk.taken, tasks.known) if findings is None else (findings.stacks, findings.tasks)
        resolve = stack_walk.resolve if findings is None else tuple
        return {
            "stacks": self._new("stacks", stacks, lambda: taken, lambda frames: list(map(list, resolve(frames)))),
            "tasks": self._new("tasks", tracks, lambda: known, list),
        }

    def _new(self, name: str, numbers: Any, table: Callable[[], Mapping[int, Any]], to_list: Callable[[Any], Any]) -> list[Any]:
        """The rows of a table that are referred to for the first time, with their numbers. They are known when the frame is written."""
        known = self._known[name]
        unknown = sorted(set(numbers.tolist()) - known)
        self._numbers[name] = unknown
        if not unknown:
            return []
        rows = table()
        return [[number, to_list(rows[number])] for number in unknown if number in rows]

    def meanwhile(self, free_bytes: int) -> None:
        if self._file is None:
            return
        self._recorder_threads.add(threading.get_ident())
        began = recorder.clock()
        if self._records.spool_meanwhile() and self._memory is not None:  # what ended before is in the file by now
            self._add_memory(began, self._memory.new())
        now = time.monotonic()
        if not self._turns.is_on or now - self._looked_at >= LOOK_S:
            self._looked_at = now
            self._note_present(threads.known())
        if now - self._synced_at >= SYNC_S:
            self._synced_at = now
            self._sync()

    def _sync(self) -> None:
        if self._file is not None and self._file.is_there:
            with contextlib.suppress(OSError), self._turns.waiting(SYNC_S):  # not every file can be
                os.fsync(self._file.fileno())

    def _add_memory(self, until: float, new: tuple[Notes, RolesNoted] | None, findings: Findings | None = None) -> None:
        """Add changes of memory; those until a moment are all in the file then. None says that they were given up."""
        if new is None:
            self._memory = None
            self._add(MEMORY, {"until": None, "time": until})
        else:
            notes, (times, addresses, roles) = new
            places = self._places(notes.stack, notes.thread, findings)
            self._add(MEMORY, {"until": until, "time": until, **places}, [*notes, times, addresses, roles.astype(np.int32)])
            if self._memory is not None:
                self._memory.note_written()

    def _note_present(self, known: Sequence[threads.Thread]) -> None:
        """Note the threads, and what each of them is doing."""
        if self._file is None:
            return
        idents = {thread.ident for thread in known}
        open_scopes = {track: [scope.label for scope in list(inside)] for track, inside in list(scopes._open.items())}
        found = labels.table() if any(open_scopes.values()) else {}
        with self._turns.waiting():
            places = self._whereabouts.now()
        facts = {
            "time": recorder.clock(),
            "threads": [list(thread) for thread in known[self._written_threads :]],
            "steps": [list(step) for step in self._steps[self._written_steps :]],
            "recorder": sorted(self._recorder_threads),
            "present": {str(ident): found_places for ident, found_places in places.items() if ident in idents},
            "scopes": {
                str(track): [found[n].name for n in inside if n in found] for track, inside in open_scopes.items() if inside
            },
        }
        self._written_threads, self._written_steps = len(known), len(self._steps)
        self._add(NOW, facts)

    def take(self, findings: Findings) -> None:
        """Say that the recording was stopped, and close the file."""
        self._note_present(findings.threads)
        if self._memory is not None:
            self._add_memory(findings.stopped, self._memory.rest(findings), findings)
        facts = {
            "time": findings.stopped,
            "threads": [list(thread) for thread in findings.threads],
            "dropped": [list(item) for item in findings.dropped.items() if item[0] in FILTERS],
        }
        if self._file is not None and self._file.is_there and not os.fstat(self._file.fileno()).st_nlink:
            self.problem = "the file was removed"
        at_end = findings.roles_at_end
        self._add(END, facts, [np.array([*at_end.keys()], np.int64), np.array([*at_end.values()], np.int32)])
        self._sync()
        self.discard()

    def discard(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
            self._whereabouts.close()
        self._turns.end()

    def _add(self, kind: int, facts: dict[str, Any], piece: Sequence[Column] = ()) -> None:
        if self._file is None:
            return
        if not self._file.is_there:
            self.problem = "the program closed it"
            self.discard()
            return
        try:
            if not self._has_head:
                self._has_head = True
                self._write(frame_bytes(HEAD, _head_facts(self._log, *self._head())))
            self._write(frame_bytes(kind, facts, piece))
            for name in facts.keys() & self._numbers.keys():
                self._known[name].update(self._numbers[name])
        except (OSError, MemoryError) as error:
            self.problem = f"{getattr(error, 'strerror', None) or error or 'no memory is left'}"
            with contextlib.suppress(OSError):
                self._file.truncate(self._size)
            self.discard()

    def _write(self, content: bytes) -> None:
        assert self._file is not None
        left = memoryview(content)
        while left:
            with self._turns.waiting():
                left = left[self._file.write(left) or 0 :]
        self._size += len(content)


FILTERS = ("min_duration_us", "names", "threads")  # of what they leave out, nothing is in the file


def _head_facts(log: Log, info: Info, facts: dict[str, Any]) -> dict[str, Any]:
    known = {field.name: to_json(getattr(info, field.name)) for field in dataclasses.fields(info)}
    return {"version": 1, "form": {name: getattr(log, name) for name in FORMS}, "info": known, **facts}
