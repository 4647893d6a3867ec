"""The nodes of an execution trace on their way into a file: what is open on each thread, and the text of what has ended.

A node is written when it ends, as torch does it, so inner nodes precede what is around them; `ctrl_deps` is the node around it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
import time
from typing import Any

from ...._forking import new_lock
from ...._storage import next_identity
from ...model.session import USER_SCOPE
from ...writing.atomic_file import Replacement
from ...writing.json_text import json_text
from .. import tasks

__all__ = ["NodeFile", "Open", "Track", "next_function_id", "node_text"]

SCHEMA = "1.1.1-chakra.0.0.4"
PROCESS, THREAD = "[pytorch|profiler|execution_trace|process]", "[pytorch|profiler|execution_trace|thread]"
PROCESS_ID = 1
NOTHING = '{"values": [], "shapes": [], "types": [], "strides": []}'
GZIP_LEVEL = 6
FLUSH_NODES = 128  # about 150 kB of text

next_function_id = itertools.count(1).__next__  # `rf_id`: torch's are the process's, too

Open = list[Any]  # of a node that has begun: id, sequence number of the first autograd node made inside, name, scope, rf_id[, text]
ID, FIRST_SEQUENCE, NAME, SCOPE, FUNCTION_ID, TEXT = range(6)
WANTED, NO_SEQUENCE = -1, -2  # instead of a sequence number: none yet, and none of those made inside


def node_text(
    node: int | str,
    name: str,
    parent: int | str,
    *,
    inputs: str = NOTHING,
    outputs: str = NOTHING,
    function_id: int | str = 0,
    forward_parent: int | str = 0,
    sequence: int | str = -1,
    scope: int = USER_SCOPE,
    thread: int | str = 0,
    forward_thread: int | str = 0,
    schema: str = '""',
    ranges: str = "",
) -> str:
    """One node; `name` and `schema` are JSON already."""
    attrs = (
        ("rf_id", "uint64", function_id),
        ("fw_parent", "uint64", forward_parent),
        ("seq_id", "int64", sequence),
        ("scope", "uint64", scope),
        ("tid", "uint64", thread),
        ("fw_tid", "uint64", forward_thread),
        ("op_schema", "string", schema),
        ("kernel_backend", "string", '""'),
        ("kernel_file", "string", '""'),
        ("tensor_range", "string", f'"{ranges}"'),
    )
    listed = ",".join(f'{{"name": "{key}", "type": "{kind}", "value": {value}}}' for key, kind, value in attrs)
    return (
        f'      {{\n        "id": {node}, "name": {name}, "ctrl_deps": {parent},\n'
        f'        "inputs": {inputs},\n        "outputs": {outputs},\n        "attrs": [{listed}]\n      }}'
    )


class Track(list[Open]):
    """The open nodes of one thread, or of one task of asyncio, outermost first; the first is the node of the thread itself."""

    __slots__ = ("file", "tid")

    def __init__(self, file: NodeFile, tid: int) -> None:
        node = next_identity()
        super().__init__([[node, NO_SEQUENCE, THREAD, USER_SCOPE, 0]])
        self.file = file
        self.tid = tid
        file.write(node_text(node, json_text(THREAD), PROCESS_ID, thread=tid))

    def leave(self, entry: Open) -> bool:
        """End a node, and those inside that were never left; whether it was open."""
        if self[-1] is entry:
            self.pop()
            return True
        if not any(e is entry for e in self):
            return False
        while self[-1] is not entry:
            self.write_open(self.pop())
        self.pop()
        return True

    def write_open(self, entry: Open) -> None:
        """Write down a node that nobody ended."""
        if len(entry) > TEXT:
            self.file.write(entry[TEXT])
            return
        node, sequence, name, scope, function_id = entry
        facts = {"function_id": function_id, "sequence": max(sequence, -1), "scope": scope, "thread": self.tid}
        self.file.write(node_text(node, json_text(name), self[-1][ID], **facts))


class _Here(threading.local):
    """The running thread's own track."""

    def __init__(self, file: NodeFile) -> None:
        self.file = file

    def __getattr__(self, name: str) -> Track:
        if name != "track":
            raise AttributeError(name)
        self.track = track = self.file.new_track()
        return track


class NodeFile:
    """An execution trace that is being written. It takes its place when it is complete."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fspath(path)
        self.path = name
        self.pid = os.getpid()
        self._replacement = Replacement(name, gzip_level=GZIP_LEVEL if name.endswith(".gz") else None)
        self._pieces: list[str] = []
        self._lock = new_lock()
        self._tids = itertools.count(1)
        self._tracks: list[Track] = []
        self._of_tasks: dict[int, Track] = {}
        self.error: OSError | None = None  # what kept nodes from being written
        self.is_open = True
        self.here = _Here(self)
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        started = f'"schema": "{SCHEMA}", "pid": {self.pid}, "time": "{now}", "start_ts": {_milliseconds()}'
        self._write_out(f'{{\n  {started},\n  "nodes": [\n')

    @functools.cached_property
    def undefined(self) -> int:
        """torch: all tensors that are not there have one number."""
        return next_identity()

    def new_track(self) -> Track:
        with self._lock:
            track = Track(self, next(self._tids))
            self._tracks.append(track)
            return track

    def track(self) -> Track:
        """Return the track of a node that begins now: the running thread, or a task that has a scope open."""
        return self.track_of(tasks.track_number())

    def track_of(self, number: int) -> Track:
        """The track of a task (negative numbers), or of the running thread."""
        if number >= 0:
            return self.here.track
        found = self._of_tasks.get(number)
        if found is None:
            found = self._of_tasks[number] = self.new_track()
        return found

    def write(self, node: str) -> None:
        """Add a node that has ended. Nothing can go wrong here: it runs inside of the user's operators."""
        pieces = self._pieces
        pieces.append(node)
        if len(pieces) >= FLUSH_NODES:
            self.flush()

    def flush(self) -> None:
        """Hand over what has gathered."""
        with self._lock:
            pieces = self._pieces[:]
            del self._pieces[: len(pieces)]
            if pieces and self.is_open:
                self._write_out(",\n".join(pieces) + ",\n")

    def _write_out(self, text: str) -> None:
        if self.error is None:
            try:
                self._replacement.file.write(text.encode())
            except OSError as error:  # the disk is full: said at the end, to whoever ends the trace
                self.error = error

    def finish(self) -> None:
        """End the trace: nodes that are still open are written, and the file takes its place. Raises what kept it from being complete."""
        with self._lock:
            if not self.is_open:
                return
            for track in self._tracks:
                while len(track) > 1:
                    track.write_open(track.pop())
            self.flush()
            self.is_open = False
        end = node_text(PROCESS_ID, json_text(PROCESS), PROCESS_ID)
        self._write_out(f'{end}\n  ],\n  "finish_ts": {_milliseconds()}\n}}')
        if self.error is None:
            try:
                self._replacement.commit()
            except OSError as error:
                self.error = error
        if self.error is not None:
            self._replacement.discard()
            reason = f"the execution trace could not be written: {self.error.strerror or self.error}"
            raise OSError(self.error.errno, reason, self.path) from self.error

    def abandon(self) -> None:
        """Let go of the file in a forked process."""
        self.is_open = False
        self._pieces.clear()
        with contextlib.suppress(OSError, ValueError):
            self._replacement.abandon()


def _milliseconds() -> int:
    return int(time.monotonic() * 1000)
