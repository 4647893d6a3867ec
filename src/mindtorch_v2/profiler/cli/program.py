"""A script, module, directory or zip file, run as Python itself would run it."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import io
import os
import pkgutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, ModuleType, TracebackType
from typing import Any

__all__ = ["CannotRunError", "Program", "of_module", "of_script", "own_frames_left_out", "run"]


class CannotRunError(Exception):
    """There is no such program. `status` is the exit status that Python has for it."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, kw_only=True)
class Program:
    """Code that is to be `__main__`."""

    code: CodeType
    file: str | None
    argv0: str  # sys.argv[0]
    directory: str | None = None  # sys.path[0]; None to leave it
    package: str | None = None
    loader: Any = None
    spec: importlib.machinery.ModuleSpec | None = None


def of_script(path: str) -> Program:
    """The program in a file, or in a directory or zip file with a `__main__.py`."""
    file = os.path.abspath(path)
    container = pkgutil.get_importer(file)
    if container is not None:
        spec = container.find_spec("__main__")
        if spec is None:
            raise CannotRunError(f"can't find '__main__' module in {file!r}", 1)
        return Program(code=_code_of(spec), file=spec.origin, argv0=path, directory=file, package="", loader=spec.loader, spec=spec)
    return Program(
        code=_code_in(file),
        file=file,
        argv0=path,
        directory=None if sys.flags.safe_path else os.path.dirname(os.path.realpath(path)),
        loader=importlib.machinery.SourceFileLoader("__main__", file),
    )


def _code_in(file: str) -> CodeType:
    try:
        with io.open_code(file) as opened:
            content = opened.read()  # at once: it may be a pipe
    except OSError as error:
        raise CannotRunError(f"can't open file {file!r}: [Errno {error.errno}] {error.strerror}", 2) from None
    code: CodeType | None = pkgutil.read_code(io.BytesIO(content))  # of a file that was compiled before
    return code or compile(content, file, "exec", dont_inherit=True)


def of_module(name: str) -> Program:
    """The program that `python -m name` runs. Packages around it are imported."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
            if spec is None:
                raise CannotRunError(f"No module named {name}.__main__; {name!r} is a package and cannot be directly executed", 1)
    except (ModuleNotFoundError, ValueError) as error:
        reason = f"Error while finding module specification for {name!r} ({type(error).__name__}: {error})"
        raise CannotRunError(reason, 1) from None
    if spec is None:
        raise CannotRunError(f"No module named {name}", 1)
    file = spec.origin
    return Program(code=_code_of(spec), file=file, argv0=file or name, package=spec.parent, loader=spec.loader, spec=spec)


def _code_of(spec: importlib.machinery.ModuleSpec) -> CodeType:
    get_code = getattr(spec.loader, "get_code", None)  # loaders of other kinds of modules have none
    code: CodeType | None = None if get_code is None else get_code(spec.name)
    if code is None:
        raise CannotRunError(f"No code object available for {spec.name}", 1)
    return code


def run(program: Program, arguments: Sequence[str]) -> None:
    """Be this program: its `__main__`, `sys.argv` and `sys.path[0]` stay when it has ended, for its threads and exit handlers."""
    main = ModuleType("__main__")
    names: dict[str, Any] = {
        "__file__": program.file,
        "__cached__": None if program.spec is None else program.spec.cached,
        "__package__": program.package,
        "__loader__": program.loader,
        "__spec__": program.spec,
        "__builtins__": builtins,
    }
    if sys.version_info < (3, 14):
        names["__annotations__"] = {}
    main.__dict__.update(names)
    sys.modules["__main__"] = main
    sys.argv[:] = [program.argv0, *arguments]
    if program.directory is not None:
        # in place of the current directory, which `python -m` puts there unless told not to
        sys.path[: not sys.flags.safe_path] = [program.directory]
    exec(program.code, main.__dict__)


_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STARTERS = ("<frozen runpy>", "<frozen importlib", _OWN, os.path.join(os.path.dirname(_OWN[:-1]), "__main__.py"))


def own_frames_left_out(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback from the program's first frame on."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_STARTERS):
        traceback = traceback.tb_next
    return traceback
