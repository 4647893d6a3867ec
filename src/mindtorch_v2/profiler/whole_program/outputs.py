"""The targets of results: files that can be written for sure, and the stream that a table is printed to."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
from collections.abc import Mapping
from typing import TextIO

from ..writing.atomic_file import Replacement

__all__ = ["UnwritableError", "check_files", "print_to", "size_text", "terminal_width"]


class UnwritableError(Exception):
    """A result cannot be written where it is wanted."""


def check_files(files: Mapping[str, str]) -> None:
    """Find out now, before a long run, whether these files (option → path) can be written."""
    seen: dict[str, str] = {}
    for option, path in files.items():
        target = os.path.realpath(path)
        other = seen.setdefault(target, option)
        if other != option:
            raise UnwritableError(f"{other} and {option} both name {path!r}")
        try:
            _check(path)
        except OSError as error:
            raise UnwritableError(f"{option}: cannot write {path!r}: {error.strerror}") from None
        if target.endswith((".py", ".pyc", ".pyw")):
            raise UnwritableError(f"{option}: {path!r} is the name of a program; give the file to write, then the program")


def _check(path: str) -> None:
    """Raise OSError unless the file can be made or replaced."""
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            # devices and pipes are written into; a directory fails here as it would later
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            return
    Replacement(path).discard()


def print_to(stream: TextIO | None, text: str) -> None:
    """Print after all that the program printed. A reader that has gone away is no error."""
    if stream is None or stream.closed:
        stream = sys.__stderr__
    if not text or stream is None or stream.closed:
        return
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        for other in (sys.stdout, sys.stderr):
            other.flush()
    encoding = stream.encoding or "utf-8"
    content = text.encode(encoding, "backslashreplace")
    with contextlib.suppress(OSError):
        try:
            stream.write(content.decode(encoding))
            stream.flush()
        except RuntimeError:  # a signal's handler, in the middle of a write to this stream
            while content:
                content = content[os.write(stream.fileno(), content) :]


def terminal_width(stream: TextIO | None) -> int | None:
    """The width of the terminal that a stream prints to; None if it prints to something else."""
    try:
        return shutil.get_terminal_size().columns if stream is not None and stream.isatty() else None
    except (OSError, ValueError):  # closed
        return None


def size_text(path: str) -> str:
    """The size of a file, as people read it."""
    size = float(os.path.getsize(path))
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
