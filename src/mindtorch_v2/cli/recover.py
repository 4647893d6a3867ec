"""Save what a spool holds of a recording that was killed or crashed, and say where and why it ends.

examples:
  mindtorch recover run.spool
  mindtorch recover run.spool -o run.session --keep last --max-events 1000000
  mindtorch recover run.spool --last
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from .console import add_json, print_json, printed, progress
from .frame import CommandError
from .texts import time

if TYPE_CHECKING:
    from ..profiler.spool.reader import LastOfThread, Spooled

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a spool, or the folder of a program that `mindtorch profile` ran")
    parser.add_argument("-o", "--output", metavar="OUT", help="the session to write (default: FILE with the ending .session)")
    parser.add_argument("--last", action="store_true", help="write nothing, and show what each thread did last")
    parser.add_argument("--max-events", metavar="N", type=int, help="keep so many events (default: as many as memory allows)")
    parser.add_argument("--keep", choices=("first", "last"), default="first", help="which of them (default: first)")
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    from ..profiler.bounds import Bounds  # costly: NumPy, which help needs not
    from ..profiler.spool.reader import read_spool  # costly: the runtime

    path = os.path.join(options.file, "run.spool") if os.path.isdir(options.file) else options.file
    saved = os.path.splitext(path)[0] + ".session"
    if path != options.file and not os.path.exists(path) and os.path.exists(saved):
        raise CommandError(f"{options.file} has nothing to recover: its recording was saved whole, as {saved}")
    with progress(f"reading {os.path.basename(path)}"):
        spooled = read_spool(path, Bounds(max_events=options.max_events, keep=options.keep))
    facts: dict[str, Any] = {
        "file": path,
        "events": len(spooled.session),
        "dropped": dict(spooled.session.info.dropped),
        "is_complete": spooled.is_complete,
        "ended": spooled.session.info.ended or "the recording was stopped",
        "fault": spooled.fault,
    }
    if options.last:
        facts |= {"looked_before_ns": spooled.looked_before_ns, "threads": [_facts(last) for last in spooled.threads]}
    else:
        facts["output"] = options.output or os.path.splitext(path)[0] + ".session"
        with progress(f"writing {os.path.basename(facts['output'])}"):
            spooled.session.save(facts["output"])
    if options.json:
        print_json(facts)
        return
    print(printed(f"{path}: {facts['events']:,} events; {facts['ended']}"))
    if options.last:
        _print_last(spooled)
    else:
        print(printed(f"saved as {facts['output']}"))


def _facts(last: LastOfThread) -> dict[str, Any]:
    return {
        "name": last.name,
        "thread_id": last.thread_id,
        "operators": [{"name": name, "before_ns": before} for name, before in last.operators],
        "scopes": list(last.scopes),
        "places": [list(place) for place in last.places],
    }


def _print_last(spooled: Spooled) -> None:
    for last in spooled.threads:
        print(f"\n{printed(f'thread {last.name} ({last.thread_id})')}")
        for name, before_ns in last.operators:
            print(printed(f"  {time(before_ns)} before the end: {name} ended"))
        if last.scopes:
            print(printed(f"  open {time(spooled.looked_before_ns)} before the end: {' > '.join(last.scopes)}"))
        for place in last.places:
            print(printed(f"  at {place.file}:{place.line} in {place.function}"))
    if spooled.fault:
        print(f"\n{chr(10).join(map(printed, spooled.fault.splitlines()))}")
