"""Functions written in C that wait: for time to pass, a lock, another process, a file or a socket.

Recordings of this package have calls of these alone among the functions written in C; traces of torch have the calls of all.
"""

from __future__ import annotations

import re

__all__ = ["BUILT_IN", "FUNCTIONS", "METHODS", "waits"]

BUILT_IN = "<built-in "  # names of functions written in C begin with this

FUNCTIONS: dict[str, tuple[str, ...]] = {  # by module
    "time": ("sleep",),
    "select": ("select",),
    "os": ("read", "wait", "waitpid", "wait3", "wait4", "waitid"),
}
_OF_SOCKETS = ("accept", "connect", "recv", "recv_into", "recvfrom", "recvmsg", "send", "sendall", "sendto")
METHODS: dict[str, tuple[str, ...]] = {  # by the name of the type
    "lock": ("acquire",),
    "RLock": ("acquire",),
    "_ThreadHandle": ("join",),
    "SimpleQueue": ("get",),
    "socket": _OF_SOCKETS,
    "FileIO": ("read", "readall", "readinto"),
    "BufferedReader": ("read", "read1", "readinto", "readline", "readlines"),
    "TextIOWrapper": ("read", "readline", "readlines"),
    **dict.fromkeys(("epoll", "poll", "kqueue"), ("poll", "control")),
}
_NAME = re.compile(
    r"<built-in (?:function (?P<function>\w+)|method (?P<method>\w+) of (?:[\w.]*\.)?(?P<type>\w+) object.*)>", re.DOTALL
)


def waits(name: str) -> bool:
    """Whether events of this name are calls that wait."""
    found = _NAME.fullmatch(name) if name.startswith(BUILT_IN) else None
    if found is None:
        return False
    if found["function"] is not None:
        return any(found["function"] in names for names in FUNCTIONS.values())
    return found["method"] in METHODS.get(found["type"], ())
