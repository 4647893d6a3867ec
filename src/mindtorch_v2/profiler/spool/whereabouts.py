"""Where in the source each thread is.

Not by `sys._current_frames`: a frame that another thread holds on to keeps the variables of its function alive after that has returned, which a
program can notice. `faulthandler` reads the stacks as they are, in C, while no thread runs, and writes them as text.
"""

from __future__ import annotations

import faulthandler
import os
import re
import tempfile

from ..capture.stacks import stack_walk
from .own_file import OwnFile

__all__ = ["Whereabouts", "parsed"]

INNERMOST = 8  # places of each thread that are told
Place = tuple[str, int, str]  # file, line, function

_THREAD = re.compile(r'(?:Current thread|Thread) 0x([0-9a-f]+)[^\n]*\n((?:  File "[^\n]*\n|  \.\.\.\n)*)')
_PLACE = re.compile(r'  File "(.*)", line (\d+) in (.*)')


class Whereabouts:
    """Looks at the threads, with a file in memory to write to."""

    def __init__(self) -> None:
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("whereabouts")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        self._file = OwnFile(descriptor, "w+b")

    def now(self) -> dict[int, list[Place]]:
        """The innermost places of each thread that are not of this package, by the thread's identifier; none if the program has closed the file."""
        if not self._file.is_there:
            return {}
        self._file.seek(0)
        self._file.truncate()
        faulthandler.dump_traceback(self._file.fileno(), all_threads=True)
        self._file.seek(0)
        return parsed(self._file.read().decode("utf-8", "backslashreplace"))

    def close(self) -> None:
        self._file.close()


def parsed(text: str) -> dict[int, list[Place]]:
    """The places in a text of `faulthandler`."""
    found: dict[int, list[Place]] = {}
    for ident, lines in _THREAD.findall(text):
        places = [(file, int(line), function) for file, line, function in _PLACE.findall(lines)]
        found[int(ident, 16)] = [place for place in places if not stack_walk.internal_files[place[0]]][:INNERMOST]
    return found
