"""The command that says what could be faster in a saved recording."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from ..advice import advise
from ..whole_program.outputs import print_to

__all__ = ["main", "parser"]

NAME = "python -m mindtorch_v2.profiler advise"


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    p = argparse.ArgumentParser(
        prog=NAME, description="Say what could be faster in a recording, and by how much at a guess.", allow_abbrev=False
    )
    p.add_argument("session", help="a file that --session or Session.save wrote")
    p.add_argument(
        "--min-share",
        metavar="SHARE",
        type=_share,
        default=0.01,
        help="leave out what gains less of the recorded time (default: 0.01)",
    )
    p.add_argument(
        "--max-evidence", metavar="N", type=int, default=3, help="lines of evidence for each finding, -1 for all (default: 3)"
    )
    p.add_argument("--json", action="store_true", help="print JSON")
    return p


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError
    return share


_share.__name__ = "share between 0 and 1"  # argparse names it in its message


def main(arguments: Sequence[str]) -> None:
    """Print the advice about the session that the arguments name."""
    options = parser().parse_args(arguments)
    try:
        found = advise(options.session, min_share=options.min_share)
    except (OSError, ValueError) as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    text = json.dumps(found.as_dict(), indent=2) if options.json else found.table(max_evidence=options.max_evidence)
    print_to(sys.stdout, f"{text}\n")
