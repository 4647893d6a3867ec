"""Check that a trace keeps what its format promises.

Prints one line for each rule that is broken, with how many rows break it, and exits with 1 if there are any. A saved session is checked
as it is loaded.

examples:
  mindtorch validate trace.json.gz
  mindtorch validate train.profile
  mindtorch validate --json trace.json
"""

from __future__ import annotations

import argparse
import os
import zipfile

from .console import add_file, add_json, opened, print_json, printed, progress
from .frame import CommandError

__all__ = ["add_arguments", "run"]

TRACE = "trace.json.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    from ..profiler.output.trace_check import validate  # costly: NumPy, which help needs not

    file = options.file
    if os.path.isfile(trace := os.path.join(file, TRACE)):  # in a folder that `mindtorch profile` left
        file = trace
    with open(file, "rb"):  # another folder or a missing file is told as such
        pass
    if zipfile.is_zipfile(file):
        opened(file)
        problems = []
    else:
        with progress("checking"):
            problems = validate(file)
    if options.json:
        facts = [{"rule": p.rule, "message": p.message, "count": p.count} for p in problems]
        print_json({"file": file, "is_valid": not problems, "problems": facts})
    else:
        print("\n".join(printed(problem) for problem in problems) or f"{file} keeps what its format promises.")
    if problems:
        rules = "rule is" if len(problems) == 1 else "rules are"
        raise CommandError(f"{len(problems)} {rules} broken in {file}")
