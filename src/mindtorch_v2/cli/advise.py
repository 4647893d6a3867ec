"""Say what could be faster in a recording, and by how much at a guess.

examples:
  mindtorch advise run.session
  mindtorch advise --min-share 0.05 --max-evidence -1 trace.json.gz
  mindtorch advise --json run.session
"""

from __future__ import annotations

import argparse
import shlex

from .console import add_file, add_json, opened, option_of, print_json, printed, progress, terminal_width

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument(
        "--min-share",
        metavar="SHARE",
        type=_share,
        default=0.01,
        help="leave out what gains less of the recorded time (default: 0.01)",
    )
    parser.add_argument(
        "--max-evidence", metavar="N", type=int, default=3, help="lines of evidence for each finding, -1 for all (default: 3)"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    from ..profiler.advice import advise  # costly: NumPy, which help needs not

    session = opened(options.file).session
    with progress("looking for what could be faster"):
        found = advise(session, min_share=options.min_share)
    if options.json:
        print_json(found.as_dict())
    else:
        print(
            "\n".join(printed(line) for line in found.table(max_evidence=options.max_evidence, width=terminal_width()).split("\n"))
        )
        flags = sorted({flag for missed in found.not_checked for flag in missed.needs})
        if flags and session.info.command:
            print(f"\nTo have it checked: mindtorch profile {' '.join(map(option_of, flags))} {shlex.join(session.info.command)}")


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError
    return share


_share.__name__ = "share between 0 and 1"  # argparse names it in its message
