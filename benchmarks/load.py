"""Many threads, tasks and events in one recording: `python -m benchmarks.load`. Prints processor time for each event, which must not grow with their number."""

from __future__ import annotations

import asyncio
import resource
import threading
import time
from collections.abc import Callable

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function

THREADS = (1, 8, 64)
TASKS = (100, 1_000, 10_000)
EVENTS = (100_000, 1_000_000)
OPERATORS = 64_000  # of all threads together


def on_threads(count: int) -> None:
    def work() -> None:
        x = torch.ones(2)
        for _ in range(OPERATORS // count):
            x + x

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def in_tasks(count: int) -> None:
    x = torch.ones(2)

    async def work() -> None:
        with record_function("task"):
            x + x
            await asyncio.sleep(0)
            x + x

    async def main() -> None:
        await asyncio.gather(*(work() for _ in range(count)))

    asyncio.run(main())


def in_a_row(count: int) -> None:
    x = torch.ones(2)
    for _ in range(count):
        x + x


def measure(what: str, work: Callable[[int], None], count: int) -> None:
    began = time.process_time()
    with profile() as prof:
        work(count)
    recorded = time.process_time()
    rows = prof.key_averages()
    events = len(prof.session)
    assert events == sum(row.count for row in rows)
    ended = time.process_time()
    tracks, peak = len(prof.session.tracks), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{count:9,d} {what:8s} {events:9,d} events on {tracks:6,d} tracks   recording {(recorded - began) / events * 1e6:6.2f} us an event"
        f"   averaging {(ended - recorded) / events * 1e6:5.2f} us   largest memory {peak:5.2f} GB",
        flush=True,
    )


def main() -> None:
    in_a_row(1000)
    for what, work, counts in (("threads", on_threads, THREADS), ("tasks", in_tasks, TASKS), ("calls", in_a_row, EVENTS)):
        for count in counts:
            measure(what, work, count)


if __name__ == "__main__":
    main()
