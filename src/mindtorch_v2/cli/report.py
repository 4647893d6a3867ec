"""Write a recording as one HTML page: where the time went, timeline, flame graphs, memory.

The page needs nothing but a browser. It shows all processes of the recording on one time base.

examples:
  mindtorch report run.session -o report.html
  mindtorch report trace.json.gz -o report.html      a trace of torch, from any machine
"""

from __future__ import annotations

import argparse
import os

from .console import add_file, add_json, add_output, opened, print_json, progress

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_output(parser, what="the page to write, such as report.html")
    parser.add_argument(
        "--title", metavar="TEXT", help="of the page; by default the name of the program, or of a trace that has none"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    from ..profiler.output import report  # costly: NumPy, which help needs not

    sessions = opened(options.file).sessions
    command = sessions[0].info.command
    title = options.title or (None if command and command[0] else os.path.basename(os.path.abspath(options.file)))
    with progress(f"writing {os.path.basename(options.output)}") as told:
        report.write(sessions, options.output, title=title, progress=told)
    size = os.path.getsize(options.output)
    events = sum(map(len, sessions))
    if options.json:
        print_json({"file": options.output, "bytes": size, "processes": len(sessions), "events": events})
    else:
        print(f"{options.output}: {events:,} events, {size / 1e6:.1f} MB")
