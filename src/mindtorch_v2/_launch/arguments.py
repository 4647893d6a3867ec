"""The arguments of commands that run a program: options, then the program, then what belongs to it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from . import program
from .program import Request

__all__ = ["name_of", "parse"]


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
