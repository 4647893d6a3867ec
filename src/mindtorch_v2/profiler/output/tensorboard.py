"""Traces in a folder that TensorBoard watches."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any

__all__ = ["tensorboard_trace_handler"]


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[Any], None]:
    """For `profile(on_trace_ready=…)`: each finished cycle becomes a file `<worker>.<time in ns>.pt.trace.json` in this directory.

    Args:
        dir_name: the directory to write to; it is made if it is missing.
        worker_name: the first part of the file names. By default the host and the process; in distributed training every process needs a
            name of its own.
        use_gzip: compress the files, whose names then end in `.gz`.
        use_python_export: taken for compatibility; the trace is the same.
    """

    def write_trace(prof: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        options = {"use_python_export": True} if use_python_export else {}
        prof.export_chrome_trace(os.path.join(dir_name, name), **options)

    return write_trace
