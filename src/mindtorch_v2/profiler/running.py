"""Whether a process runs."""

from __future__ import annotations

import os

__all__ = ["is_running"]


def is_running(pid: int) -> bool:
    """Return whether a process runs. A zombie, which has ended and was not waited for, does not."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True  # of another user
    except (OSError, OverflowError):
        return False
    return pid > 0 and not _has_ended(pid)


def _has_ended(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] in (b"Z", b"X")
    except OSError:  # not this system, or it is gone by now
        return os.path.isdir("/proc/self")
