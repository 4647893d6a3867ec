"""The memory that the machine has left."""

from __future__ import annotations

import os

__all__ = ["free_bytes"]


def free_bytes() -> int:
    """Bytes that programs can still get without swapping, as the system estimates them; 0 if it does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                name, value = line.split(":")
                if name == "MemAvailable":
                    return int(value.split()[0]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0
