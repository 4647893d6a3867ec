"""Files that are there in full or not at all.

The content goes to a file without a name in the folder of its place, where the system has such files (Linux), and gets its name when
it is complete and on the disk: a process that is killed leaves nothing. Elsewhere it goes to a hidden file beside its place. That file is removed
whatever exception ends the writing; after a kill, by the next export to the same place.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, cast

__all__ = ["Replacement", "replacing", "write_text"]

_NO_NEW_FILES = (errno.EACCES, errno.EPERM, errno.EROFS)  # what a folder says that takes none
_DESCRIPTOR = re.compile(r"/dev/(?:(stdin|stdout|stderr)|fd/(\d+))|/proc/self/fd/(\d+)")
_STANDARD = {"stdin": 0, "stdout": 1, "stderr": 2}


class Replacement:
    """A file to write bytes to, which takes the place of `path` when it is complete.

    A link stays a link to the new content, and a file that is replaced keeps its permissions. A file in a folder that takes no new
    files is written in place if it is writable itself: its content is complete elsewhere before it is touched. Pipes, devices
    and the process's own descriptors (`/dev/stdout`) get the content while it is made.
    """

    def __init__(self, path: str | os.PathLike[str], *, gzip_level: int | None = None) -> None:
        self._name = os.fspath(path)
        self._target = os.path.realpath(self._name)
        self._pid = os.getpid()
        self._temporary = _temporary_name(self._target)
        self._has_name = False  # whether there is a file of the temporary name
        self._is_done = False
        self._publish: Callable[[Replacement], None] | None = None  # how the complete file gets into its place
        self._file: IO[bytes]
        with self._named():
            try:
                self._file = self._open()
            except BaseException:
                self._unlink()
                raise
        self.file = self._file
        if gzip_level is not None:
            compressed = gzip.GzipFile(filename="", mode="wb", compresslevel=gzip_level, fileobj=self._file)
            self.file = cast("IO[bytes]", compressed)

    def _open(self) -> IO[bytes]:
        descriptor = _descriptor(self._name)
        if descriptor is not None:
            with contextlib.suppress(AttributeError, OSError, ValueError):
                (sys.stderr if descriptor == 2 else sys.stdout).flush()
            return open(os.dup(descriptor), "wb")
        mode = _mode(self._name)
        if mode is not None and not stat.S_ISREG(mode):
            return open(self._name, "wb")  # a directory fails here as it does for `open`
        _remove_stale(self._target)
        try:
            return self._create(mode)
        except OSError as error:
            if error.errno not in _NO_NEW_FILES or mode is None or not os.access(self._target, os.W_OK):
                raise
        self._publish = Replacement._write_in_place
        return cast("IO[bytes]", tempfile.TemporaryFile())

    def _create(self, mode: int | None) -> IO[bytes]:
        """An empty file in the folder of the target, with the permissions of what it will replace."""
        file = _unnamed(os.path.dirname(self._target))
        self._publish = Replacement._link
        if file is None:
            self._has_name = True
            self._publish = Replacement._rename
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            file = open(os.open(self._temporary, flags, 0o666), "w+b")  # noqa: SIM115 - closed by commit and discard
        if mode is not None and hasattr(os, "fchmod"):
            with contextlib.suppress(OSError):
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
        return file

    def commit(self) -> None:
        """Put the file into its place."""
        with self._named():
            try:
                if self.file is not self._file:
                    self.file.close()  # writes the end of compressed data
                self._file.flush()
                if self._publish is not None:
                    _to_disk(self._file)
                    self._publish(self)
                self._file.close()
                self._is_done = True
            finally:
                if not self._is_done:
                    self.discard()

    def _link(self) -> None:
        self._has_name = True
        try:
            # the directory's descriptor is not used: it has Python call linkat, which follows the link in /proc
            os.link(f"/proc/self/fd/{self._file.fileno()}", self._temporary, src_dir_fd=self._file.fileno())
        except OSError:  # no /proc, or a system that does not give names later
            with open(self._temporary, "xb") as copy:
                self._file.seek(0)
                shutil.copyfileobj(self._file, copy)
                _to_disk(copy)
                with contextlib.suppress(OSError):
                    os.fchmod(copy.fileno(), stat.S_IMODE(os.fstat(self._file.fileno()).st_mode))
        os.replace(self._temporary, self._target)
        self._has_name = False

    def _rename(self) -> None:
        self._file.close()
        os.replace(self._temporary, self._target)
        self._has_name = False

    def _write_in_place(self) -> None:
        self._file.seek(0)
        with open(self._target, "r+b") as target:
            shutil.copyfileobj(self._file, target)
            target.truncate()
            _to_disk(target)

    def discard(self) -> None:
        """Leave what was in that place before."""
        self._is_done = True
        with contextlib.suppress(Exception):  # a compressed stream that was interrupted raises whatever it likes
            try:
                self.file.close()
            finally:
                self._file.close()
        self._unlink()

    def _unlink(self) -> None:
        if self._has_name and self._pid == os.getpid():  # a forked process leaves its parent's file alone
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)
            self._has_name = False

    def __del__(self) -> None:
        # an interrupt may come before or after the lines that would discard it
        if not getattr(self, "_is_done", True):
            self._unlink()

    def abandon(self) -> None:
        """Write nowhere from now on, in a forked process: the file is its parent's."""
        self._is_done = True
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
            own = (None, self._temporary, self._target, os.path.dirname(self._target))
            is_own = error.filename in own or str(error.filename).startswith("/proc/self/fd/")
            if error.errno is None or not is_own:
                raise
            raise type(error)(error.errno, error.strerror, self._name) from None


def _to_disk(file: IO[bytes]) -> None:
    """Have the content on the disk before it gets its name: after a power cut, the name is that of a whole file, too."""
    file.flush()
    os.fsync(file.fileno())


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


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file of text, in full or not at all."""
    with replacing(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def _mode(name: str) -> int | None:
    """The mode of what is there; None if nothing is."""
    try:
        return os.stat(name).st_mode
    except OSError:
        return None


def _descriptor(name: str) -> int | None:
    """The descriptor of this process that a path stands for (`/dev/stdout`), if it does, perhaps through links."""
    for _ in range(40):
        match = _DESCRIPTOR.fullmatch(name)
        if match is not None:
            return _STANDARD[match[1]] if match[1] else int(match[2] or match[3])
        try:
            name = os.path.join(os.path.dirname(name), os.readlink(name))
        except (OSError, ValueError):
            break
    return None


def _unnamed(folder: str) -> IO[bytes] | None:
    """A file without a name in this folder; None where the system has no such files."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        return open(os.open(folder, os.O_RDWR | os.O_TMPFILE, 0o666), "w+b")
    except OSError as error:
        if error.errno in _NO_NEW_FILES:
            raise
        return None


# Names of temporary files ------------------------------------------------------------------------------------------------------


def _temporary_prefix(target: str) -> str:
    """Return the beginning of the names of temporary files for this target, on this machine."""
    base = os.fsencode(os.path.basename(target))
    return f".{os.fsdecode(base[:80])}.{zlib.crc32(base):08x}-{zlib.crc32(platform.node().encode()):08x}-"


def _temporary_name(target: str) -> str:
    return os.path.join(os.path.dirname(target), f"{_temporary_prefix(target)}{os.getpid()}-{secrets.token_hex(4)}.tmp")


def _remove_stale(target: str) -> None:
    """Remove temporary files for this target whose processes were killed."""
    if os.name != "posix":
        return
    prefix = _temporary_prefix(target)
    with contextlib.suppress(OSError), os.scandir(os.path.dirname(target)) as entries:
        for entry in entries:
            if not (entry.name.startswith(prefix) and entry.name.endswith(".tmp")):
                continue
            pid = entry.name[len(prefix) :].partition("-")[0]
            if pid.isdecimal() and not _is_alive(int(pid)):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
