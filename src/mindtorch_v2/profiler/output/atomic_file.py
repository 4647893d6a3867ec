"""Files that are there in full or not at all: written beside their place, then moved into it."""

from __future__ import annotations

import contextlib
import gzip
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO, cast

__all__ = ["Replacement", "replacing"]


class Replacement:
    """A file to write bytes to, which takes the place of `path` when it is complete."""

    def __init__(self, path: str | os.PathLike[str], *, gzip_level: int | None = None) -> None:
        self._name = os.fspath(path)
        self._target = os.path.realpath(self._name)  # a link stays a link to the new content
        self._temporary: str | None = None  # pipes and devices have none
        if _is_replaceable(self._target):
            self._temporary = os.path.join(os.path.dirname(self._target), f".{secrets.token_hex(8)}.tmp")
        self._file: IO[bytes]
        with self._named():
            if self._temporary is None:
                self._file = open(self._target, "wb")  # noqa: SIM115 - closed by commit and discard
            else:
                self._file = _create(self._temporary, self._target)
        self.file = self._file
        if gzip_level is not None:
            compressed = gzip.GzipFile(filename="", mode="wb", compresslevel=gzip_level, fileobj=self._file)
            self.file = cast("IO[bytes]", compressed)

    def commit(self) -> None:
        """Put the file into its place."""
        with self._named():
            try:
                self.file.close()
            finally:
                self._file.close()
            if self._temporary is not None:
                os.replace(self._temporary, self._target)

    def discard(self) -> None:
        """Leave what was in that place before."""
        with contextlib.suppress(OSError):
            try:
                self.file.close()
            finally:
                self._file.close()
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)

    def abandon(self) -> None:
        """Write nowhere from now on, in a forked process: the file is its parent's."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._file.fileno())
        os.close(nowhere)
        self.file.close()
        self._file.close()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Errors of the system name the file that the user asked for."""
        try:
            yield
        except OSError as error:
            if error.errno is None or error.filename not in (None, self._temporary):
                raise
            raise type(error)(error.errno, error.strerror, self._name) from None


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, gzip_level: int | None = None) -> Iterator[IO[bytes]]:
    """A file to write bytes to, which takes the place of `path` when the block ends well and vanishes when it does not."""
    replacement = Replacement(path, gzip_level=gzip_level)
    try:
        with replacement._named():
            yield replacement.file
        replacement.commit()
    except BaseException:
        replacement.discard()
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
