"""Running a program under a recording, as the command lines do."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from ..._launch import program
from ..._launch.children import answer_torch
from ..._launch.program import Request
from .whole_run import WholeRun

__all__ = ["fail", "name_of", "parse", "run_recorded"]


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> tuple[argparse.Namespace, Request]:
    """The options, and the program with its arguments. What stands behind the program is left as it is: argparse would take `--` from it."""
    with_value = {name for name, action in parser._option_string_actions.items() if action.nargs is None}
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and not _starts_program(arguments[at]):
        at += 2 if arguments[at] in with_value else 1
    options = parser.parse_args(arguments[:at])
    request = program.requested(list(arguments[at:]))
    if request is None:
        parser.error("the following arguments are required: script.py, or -m and a module")
    return options, request


def _starts_program(argument: str) -> bool:
    return argument in ("-", "--") or argument.startswith(("-m", "-c"))


def name_of(request: Request) -> str:
    """A name for the files of a program: `train` for `train.py`."""
    if request.form == "module":
        return request.name
    if request.form in ("code", "stdin"):
        return {"code": "command", "stdin": "stdin"}[request.form]
    return os.path.splitext(os.path.basename(os.path.abspath(request.name)))[0]


def run_recorded(recording: WholeRun, request: Request) -> None:
    """Run the program; returns when it has ended well, and raises what it raised. The results are made when the process ends."""
    try:
        try:
            script = None if request.form == "module" else program.find(request)
            answer_torch()
            recording.start()
            # the packages around a module are imported to find it, and are part of the program
            script = script or program.find(request)
            recording.code = script.code
            program.run(script, request.arguments)
        finally:
            # here and not in a function, which a signal's handler could interrupt before it has begun
            while not recording.signals.is_guarded:
                try:
                    recording.signals.guard()
                except KeyboardInterrupt:
                    recording.signals.count()
    except program.CannotRunError as error:
        recording.abandon()
        fail(recording.command, str(error), error.status)
    except SystemExit as end:
        recording.failed = end.code not in (None, 0)
        raise
    except BaseException:
        recording.failed = True
        program.show_errors_without_own_frames()
        raise


def fail(command: str, reason: str, status: int) -> NoReturn:
    """End the command with a sentence about what is wrong."""
    print(f"{command}: {reason}", file=sys.stderr)
    raise SystemExit(status)
