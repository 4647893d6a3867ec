"""Facts about the process and its machine that do not change while it runs."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["environment", "parent_pid", "process_name"]

_inherited: Any = None  # the process of `multiprocessing` that this one was forked in


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


def parent_pid() -> int:
    """The process that started this one: for a process of `multiprocessing` the one that asked for it, which a server of forks is not."""
    process = _started_process()
    return os.getppid() if process is None or process.parent_process() is None else process.parent_process().pid


def process_name() -> str:
    """The name that the program gave its process, or else that of the Python."""
    process = _started_process()
    name = "" if process is None or process.parent_process() is None else str(process.current_process().name)
    return name or os.path.basename(sys.executable) or "python"


def _started_process() -> Any:
    """The module with what `multiprocessing` says of this process; None if it did not start it: after `os.fork()` it still speaks of the parent."""
    module = sys.modules.get("multiprocessing.process")
    return None if module is None or module.current_process() is _inherited else module


def _note_inherited() -> None:
    global _inherited
    module = sys.modules.get("multiprocessing.process")
    _inherited = None if module is None else module.current_process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_inherited)


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
