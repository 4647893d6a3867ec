"""The traceback that Python writes when it crashes, appended to the spool."""

from __future__ import annotations

import faulthandler
import os
from typing import IO

__all__ = ["write_behind"]

_file: IO[bytes] | None = None  # open as long as the process lives
_pid = 0


def write_behind(spool: str) -> None:
    """Have Python write the traceback of a crash to this file, unless the program uses `faulthandler` itself."""
    global _file, _pid
    if faulthandler.is_enabled() and _file is None:
        return
    first = not _pid
    before, _file, _pid = _file, open(spool, "ab", buffering=0), os.getpid()  # noqa: SIM115 - as long as the process lives
    faulthandler.enable(_file)
    if before is not None:
        before.close()
    if first and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_leave_to_parent)


def _leave_to_parent() -> None:
    """Stop writing to the parent's file after a fork, unless the child has its own by now."""
    global _file
    if _file is not None and _pid != os.getpid():
        faulthandler.disable()
        _file.close()
        _file = None
