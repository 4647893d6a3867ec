"""Files that are there in full or not at all: written beside their place, then moved into it."""

from __future__ import annotations

import contextlib
import gzip
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO, Any

__all__ = ["replacing"]


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, gzip_level: int | None = None) -> Iterator[IO[bytes]]:
    """A file to write bytes to, which takes the place of `path` when the block ends well and vanishes when it does not."""
    name = os.fspath(path)
    target = os.path.realpath(name)  # a link stays a link to the new content
    if not _is_replaceable(target):
        with open(target, "wb") as device, _compressed(device, gzip_level) as out:
            yield out
        return
    temporary = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.tmp")
    try:
        with _named(name, temporary), _create(temporary, target) as file, _compressed(file, gzip_level) as out:
            yield out
        with _named(name, temporary):
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _is_replaceable(target: str) -> bool:
    """Whether nothing or a usual file is there. Pipes and devices (`/dev/stdout`) are written into; a directory fails as it does for `open`."""
    try:
        return stat.S_ISREG(os.stat(target).st_mode)
    except OSError:
        return True


def _create(temporary: str, target: str) -> IO[bytes]:
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode)
    except OSError:
        mode = 0o666  # less what the umask takes
    return open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode), "wb")


def _compressed(file: IO[bytes], gzip_level: int | None) -> Any:
    if gzip_level is None:
        return contextlib.nullcontext(file)
    return gzip.GzipFile(filename="", mode="wb", compresslevel=gzip_level, fileobj=file)


@contextlib.contextmanager
def _named(name: str, temporary: str) -> Iterator[None]:
    """Errors of the system name the file that the user asked for."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, temporary):
            raise
        raise type(error)(error.errno, error.strerror, name) from None
