"""The memory that the limits of a process's control groups leave: those of a container, of a job of a cluster, of a service."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["left_by_limits"]

MOUNTED = "/sys/fs/cgroup"
GROUPS = "/proc/self/cgroup"
NO_LIMIT = 1 << 60  # the first version says a number beyond this where there is none


@dataclass(frozen=True)
class _Version:
    """How a version of control groups names its files, and the cached files in a group that are given up before it runs out of memory."""

    folder: str
    limit: str
    used: str
    cached: str


_FIRST = _Version("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_SECOND = _Version("", "memory.max", "memory.current", "inactive_file")


def left_by_limits(mounted: str = MOUNTED, groups: str = GROUPS) -> int | None:
    """The bytes that the tightest limit leaves, of the process's groups and all around them; None if there is none."""
    left = [_left(folder, version) for folder, version in _groups(mounted, groups)]
    return min((size for size in left if size is not None), default=None)


@functools.cache  # a process stays in its groups; their limits may change
def _groups(mounted: str, groups: str) -> list[tuple[str, _Version]]:
    """The folders of this process's groups that have a limit."""
    try:
        lines = _content(groups).splitlines()
    except OSError:  # another system
        return []
    found = [group for line in lines for group in _around(line, mounted)]
    return [(folder, version) for folder, version in found if os.path.exists(os.path.join(folder, version.limit))]


def _around(line: str, mounted: str) -> Iterator[tuple[str, _Version]]:
    """The groups that a line names (`4:memory:/job/7`, `0::/user.slice`), innermost first.

    A container may see its own group as the outermost, and yet be told the path that it has outside: not all of these folders are there.
    """
    _, controllers, path = [*line.split(":", 2), "", ""][:3]
    if not controllers:
        version = _SECOND
    elif "memory" in controllers.split(","):
        version = _FIRST
    else:
        return
    top = os.path.join(mounted, version.folder)
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for count in range(len(parts), -1, -1):
        yield os.path.join(top, *parts[:count]), version


def _left(folder: str, version: _Version) -> int | None:
    try:
        limit = int(_content(os.path.join(folder, version.limit)))  # "max" is no limit
        if limit >= NO_LIMIT:
            return None
        used = int(_content(os.path.join(folder, version.used)))
        return max(0, limit - used + _cached(folder, version))
    except (OSError, ValueError):
        return None


def _cached(folder: str, version: _Version) -> int:
    lines = _content(os.path.join(folder, "memory.stat")).splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{version.cached} ")), 0)


def _content(path: str) -> str:
    with open(path, "rb", buffering=0) as file:
        return os.fsdecode(file.read())
