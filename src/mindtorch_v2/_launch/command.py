"""`mindtorch run`: a program, unchanged, with this package as its torch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from . import program
from .children import answer_torch
from .finder import API_VERSION

__all__ = ["main"]

HELP = """\
usage: mindtorch profile script.py [arguments]
       mindtorch run script.py [arguments]
       mindtorch run -m package.module [arguments]
       mindtorch run -c code [arguments]
       mindtorch run - [arguments]
       mindtorch --version

Run a program in which `import torch` means mindtorch_v2, here and in every Python process that the program starts in this environment.
The program is otherwise run as Python runs it: a file, a directory or zip file with a __main__.py, a module (-m), code (-c)
or standard input (-). What follows it belongs to it.

`profile` records what the program does, and leaves a folder with a report; `mindtorch profile --help` has its options.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name; raises what the program raises."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--version"]:
        print(f"mindtorch_v2, with the API of PyTorch {API_VERSION}")
    elif given[:1] in (["-h"], ["--help"]) or given[:2] in (["run", "-h"], ["run", "--help"]):
        print(HELP, end="")
    elif given[:1] == ["profile"]:
        from ..cli.profile import main as profile_main  # costly: imports the runtime

        profile_main(given[1:])
    elif given[:1] != ["run"]:
        _wrong(f"unknown command {given[0]!r}" if given else "a command is missing")
    else:
        _run(given[1:])


def _run(arguments: list[str]) -> None:
    request = program.requested(arguments)
    if request is None:
        _wrong(
            f"unknown option {arguments[0]!r}" if arguments and arguments[0] not in ("-m", "-c", "--") else "a program is missing"
        )
    answer_torch()
    try:
        program.run(program.find(request), request.arguments)
    except program.CannotRunError as error:
        print(f"mindtorch run: {error}", file=sys.stderr)
        raise SystemExit(error.status) from None
    except SystemExit:
        raise
    except BaseException:
        program.show_errors_without_own_frames()
        raise


def _wrong(reason: str) -> NoReturn:
    print(f"{HELP}\nmindtorch: {reason}", file=sys.stderr)
    raise SystemExit(2)
