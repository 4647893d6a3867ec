"""Say what changed between two recordings: what takes longer or shorter, was added, removed, renamed or moved.

Places in a step are matched by their way in the call tree, module and shapes, and compared over the steps of both runs: differences that may be
noise, and a machine that was slower everywhere, are told apart from changes. Other threads and processes are compared by what they do again and
again. Record at least twenty steps of each; --with-modules, --record-shapes and --with-stack say more precisely where.

examples:
  mindtorch diff before.profile after.profile
  mindtorch diff --fail-over 5% before.session after.session
  mindtorch diff before.profile after.profile -o diff.html
  mindtorch diff --markdown before.profile after.profile >> $GITHUB_STEP_SUMMARY
"""

from __future__ import annotations

import argparse

from .console import add_json, add_output, opened, print_json, printed, progress, terminal_width
from .frame import CommandError

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="BEFORE", help="a saved session, a folder of them, or a trace (.json, .json.gz)")
    parser.add_argument("second", metavar="AFTER", help="the same, of a later run")
    parser.add_argument(
        "--least",
        metavar="SHARE",
        type=_share,
        default=0.02,
        help="leave out changes of less than this share of a step (default: 2%%)",
    )
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="rows of a table (default: 20)")
    parser.add_argument(
        "--fail-over", metavar="SHARE", type=_share, help="exit with 1 if a step takes longer by more than this, as 5%%"
    )
    add_output(parser, what="write a page of HTML that lays both runs over each other", required=False)
    parser.add_argument("--markdown", action="store_true", help="print GitHub's Markdown")
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    from ..profiler.comparison import compare  # costly: NumPy, which help needs not

    first, second = opened(options.first).sessions, opened(options.second).sessions
    with progress("comparing"):
        found = compare(first, second, least_share=options.least)
    if options.output is not None:
        found.export_page(options.output, (options.first, options.second))
    if options.json:
        print_json(found.as_dict())
    else:
        text = (
            found.markdown(row_limit=options.limit)
            if options.markdown
            else found.table(row_limit=options.limit, width=terminal_width())
        )
        print("\n".join(printed(line) for line in text.split("\n")))
    if options.fail_over is not None and found.is_slower_by(options.fail_over):
        raise CommandError(f"a step takes {found.ratio - 1:.1%} longer, more than {options.fail_over:.1%}")


def _share(text: str) -> float:
    share = float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    if not 0 <= share < 1000:
        raise ValueError
    return share


_share.__name__ = "share, as 0.05 or 5%"  # argparse names it in its message
