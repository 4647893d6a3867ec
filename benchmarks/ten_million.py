"""Ten million events, recorded, averaged and exported: `python -m benchmarks.ten_million [count]`. Prints times and the largest memory."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time

import mindtorch_v2 as torch


def main(count: int) -> None:
    x = torch.ones(2, 2)
    began = time.perf_counter()

    def report(what: str) -> None:
        nonlocal began
        now, peak = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{what:32s} {now - began:8.1f} s   largest memory so far {peak:6.2f} GB", flush=True)
        began = now

    with torch.profiler.profile() as prof:
        for _ in range(count):
            x + x
        report(f"recording {count:,} events")
    report("stopping")
    print(prof.key_averages().table())
    report("averaging")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json.gz")
        prof.export_chrome_trace(path)
        report(f"exporting {os.path.getsize(path) / 2**20:,.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
