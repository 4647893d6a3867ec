"""Run a program and record all that it does."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from ..._launch.arguments import name_of, parse
from ..bounds import Bounds
from ..options import Options
from ..whole_program.launching import fail, run_recorded
from ..whole_program.outputs import UnwritableError, check_files
from .printed_run import PrintedRun

__all__ = ["main", "parser"]

NAME = "python -m mindtorch_v2.profiler"

SORT_KEYS = (
    "self_cpu_time_total",
    "cpu_time_total",
    "cpu_time",
    "count",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "flops",
    "self_device_time_total",
    "device_time_total",
    "device_time",
)

DESCRIPTION = """\
Run a program, in which `import torch` means this package, and record every operator, backward node, optimizer step and record_function scope of it, on all threads.
After the program's own output come a table of where the time went and the trace, for Perfetto and others. The program
sees nothing of this: its arguments, exit status, errors and exit handlers are what they are without."""

EPILOG = """\
examples:
  python -m mindtorch_v2.profiler train.py --epochs 1
  python -m mindtorch_v2.profiler --record-shapes --row-limit 50 --trace run.pt.trace.json.gz train.py
  python -m mindtorch_v2.profiler --with-stack --no-trace --session run.session -m package.train
  python -m mindtorch_v2.profiler --advice --record-shapes --with-stack train.py
  python -m mindtorch_v2.profiler advise run.session"""


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    p = argparse.ArgumentParser(
        prog=NAME,
        usage=f"{NAME} [options] [--] script.py [arguments]\n       {NAME} [options] -m package.module [arguments]\n"
        f"       {NAME} [options] -c code [arguments]\n       {NAME} [options] - [arguments]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    p.add_argument("-m", metavar="module", help="the program is a module, as in python -m")
    p.add_argument("-c", metavar="code", help="the program is this code, as in python -c")
    p.add_argument(
        "program",
        metavar="script.py",
        nargs="?",
        help="the program: a file, a directory or zip file with a __main__.py, or - for standard input",
    )
    p.add_argument("arguments", nargs="*", help="for the program, whatever they are")

    record = p.add_argument_group("what to record")
    record.add_argument("--record-shapes", action="store_true", help="shapes of inputs; the table has a row for each combination")
    record.add_argument("--with-stack", action="store_true", help="Python functions, and where in the source operators were called")
    record.add_argument("--profile-memory", action="store_true", help="bytes of live tensors before and after each operator")
    record.add_argument("--with-modules", action="store_true", help="the module of each operator; a second table has their times")
    record.add_argument("--with-flops", action="store_true", help="floating point operations of each operator")

    table = p.add_argument_group("the table")
    table.add_argument(
        "--sort-by",
        metavar="KEY",
        choices=SORT_KEYS,
        default=SORT_KEYS[0],
        help=f"one of {', '.join(SORT_KEYS)}; the first by default",
    )
    table.add_argument("--row-limit", metavar="N", type=_row_limit, default=20, help="rows to show, -1 for all (default: 20)")
    table.add_argument(
        "--table", metavar="WHERE", default="stdout", help="stdout (the default), stderr, none, or a file to write the table to"
    )

    table.add_argument(
        "--advice",
        action="store_true",
        help="what could be faster, after the table; finds more with --record-shapes and says where with --with-stack",
    )

    files = p.add_argument_group("files")
    trace = files.add_mutually_exclusive_group()
    trace.add_argument(
        "--trace", metavar="PATH", help="write the trace here, compressed if it ends in .gz (default: NAME.pt.trace.json)"
    )
    trace.add_argument("--no-trace", action="store_true", help="write no trace")
    files.add_argument("--session", metavar="PATH", help="save the recording here, for Session.load")
    return p


def _row_limit(text: str) -> int:
    number = int(text)
    if number < -1:
        raise ValueError
    return number


_row_limit.__name__ = "number of rows"  # argparse names it in its message


def main(arguments: Sequence[str]) -> None:
    """Run the program that the arguments name; returns when it has ended well, and raises what it raised."""
    options, request = parse(parser(), arguments)
    # `train.pt.trace.json` has the ending that TensorBoard looks for
    trace = None if options.no_trace else options.trace or f"{name_of(request)}.pt.trace.json"
    files = {"--trace": trace, "--session": options.session}
    if options.table not in ("stdout", "stderr", "none"):
        files["--table"] = options.table
    try:
        check_files({option: path for option, path in files.items() if path is not None})
    except UnwritableError as error:
        hint = "" if options.trace or "--trace" not in str(error) else "; choose a place with --trace PATH, or give --no-trace"
        fail(NAME, f"{error}{hint}", 2)
    run_recorded(_recording(options, trace, _spool(name_of(request))), request)


def _spool(name: str) -> str | None:
    """The file that a recording is written to while it goes on, in the current folder; None if that takes no files."""
    return f"{name}-{os.getpid()}.spool" if os.access(os.curdir, os.W_OK) else None


def _recording(options: argparse.Namespace, trace: str | None, spool: str | None) -> PrintedRun:
    return PrintedRun(
        Options(
            record_shapes=options.record_shapes,
            with_stack=options.with_stack,
            profile_memory=options.profile_memory,
            with_modules=options.with_modules,
            with_flops=options.with_flops,
            acc_events=True,
            bounds=Bounds(spool=spool),
        ),
        sort_by=options.sort_by,
        row_limit=options.row_limit,
        table=options.table,
        advice=options.advice,
        trace=trace,
        session=options.session,
    )
