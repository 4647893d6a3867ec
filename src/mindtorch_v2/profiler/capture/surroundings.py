"""Facts about the process and its machine that do not change while it runs."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import re
from pathlib import Path

import numpy as np

__all__ = ["environment"]


@functools.cache
def environment() -> dict[str, str | int]:
    """The versions and the machine, by names that people read."""
    return {
        "mindtorch_v2": _package_version(),
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
    }


def _package_version() -> str:
    try:
        return importlib.metadata.version("mindtorch_v2")
    except ImportError:  # run from its sources, or Python's own library is out of reach by now: no reason to lose a recording
        return "not installed"


def _processor() -> str:
    """The name of the processor: Linux has it in a file, other systems know less of it."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()
