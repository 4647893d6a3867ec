"""What `DataLoader` is made of: fetching, collating, workers and the connection with them."""

from __future__ import annotations

import atexit

from ...._utils import ExceptionWrapper

__all__ = ["MP_STATUS_CHECK_INTERVAL", "ExceptionWrapper", "python_exit_status"]

MP_STATUS_CHECK_INTERVAL = (
    5.0  # seconds after which a process that waits looks whether the other one is there, and that workers have to end
)
python_exit_status = False  # whether the interpreter is about to end; processes are ended by `multiprocessing` then


def _set_python_exit_flag() -> None:
    global python_exit_status
    python_exit_status = True


atexit.register(_set_python_exit_flag)

from . import collate, fetch, worker  # noqa: E402
