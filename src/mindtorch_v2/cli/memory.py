"""Show what memory was used for: the peak, who made it, and a timeline.

The recording needs memory (profile_memory=True). With shapes and stacks as well, a timeline by category (parameters, gradients,
activations, …) can be written: OUT.html is a page, OUT.json the numbers.

examples:
  mindtorch memory run.session
  mindtorch memory run.session -o memory.html
  mindtorch memory trace.json.gz --json
"""

from __future__ import annotations

import argparse

from .console import Heading, add_file, add_json, add_output, no_memory, opened, print_json, print_table, progress
from .frame import CommandError
from .texts import share, size, time

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_output(parser, what="write the timeline by category here, .html or .json (or .json.gz)", required=False)
    parser.add_argument("--limit", metavar="N", type=int, default=10, help="owners to show, -1 for all (default: 10)")
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    from ..profiler.model.peak_memory import PeakMemory  # costly: NumPy, which help needs not

    session = opened(options.file).session
    with progress("looking for the peak"):
        peak = PeakMemory.of(session)
    if peak is None:
        raise CommandError(no_memory(options.file))
    if options.output:
        with progress(f"writing {options.output}"):
            _write_timeline(session, options.output)
    shown = peak.owners if options.limit < 0 else peak.owners[: options.limit]
    if options.json:
        owners = [{"operator": o.operator, "size_bytes": o.size_bytes, "count": o.count, "source": o.source} for o in shown]
        facts = {
            "peak_bytes": peak.peak_bytes,
            "peak_ns": peak.peak_ns,
            "before_bytes": peak.before_bytes,
            "end_bytes": peak.end_bytes,
        }
        print_json({"file": options.file, **facts, "made_bytes": peak.made_bytes, "made_count": peak.made_count, "owners": owners})
        return
    print(
        f"Peak: {size(peak.peak_bytes)}, {time(peak.peak_ns)} after the start; at the end {size(peak.end_bytes)}. "
        f"Made in the recording: {size(peak.made_bytes)} in {peak.made_count:,} storages."
    )
    print()
    headings = [
        Heading("at the peak"),
        Heading("%"),
        Heading("storages"),
        Heading("operator", is_text=True),
        Heading("source", is_text=True),
    ]
    rows = [[size(o.size_bytes), share(o.size_bytes, peak.peak_bytes), f"{o.count:,}", o.operator, o.source] for o in shown]
    print_table(headings, rows, notes=[f"timeline: {options.output}"] if options.output else [])


def _write_timeline(session: object, path: str) -> None:
    from ..profiler.results import Results  # costly: the runtime

    Results(session).export_memory_timeline(path)  # type: ignore[arg-type]
