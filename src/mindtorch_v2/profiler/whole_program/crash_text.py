"""The traceback that Python writes when it crashes, appended to the spool."""

from __future__ import annotations

import contextlib
import faulthandler
import os
from typing import IO

__all__ = ["write_behind"]

_file: IO[bytes] | None = None  # that `faulthandler` was given; open as long as the process lives
_leads_to: os.stat_result | None = None  # the file that is behind it
_pid = 0


def write_behind(spool: str) -> None:
    """Have Python write the traceback of a crash to this file, unless the program uses `faulthandler` itself."""
    global _file, _leads_to, _pid
    if _file is not None:
        _lead_to(spool)
    elif faulthandler.is_enabled():
        return
    else:
        _file = open(spool, "ab", buffering=0)  # noqa: SIM115 - as long as the process lives
        _leads_to = os.fstat(_file.fileno())
        faulthandler.enable(_file)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_leave_to_parent)
    _pid = os.getpid()


def _leave_to_parent() -> None:
    """Stop writing to the parent's file after a fork, unless the child has its own by now."""
    if _pid != os.getpid():
        _lead_to(os.devnull)


def _lead_to(path: str) -> None:
    """Put another file behind the one that `faulthandler` was given. It is not called again: by now the program may use it, or have disabled it."""
    global _leads_to
    assert _file is not None
    assert _leads_to is not None
    # a program that closes all files may have opened its own in this place
    with open(path, "ab", buffering=0) as file, contextlib.suppress(OSError):
        if os.path.samestat(os.fstat(_file.fileno()), _leads_to):
            os.dup2(file.fileno(), _file.fileno(), inheritable=False)
            _leads_to = os.fstat(file.fileno())
