"""Places in Python code as torch writes them: `package/module.py(45): inner`, files as the import system found them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from .session import Frame, Session

__all__ = ["RUNTIME", "below", "own_frame", "place", "places", "search_path"]

# whose code it is: places of the runtime, of modules and of functions written in C begin so, and the files of libraries are in such folders; all else is the program's
RUNTIME = ("mindtorch_v2/", "mindtorch_v2\\", "torch/", "torch\\", "<built-in ", "nn.Module: ")
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


def own_frame(stack: Sequence[int], frames: Sequence[Frame], lines: Sequence[str]) -> int:
    """The innermost frame of the program's own; else of any library but the runtime; else the innermost; -1 of an empty stack.

    `lines` are the `places` of the frames.
    """
    outside = [frame for frame in stack if not lines[frame].startswith(RUNTIME)]
    own = (frame for frame in outside if not LIBRARY.search(frames[frame].file))
    return next(own, next(iter(outside or stack), -1))
