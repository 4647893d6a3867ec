"""`mindtorch profile`: run a program, record it, and leave a folder with the answers."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from typing import Any

from .._launch.arguments import name_of, parse
from .console import progress
from .frame import CommandError, Parser
from .run import load_runtime

__all__ = ["main", "parser"]

NAME = "mindtorch profile"

MAX_EVENTS = 1_000_000
MAX_SECONDS = 60.0

DESCRIPTION = """\
Run a program, in which `import torch` means mindtorch_v2, and record what it does: operators, backward, optimizers, in all threads and in the
processes that it starts. The program keeps its output, errors and exit status. Then the answer is printed, and a
folder has report.html, trace.json.gz for Perfetto, summary.json and the recording itself, for `mindtorch top`, `query`, `diff` and the others."""

EPILOG = f"""\
A step ends when the optimizer that stepped first steps again. Without a schedule, everything is recorded until {MAX_EVENTS:,} events, or {MAX_SECONDS:g} seconds
after the first three steps, whichever comes first; the program then goes on unrecorded.

examples:
  mindtorch profile train.py --epochs 1
  mindtorch profile --with-stack --profile-memory train.py
  mindtorch profile --keep last --max-seconds 30 server.py
  mindtorch profile --wait 10 --warmup 2 --active 5 --repeat 1 train.py
  mindtorch profile -o before -- train.py"""


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    p = Parser(
        prog=NAME,
        usage=f"{NAME} [options] [--] script.py [arguments]\n       {NAME} [options] -m package.module [arguments]\n"
        f"       {NAME} [options] -c code [arguments]\n       {NAME} [options] - [arguments]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    record = p.add_argument_group("what to record")
    record.add_argument("--record-shapes", action="store_true", help="shapes of inputs")
    record.add_argument("--with-stack", action="store_true", help="Python functions, and where in the source operators were called")
    record.add_argument("--profile-memory", action="store_true", help="memory of tensors")
    record.add_argument("--with-modules", action="store_true", help="the module of each operator")
    record.add_argument("--with-flops", action="store_true", help="floating point operations of each operator")
    record.add_argument("--all", action="store_true", help="all of these")
    record.add_argument(
        "--include",
        metavar="PATTERN",
        action="append",
        default=[],
        help="keep operators of these names alone, as in 'aten::*conv*'; may be given again",
    )
    record.add_argument(
        "--exclude", metavar="PATTERN", action="append", default=[], help="leave out operators of these names; may be given again"
    )
    record.add_argument("--no-children", action="store_true", help="do not record the processes that the program starts")

    when = p.add_argument_group("when to record")
    when.add_argument("--wait", metavar="STEPS", type=_count, help="steps of each cycle in which nothing is done")
    when.add_argument("--warmup", metavar="STEPS", type=_count, help="steps after that in which the recorder gets ready")
    when.add_argument("--active", metavar="STEPS", type=_count, help="steps that are recorded; makes a schedule of these options")
    when.add_argument("--repeat", metavar="N", type=_count, help="cycles (default: 1; 0 for as many as there are)")
    when.add_argument(
        "--max-events",
        metavar="N",
        type=_count,
        default=MAX_EVENTS,
        help=f"end the recording after so many events, 0 for never (default: {MAX_EVENTS:,})",
    )
    when.add_argument("--max-bytes", metavar="N", type=_count, default=0, help="end it after so many bytes of records, 0 for never")
    when.add_argument(
        "--max-seconds",
        metavar="S",
        type=_seconds,
        help=f"end it after so many seconds, 0 for never (default: {MAX_SECONDS:g} after the first three steps)",
    )
    when.add_argument(
        "--keep",
        choices=("first", "last"),
        default="first",
        help="first: end the recording at these limits; last: record to the end, and keep the last events, bytes or seconds (default: first)",
    )

    results = p.add_argument_group("results")
    results.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="the folder of results (default: NAME.profile, or NAME.profile-2 and on if that is there)",
    )
    results.add_argument("--quiet", action="store_true", help="print nothing of its own")
    results.add_argument("--json", action="store_true", help="print the summary as JSON, in the last line")
    return p


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


_count.__name__ = "number"  # argparse names it in its message


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds >= 0:
        raise ValueError
    return seconds


_seconds.__name__ = "number of seconds"

FLAGS = ("record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops")


def main(arguments: Sequence[str]) -> None:
    """Run the program that the arguments name; returns when it has ended well, and raises what it raised."""
    p = parser()
    options, request = parse(p, arguments)
    cycle = _cycle(p, options)
    if options.keep == "last" and not (options.max_events or options.max_bytes or options.max_seconds):
        p.error("--keep last needs to know how much: give --max-events, --max-bytes or --max-seconds")
    load_runtime()
    from ..profiler.whole_program.children import Plan  # costly: the runtime, which help needs not
    from ..profiler.whole_program.folder import Folder, default_folder  # costly: the same
    from ..profiler.whole_program.folder_run import FolderRun  # costly: the same
    from ..profiler.whole_program.launching import run_recorded  # costly: the same

    try:
        folder = Folder(options.output or default_folder(name_of(request)))
        folder.make()
    except OSError as error:
        raise CommandError(f"cannot write to {options.output or 'the current folder'!r}: {error.strerror or error}", 2) from None
    plan = Plan(
        folder=str(folder.path),
        flags={flag: options.all or getattr(options, flag) for flag in FLAGS},
        cycle=cycle,
        time_limit=_time_limit(options),
        bounds=_bounds(options),
    )
    recording = FolderRun(
        plan,
        folder,
        follow_children=not options.no_children,
        quiet=options.quiet,
        as_json=options.json,
        progress=functools.partial(progress, stream=sys.stderr),  # the program may put another in its place
    )
    run_recorded(recording, request)


def _time_limit(options: argparse.Namespace) -> dict[str, float | bool | None]:
    """The arguments of `TimeLimit`. A recording whose last events are kept does not end."""
    if options.keep == "last":
        return {}
    seconds = MAX_SECONDS if options.max_seconds is None else options.max_seconds
    return {"seconds": seconds or None, "from_start": options.max_seconds is not None}


def _bounds(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `Bounds`."""
    bounds = {name: getattr(options, name) or None for name in ("max_events", "max_bytes")}
    bounds |= {"include": options.include, "exclude": options.exclude, "keep": options.keep}
    return bounds | {"last_seconds": options.max_seconds or None} if options.keep == "last" else bounds


def _cycle(p: argparse.ArgumentParser, options: argparse.Namespace) -> dict[str, int] | None:
    """The arguments of the schedule that the options ask for; None if they ask for none."""
    given = {name: getattr(options, name) for name in ("wait", "warmup", "active", "repeat") if getattr(options, name) is not None}
    if not given:
        return None
    if not given.get("active"):
        p.error(f"{', '.join(f'--{name}' for name in given)}: a schedule needs --active, the number of steps to record")
    return {"wait": 0, "warmup": 1 if given.get("wait") else 0, "repeat": 1} | given
