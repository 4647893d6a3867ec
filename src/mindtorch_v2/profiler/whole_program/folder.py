"""The folder that `mindtorch profile` leaves: the session of each process, the trace, the report and the summary."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from pathlib import Path

from ..model.session import Session
from ..running import is_running

__all__ = ["MAIN", "Folder", "default_folder"]

MAIN = "run.session"  # of the process that started the others
MAIN_SPOOL = "run.spool"  # while it is recorded
CHILD_SPOOL = "process-{pid}.spool"
CHILD = "process-{pid}{again}.session"
CHILD_NAME = re.compile(r"process-(\d+)(-\d+)?\.(session|spool)")

LARGEST_NUMBER = 10_000  # of folders for one program


def default_folder(name: str) -> Path:
    """`train.profile`, or the first of `train.profile-2`, … that is not there yet, in the current directory."""
    for number in range(1, LARGEST_NUMBER):
        folder = Path(f"{name}.profile" if number == 1 else f"{name}.profile-{number}")
        if not folder.exists():
            return folder
    raise FileExistsError(f"there are {LARGEST_NUMBER - 1:,} folders {name}.profile-N; give another place with --output")


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


class Folder:
    """A folder of results. The path is absolute: the program may change the directory."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.shown = os.fspath(path)
        self.path = Path(os.path.abspath(path))

    def make(self) -> None:
        """Make the folder. One that has results of another run is refused."""
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / MAIN).exists() or (self.path / MAIN_SPOOL).exists():
            raise FileExistsError(f"{self.shown} has the results of another run; give another folder with --output, or remove it")

    def remove_if_empty(self) -> None:
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def save_child(self, session: Session) -> None:
        """Keep the session of a process that the program started. Numbers of processes are used again."""
        for again in itertools.count(1):
            name = self.path / CHILD.format(pid=session.info.pid, again="" if again == 1 else f"-{again}")
            with contextlib.suppress(FileExistsError):
                name.touch(exist_ok=False)  # nobody else takes it
                session.save(name)
                return

    def left_by_children(self) -> list[Path]:
        """The sessions of processes that have ended, and the spools of those that ended without one."""
        names = {path.name: path for path in self.path.iterdir()}
        found = [(match, names[match.string]) for match in map(CHILD_NAME.fullmatch, sorted(names)) if match is not None]
        return [path for match, path in found if _has_content(path) and (match[3] == "session" or not is_running(int(match[1])))]

    def file(self, name: str) -> str:
        """The path of a file, as it is shown."""
        return os.path.join(self.shown, name)
