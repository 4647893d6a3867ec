"""The command line. Each command is a module with a function that takes its arguments; what names no command is a program to run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from . import advise, run

__all__ = ["COMMANDS", "main"]

COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {"advise": advise.main, "run": run.main}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; without the name of one, `run`. A program that is called like a command is reached by `./run`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name, rest = (given[0], given[1:]) if given and given[0] in COMMANDS else ("run", given)
    COMMANDS[name](rest)
