"""Write the recording as a trace for Perfetto and chrome://tracing.

The processes of a folder are in one file, on one time base. The file is compressed if its name ends in .gz.

examples:
  mindtorch trace run.session -o trace.json.gz
  mindtorch trace train.profile -o all.json --process 4711
"""

from __future__ import annotations

import argparse
import os

from .console import add_file, add_json, add_output, opened, print_json, progress
from .top import add_process, chosen

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_output(parser, what="the file to write, compressed if it ends in .gz")
    add_process(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    from ..profiler.output import chrome_trace  # costly: NumPy, which help needs not

    sessions = chosen(opened(options.file).sessions, options.process)
    with progress(f"writing {options.output}") as report:
        chrome_trace.write(sessions, options.output, progress=report)
    events, size = sum(map(len, sessions)), os.path.getsize(options.output)
    if options.json:
        print_json({"output": options.output, "bytes": size, "events": events, "processes": [s.info.pid for s in sessions]})
    else:
        print(f"{options.output}: {events:,} events, {size:,} bytes; open it at https://ui.perfetto.dev")
