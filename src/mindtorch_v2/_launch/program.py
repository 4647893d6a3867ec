"""A script, module, directory, zip file, code or standard input, run as Python itself would run it."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import io
import linecache
import os
import pkgutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, ModuleType, TracebackType
from typing import Any

__all__ = [
    "CannotRunError",
    "Program",
    "Request",
    "find",
    "of_module",
    "of_script",
    "own_frames_left_out",
    "requested",
    "run",
    "show_errors_without_own_frames",
]


class CannotRunError(Exception):
    """There is no such program. `status` is the exit status that Python has for it."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Request:
    """A program as a command line names it, and the arguments that belong to it."""

    form: str  # "script", "module", "code" or "stdin"
    name: str  # the path, the module or the code
    arguments: Sequence[str]


_FORMS = {"-m": "module", "-c": "code"}


def requested(arguments: Sequence[str]) -> Request | None:
    """The program at the start of these arguments, in the forms that Python takes; None if they are none."""
    if arguments[:1] == ["--"]:
        return Request("script", arguments[1], arguments[2:]) if len(arguments) > 1 else None
    if not arguments:
        return None
    first, rest = arguments[0], arguments[1:]
    if first == "-":
        return Request("stdin", first, rest)
    form = _FORMS.get(first[:2])
    if form is not None and len(first) > 2:
        return Request(form, first[2:], rest)  # python -mpackage.module
    if form is not None:
        return Request(form, rest[0], rest[1:]) if rest else None
    return None if first.startswith("-") else Request("script", first, rest)


def find(request: Request) -> Program:
    """The program that was requested. Packages around a module are imported."""
    return {"script": of_script, "module": of_module, "code": of_code, "stdin": of_stdin}[request.form](request.name)


@dataclass(frozen=True, kw_only=True)
class Program:
    """Code that is to be `__main__`."""

    code: CodeType
    file: str | None  # None for code of the command line, which has no `__file__`
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


def of_code(text: str) -> Program:
    """The program that `python -c text` runs."""
    return _of_text(text, "<string>", "-c", None)


def of_stdin(name: str) -> Program:
    """The program that `python -` reads from standard input; on a terminal, one that converses."""
    if sys.stdin is not None and sys.stdin.isatty():
        return _of_text("import code\ncode.interact(local=globals())\n", "<stdin>", "-", "<stdin>")
    content = b"" if sys.stdin is None else sys.stdin.buffer.read()
    return _of_text(content, "<stdin>", "-", "<stdin>")


def _of_text(text: str | bytes, shown_file: str, argv0: str, file: str | None) -> Program:
    if sys.version_info >= (3, 13) and isinstance(text, str):  # since then tracebacks show the lines of -c
        linecache.cache[shown_file] = (len(text), None, text.splitlines(keepends=True), shown_file)
    return Program(
        code=compile(text, shown_file, "exec", dont_inherit=True),
        file=file,
        argv0=argv0,
        directory=None if sys.flags.safe_path else "",
        loader=importlib.machinery.BuiltinImporter,
    )


def of_module(name: str) -> Program:
    """The program that `python -m name` runs. Packages around it are imported."""
    sys.argv[0] = "-m"
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()  # a console script has its own folder there
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
        "__package__": program.package,
        "__loader__": program.loader,
        "__spec__": program.spec,
        "__builtins__": builtins,
    }
    if program.file is not None:
        names.update(__file__=program.file, __cached__=None if program.spec is None else program.spec.cached)
    if sys.version_info < (3, 14):
        names["__annotations__"] = {}
    main.__dict__.update(names)
    sys.modules["__main__"] = main
    sys.argv[:] = [program.argv0, *arguments]
    if program.directory is not None:
        # in place of the current directory, which `python -m` puts there unless told not to
        sys.path[: not sys.flags.safe_path] = [program.directory]
    exec(program.code, main.__dict__)


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_STARTERS = (
    "<frozen runpy>",
    "<frozen importlib",
    *(
        os.path.join(_PACKAGE, *parts)
        for parts in (
            ("_launch", ""),
            ("cli", ""),
            ("profiler", "cli", ""),
            ("profiler", "whole_program", ""),
            ("__main__.py",),
            ("profiler", "__main__.py"),
        )
    ),
)


def own_frames_left_out(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback from the program's first frame on."""
    entry = traceback
    while entry is not None:
        if entry.tb_frame.f_code is run.__code__:
            return entry.tb_next
        entry = entry.tb_next
    # the program was not found or has not begun
    last = entry = traceback
    started = False  # a console script comes before
    while entry is not None and (not started or _is_starter(entry)):
        started = started or _is_starter(entry)
        last = entry = entry.tb_next
    return last if started else traceback


def _is_starter(entry: TracebackType) -> bool:
    return entry.tb_frame.f_code.co_filename.startswith(_STARTERS)


def show_errors_without_own_frames() -> None:
    """Have the error that is on its way out of the program shown as if Python had run the program."""
    show = sys.excepthook

    def show_error(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        shown = own_frames_left_out(traceback)
        show(kind, error.with_traceback(shown), shown)

    sys.excepthook = show_error
