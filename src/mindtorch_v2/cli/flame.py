"""Write a flame graph: for speedscope, as folded stacks, or as a picture.

The format goes by the name of the file: .svg is a picture that any browser opens, .speedscope.json is for https://speedscope.app, and .folded
or .txt has a line for each stack, for flamegraph.pl and others. Without --by, it has threads, Python functions where they were recorded
(with_stack=True), and operators. The ways of --by are those of the report:

  operators  scopes and operators, as they call each other
  calls      Python functions with the operators that they call
  stack      lines of the stacks, below them the operators called there
  module     modules, below them their operators

examples:
  mindtorch flame run.session -o flame.svg
  mindtorch flame trace.json.gz -o run.speedscope.json
  mindtorch flame run.session -o backward.svg --by module --phase backward
  mindtorch flame run.session --format folded -o - | flamegraph.pl > flame.svg
"""

from __future__ import annotations

import argparse
import os
import sys

from .console import add_file, add_json, add_output, opened, print_json, progress
from .frame import UsageError
from .top import add_process, chosen

__all__ = ["add_arguments", "run"]

FORMATS = ("speedscope", "folded", "svg")
WAYS, PHASES = ("operators", "calls", "stack", "module"), ("both", "forward", "backward")
ENDINGS = {".svg": "svg", ".json": "speedscope", ".folded": "folded", ".txt": "folded"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_output(parser, what="the file to write, - for standard output")
    parser.add_argument("--format", metavar="FORMAT", choices=FORMATS, help=f"{', '.join(FORMATS)} (default: by the name of OUT)")
    parser.add_argument("--by", metavar="WAY", choices=WAYS, help=f"{', '.join(WAYS)}")
    parser.add_argument("--phase", metavar="PHASE", choices=PHASES, default="both", help=f"{', '.join(PHASES)} (default: both)")
    add_process(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    form = options.format or ENDINGS.get(os.path.splitext(options.output)[1])
    if form is None:
        raise UsageError(f"{options.output!r} has no ending that says its format; give --format, one of {', '.join(FORMATS)}")
    from ..profiler.output import flame  # costly: NumPy, which help needs not
    from ..profiler.writing.atomic_file import write_text  # costly: the same

    sessions = chosen(opened(options.file).sessions, options.process)
    title = os.path.basename(options.file.rstrip(os.sep))
    with progress("drawing"):
        if options.by is None and options.phase == "both":
            trees = [flame.FlameTree.of(session) for session in sessions]
        else:
            trees = [flame.FlameTree.merged(session, options.by or "operators", options.phase) for session in sessions]
        text = {
            "svg": lambda: flame.svg(trees, title),
            "speedscope": lambda: flame.speedscope_text(trees, title),
            "folded": lambda: "".join(flame.folded(trees)),
        }[form]()
    if options.output == "-":
        sys.stdout.write(text)
        return
    write_text(options.output, text)
    facts = {
        "output": options.output,
        "format": form,
        "time_ns": sum(tree.total_ns for tree in trees),
        "nodes": sum(len(t.nodes) for t in trees),
    }
    if options.json:
        print_json(facts)
    else:
        print(f"{options.output}: {facts['nodes']:,} places")
