"""Code of generated functions that was compiled by earlier processes: a file beside the bytecode of the package, where Python caches that.

To compile a function takes 0.15 ms and to load its code 0.02: half of what a first step takes more than a second one. A function is
known by its source and its title, so that nothing here goes out of date, and its file name is the same in each process. Written is at exit, what is new; `PYTHONDONTWRITEBYTECODE` and
`PYTHONPYCACHEPREFIX` hold for this file as for Python's own.
"""

from __future__ import annotations

import atexit
import contextlib
import marshal
import os
import sys
from hashlib import blake2b
from importlib.util import MAGIC_NUMBER, cache_from_source
from types import CodeType

__all__ = ["digest_of", "find", "remember"]

_LIMIT = 8_000_000  # bytes; all functions of the tests come to half of that

_known: dict[bytes, bytes] | None = None  # what the file has, by digest of the source
_new: dict[bytes, CodeType] = {}


def digest_of(title: str, text: str) -> bytes:
    """What a function is known by: its source, and the title that its file name has."""
    return blake2b(f"{title}\n{text}".encode(), digest_size=16).digest()


def find(digest: bytes) -> CodeType | None:
    """The code of a source; None if nobody compiled it before."""
    global _known
    if _known is None:
        _known = _read()
    found = _known.get(digest)
    return None if found is None else marshal.loads(found)


def remember(digest: bytes, code: CodeType) -> CodeType:
    """Have the code of a source written when the process ends; returns it."""
    if not sys.dont_write_bytecode:
        if not _new:
            atexit.register(_write)
        _new[digest] = code
    return code


def _path() -> str:
    return cache_from_source(__file__).removesuffix("pyc") + "generated"


def _read() -> dict[bytes, bytes]:
    try:
        with open(_path(), "rb") as file:
            content = file.read()
        if content.startswith(MAGIC_NUMBER):
            return marshal.loads(content[len(MAGIC_NUMBER) :])
    except (OSError, NotImplementedError, EOFError, ValueError, TypeError):  # none, none to be had in this Python, or damaged
        pass
    return {}


def _write() -> None:
    """Add what is new to the file, which other processes may have written meanwhile."""
    found = _read() | {digest: marshal.dumps(code) for digest, code in _new.items()}
    content = MAGIC_NUMBER + marshal.dumps(found)
    if len(content) > _LIMIT:
        content = MAGIC_NUMBER + marshal.dumps({digest: marshal.dumps(code) for digest, code in _new.items()})
    with contextlib.suppress(OSError, NotImplementedError):  # a folder that is not ours to write to, or a full disk
        path = _path()
        own = f"{path}.{os.getpid()}-{os.urandom(8).hex()}"  # a name that nobody can have put a link at
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with open(own, "xb") as file:
                file.write(content)
            os.replace(own, path)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(own)
            raise
