"""What `mindtorch profile` makes of a recording: a folder of results, and the digest that is printed."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager

from ..advice import advise
from ..model.session import Session
from ..opening import open_recording
from ..output import chrome_trace, report
from ..writing.atomic_file import write_text
from .children import Plan, follow, follow_no_more
from .digest import Digest
from .folder import MAIN, MAIN_SPOOL, Folder
from .outputs import print_to
from .whole_run import GivenUpError, WholeRun

__all__ = ["FolderRun"]

Progress = Callable[[int, int], None]

REPORT, TRACE, SUMMARY = "report.html", "trace.json.gz", "summary.json"


class FolderRun(WholeRun):
    """Records a program and the processes that it starts, and leaves a folder."""

    command = "mindtorch profile"

    def __init__(
        self,
        plan: Plan,
        folder: Folder,
        *,
        follow_children: bool = True,
        quiet: bool = False,
        as_json: bool = False,
        progress: Callable[[str], AbstractContextManager[Progress | None]] | None = None,
    ) -> None:
        super().__init__(plan.recording(MAIN_SPOOL))
        self._plan = plan
        self._folder = folder
        self._follows = follow_children
        self._quiet, self._json = quiet, as_json
        self._progress = None if quiet else progress  # shows, while it is entered, that something is done
        self._written: list[str] = []

    def start(self) -> None:
        if self._follows:
            follow(self, self._plan)
        super().start()

    def discard(self) -> None:
        follow_no_more()
        super().discard()

    def abandon(self) -> None:
        super().abandon()
        self._folder.remove_if_empty()

    def _make_results(self) -> None:
        name = f"writing {self._folder.shown}"
        with contextlib.nullcontext() if self._progress is None else self._progress(name) as told:
            digest = self._write_results(told)
        if digest is None:
            print_to(self._err, self._why_nothing_was_recorded())
            self._leave_no_folder()
            return
        self._show(digest)
        self._print_problems()

    def _leave_no_folder(self) -> None:
        """Remove the session without an event, and the folder if nothing else is in it."""
        self._remove_spool()
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._folder.path, MAIN))
        self._folder.remove_if_empty()

    def _write_results(self, told: Progress | None) -> Digest | None:
        """Write the files of the folder; None if nothing was recorded."""

        def go_on(done: int, whole: int) -> None:
            self._go_on(done, whole)
            if told is not None:
                told(done, whole)

        main = self.session
        # the session before all: the others can be made of it
        self._write(MAIN, lambda path: main.save(path))
        self._saved = MAIN in self._written
        sessions = [main, *self._children()]
        if not any(map(len, sessions)):
            return None
        advice = advise(main)
        digest = Digest.of(sessions, advice)
        self._write(SUMMARY, lambda path: write_text(path, json.dumps(digest.as_dict(), indent=2)))
        self._write(TRACE, lambda path: chrome_trace.write(sessions, path, progress=go_on))
        self._write(REPORT, lambda path: report.write(sessions, path, progress=go_on, advice=advice))
        return digest

    def _children(self) -> list[Session]:
        """The sessions of other processes that have ended, in order of their starts; of those that were killed, what is in their spools."""
        found = []
        for path in self._folder.left_by_children():
            try:
                found.append(open_recording(path).session)
            except FileNotFoundError:
                continue  # its process has saved the session by now
            except (OSError, ValueError) as error:
                self._problems.append(f"{error}")
        return sorted((session for session in found if len(session)), key=lambda session: session.info.started_ns)

    def _write(self, name: str, write: Callable[[str], None]) -> None:
        """Write a file of the folder, in full or not at all, and note that, or why not."""
        shown = self._folder.file(name)
        if self.signals.gave_up:
            self._given_up.append(shown)
            return
        try:
            write(os.path.join(self._folder.path, name))
            self._written.append(name)
        except GivenUpError:
            self._given_up.append(shown)
        except OSError as error:
            self._problems.append(f"cannot write {shown!r}: {error.strerror or error}")

    def _show(self, digest: Digest) -> None:
        if self._json:
            files = {name: self._folder.file(name) for name in self._written}
            print_to(self._out, json.dumps(digest.as_dict() | {"notes": self._notes(), "files": files}) + "\n")
        elif not self._quiet:
            notes = [f"\n{note}" for note in self._notes()]
            print_to(self._out, "\n" + "\n".join([str(digest), *notes, "", *self._where_to_look()]) + "\n")

    def _notes(self) -> list[str]:
        """What the recording does not have, in sentences."""
        notes = self._notes_of_gaps()
        recording = self.recording
        if recording.ended_by:
            steps = f" and {recording.ended_in_step} steps" if recording.ended_in_step else ""
            notes.append(
                f"The recording ended after {recording.ended_by}{steps}; the program went on unrecorded. "
                "--max-events, --max-bytes and --max-seconds set the limits, --keep last records all and keeps the end, --wait, --warmup and --active pick the steps."
            )
        return notes

    def _where_to_look(self) -> list[str]:
        shown = self._folder.shown
        lines = {
            REPORT: f"open {self._folder.file(REPORT)} in a browser",
            TRACE: f"open {self._folder.file(TRACE)} at https://ui.perfetto.dev",
            MAIN: f"mindtorch top {shown}, mindtorch advise {shown}",
        }
        return [text for name, text in lines.items() if name in self._written]
