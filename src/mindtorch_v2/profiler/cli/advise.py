"""`python -m mindtorch_v2.profiler advise`: the command `mindtorch advise`, under the name that it has here."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ...cli import advise as command

__all__ = ["main"]

NAME = "python -m mindtorch_v2.profiler advise"


def main(arguments: Sequence[str]) -> None:
    """Print the advice about the recording that the arguments name."""
    summary = command.__doc__.partition("\n")[0] if command.__doc__ else None
    parser = argparse.ArgumentParser(prog=NAME, description=summary, allow_abbrev=False)
    command.add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        command.run(options)
    except (OSError, ValueError) as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        raise SystemExit(1) from None
