"""How long a program waits for the handler of its recording that runs beside it: `python -m benchmarks.pauses [events]`.

A thread that calls small operators is asked, at each of them, how much processor time the handler's thread took since the last: as long as that thread
holds the interpreter, nobody else runs. Processor time, so that other programs of the machine do not count.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerAction, profile

EVENTS = 1_000_000


def handlers(folder: str) -> dict[str, Callable[[Any], object]]:
    """What handlers do, by its name."""
    return {
        "table": lambda prof: prof.key_averages().table(),
        "trace": lambda prof: prof.export_chrome_trace(os.path.join(folder, "trace.json")),
        "trace, compressed": lambda prof: prof.export_chrome_trace(os.path.join(folder, "trace.json.gz")),
        "session file": lambda prof: prof.session.save(os.path.join(folder, "run.session")),
        "report": lambda prof: prof.export_report(os.path.join(folder, "report.html")),
        "events()": lambda prof: prof.events(),
    }


def first_step_only(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD_AND_SAVE if step == 0 else ProfilerAction.NONE


def measure(name: str, handler: Callable[[Any], object], count: int) -> None:
    x, ident, done = torch.ones(2), list[int](), list[bool]()
    may_begin, may_end = threading.Event(), threading.Event()

    def handle(prof: Any) -> None:
        ident.append(threading.get_ident())
        may_begin.wait()
        try:
            handler(prof)
        finally:
            done.append(True)
            may_end.wait()  # the clock of a thread ends with it

    with profile(schedule=first_step_only, on_trace_ready=handle, background=True) as prof:
        for _ in range(count):
            x + x
        began = time.thread_time()
        prof.step()
        step = time.thread_time() - began
        while not ident:
            time.sleep(0.001)
        clock = time.pthread_getcpuclockid(ident[0])
        may_begin.set()
        first = last = time.clock_gettime(clock)
        longest = 0.0
        while not done:
            x + x
            now = time.clock_gettime(clock)
            longest, last = max(longest, now - last), now
        may_end.set()
    print(
        f"{name:20s} step {step * 1e3:5.0f} ms   longest pause {longest * 1e3:5.1f} ms   handler {last - first:5.1f} s", flush=True
    )


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, handler in handlers(folder).items():
            measure(name, handler, count)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS)
