"""Places in Python code as torch writes them: `package/module.py(45): inner`, files as the import system found them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence

from .session import Frame, Session

__all__ = ["FUNCTION", "RUNTIME", "below", "of_libraries", "own_frame", "place", "places", "search_path"]

# whose code it is: places of the runtime, of modules and of functions written in C begin so, and the files of libraries are in such folders; all else is the program's
RUNTIME = ("mindtorch_v2/", "mindtorch_v2\\", "torch/", "torch\\", "<built-in ", "nn.Module: ")
FUNCTION = re.compile(r"(?P<file>.*)\((?P<line>\d+)\): (?P<name>.*)", re.DOTALL)  # the name of an event
LIBRARY = re.compile(r"[/\\](site-packages|dist-packages|lib[/\\]python3\.\d+)[/\\]|^<")


def search_path() -> tuple[str, ...]:
    """The directories that modules are imported from, longest first."""
    found = {os.path.join(os.path.abspath(entry), "") for entry in sys.path}
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is not None:  # Python resolves links of the script's directory for sys.path alone
        directory = os.path.dirname(os.path.abspath(script))
        if os.path.join(os.path.realpath(directory), "") in found:
            found.add(os.path.join(directory, ""))
    return tuple(sorted(found, key=lambda path: (-len(path), path)))


def below(path: str, roots: Sequence[str]) -> str:
    """The path as seen from the innermost of these directories."""
    return next((path[len(root) :] for root in roots if path.startswith(root)), path)


def places(session: Session) -> list[str]:
    """The frames of a session, each as a line of a stack."""
    return [place(frame, session.info.source_roots) for frame in session.frames]


def place(frame: Frame, roots: Sequence[str]) -> str:
    """A frame as a line of a stack; a function of C, which a trace names without a place, as its name."""
    return frame.function if not frame.file else f"{below(frame.file, roots)}({frame.line}): {frame.function}"


def of_libraries(names: Iterable[str], session: Session) -> list[bool]:
    """Whether each of these names is that of a function of the runtime, of Python's own modules or of another library.

    The name of a function has its file as seen from where it was imported from; the whole path is that of a frame, or of a file that is there.
    """
    roots = session.info.source_roots
    paths = {below(frame.file, roots): frame.file for frame in session.frames}

    def is_library(name: str) -> bool:
        function = FUNCTION.fullmatch(name)
        if name.startswith(RUNTIME) or function is None:
            return name.startswith(RUNTIME)
        file = function["file"]
        if file not in paths:
            paths[file] = next((path for root in roots if os.path.isfile(path := os.path.join(root, file))), file)
        return LIBRARY.search(paths[file]) is not None

    return [is_library(name) for name in names]


def own_frame(stack: Sequence[int], frames: Sequence[Frame], lines: Sequence[str]) -> int:
    """The innermost frame of the program's own; else of any library but the runtime; else the innermost; -1 of an empty stack.

    `lines` are the `places` of the frames.
    """
    outside = [frame for frame in stack if not lines[frame].startswith(RUNTIME)]
    own = (frame for frame in outside if not LIBRARY.search(frames[frame].file))
    return next(own, next(iter(outside or stack), -1))
