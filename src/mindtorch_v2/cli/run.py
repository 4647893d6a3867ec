"""Run a program in which `import torch` means mindtorch_v2.

This holds here and in every Python process that the program starts in this environment. The program is otherwise run as Python runs it: a
file, a directory or zip file with a __main__.py, a module (-m), code (-c) or standard input (-). What follows it belongs to it.

examples:
  mindtorch run train.py --epochs 1
  mindtorch run -m package.train
  mindtorch run -c 'import torch; print(torch.ones(2))'
  mindtorch run - < train.py
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence

from .._launch import program
from .._launch.children import answer_torch
from .._launch.finder import PACKAGE
from .frame import CommandError, Parser, UsageError, described, near

__all__ = ["load_runtime", "main", "parser"]


def parser() -> argparse.ArgumentParser:
    """The form of the arguments, for help."""
    usage = (
        "mindtorch run script.py [arguments]\n       mindtorch run -m package.module [arguments]\n"
        "       mindtorch run -c code [arguments]\n       mindtorch run - [arguments]"
    )
    return Parser(prog="mindtorch run", usage=usage, allow_abbrev=False, **described(__doc__ or ""))


def main(arguments: Sequence[str]) -> None:
    """Run the program; raises what it raises."""
    given = list(arguments)
    if given[:1] in (["-h"], ["--help"]):
        parser().print_help()
        return
    request = program.requested(given)
    if request is None:
        known = not given or given[0] in ("-m", "-c", "--")
        names = [option for action in parser()._actions for option in action.option_strings]
        reason = "a program is missing" if known else f"unknown option {given[0]!r}{near(given[0], names)}"
        raise UsageError(f"{reason}; `mindtorch run --help` tells how to name a program")
    load_runtime()
    answer_torch()
    try:
        program.run(program.find(request), request.arguments)
    except program.CannotRunError as error:
        raise CommandError(str(error), error.status) from None
    except SystemExit:
        raise
    except BaseException:
        program.show_errors_without_own_frames()
        raise


def load_runtime() -> None:
    """Import the package in full, which the front door puts off."""
    _ = importlib.import_module(PACKAGE).__version__
