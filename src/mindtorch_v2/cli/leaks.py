"""Show the memory that was made in the recording and not freed.

A row for each place that made it; what grows from step to step is marked. The recording needs memory (profile_memory=True), and stacks for the
source of each.

examples:
  mindtorch leaks run.session
  mindtorch leaks run.session --stack 3 --json
"""

from __future__ import annotations

import argparse

from .console import Heading, add_file, add_json, no_memory, opened, print_json, print_table, progress
from .frame import CommandError
from .texts import size

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument("--stack", metavar="N", type=int, help="frames that tell places apart, the innermost (default: all)")
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="rows to show, -1 for all (default: 20)")
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    from ..profiler.model.leaks import Leaks  # costly: NumPy, which help needs not
    from ..profiler.model.places import RUNTIME  # costly: NumPy

    session = opened(options.file).session
    if not session.info.profile_memory:
        raise CommandError(no_memory(options.file))
    with progress("looking for what is left"):
        found = Leaks.of(session, options.stack)
    shown = found if options.limit < 0 else found[: options.limit]
    if options.json:
        rows = [
            {
                "size_bytes": r.size_bytes,
                "count": r.count,
                "grows": r.grows,
                "bytes_per_step": r.bytes_per_step,
                "operator": r.operator,
            }
            | {"module": r.module, "role": r.role, "stack": list(r.stack)}
            for r in shown
        ]
        print_json({"file": options.file, "total_bytes": found.total_bytes, "total_count": found.total_count, "rows": rows})
        return
    if not found.total_count:
        print("Nothing that was made in the recording is alive at its end.")
        return
    headings = [
        Heading("bytes"),
        Heading("count"),
        Heading("growth"),
        Heading("role", left_out=2),
        Heading("operator", is_text=True),
    ]
    headings += [Heading("module", is_text=True, left_out=1), Heading("source", is_text=True)]
    cells = [
        [size(r.size_bytes), f"{r.count:,}", f"{size(round(r.bytes_per_step))}/step" if r.grows else "", r.role]
        + [
            r.operator or "(no operator)",
            r.module,
            next((line for line in r.stack if not line.startswith(RUNTIME)), *r.stack[:1] or [""]),
        ]
        for r in shown
    ]
    notes = [f"Alive at the end: {size(found.total_bytes)} in {found.total_count:,} storages"]
    print_table(headings, cells, notes=notes)
