"""Writes a trace as a machine with a GPU would: a training loop that reads its loss after every step, so that the GPU waits for the host.

python examples/tutorials/gpu_trace.py gpu.json.gz
mindtorch device gpu.json.gz
"""

import gzip
import json
import sys
from typing import Any

STEPS, KERNELS = 20, 12
KERNEL_US, LAUNCH_US, PYTHON_US = 90.0, 8.0, 900.0
HOST, STREAM = 100, 7


def row(name: str, category: str, start: float, duration: float, tid: int, **args: Any) -> dict[str, Any]:
    on_gpu = tid == STREAM
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": 0 if on_gpu else 1,
        "tid": tid,
        "ts": start,
        "dur": duration,
        "args": args,
    }


def main() -> None:
    rows: list[dict[str, Any]] = []
    now, gpu_free, correlation = 1000.0, 0.0, 0
    for step in range(STEPS):
        began = now
        now += PYTHON_US  # the program prepares the batch
        for _ in range(KERNELS):
            correlation += 1
            rows.append(row("aten::mm", "cpu_op", now, LAUNCH_US + 4, HOST, **{"External id": correlation}))
            rows.append(row("cudaLaunchKernel", "cuda_runtime", now + 2, LAUNCH_US, HOST, correlation=correlation))
            start = max(gpu_free, now + LAUNCH_US)
            on_gpu = {"device": 0, "stream": STREAM, "correlation": correlation}
            rows.append(row("volta_sgemm_128x64_nn", "kernel", start, KERNEL_US, STREAM, **on_gpu))
            gpu_free = start + KERNEL_US
            now += LAUNCH_US + 5
        # loss.item(): the host waits until all of it is done, and the GPU has nothing to do from then on
        waits = gpu_free - now
        rows.append(row("aten::item", "cpu_op", now, waits + 4, HOST))
        rows.append(row("cudaStreamSynchronize", "cuda_runtime", now + 2, waits, HOST, correlation=0))
        now += waits + 6
        rows.append(row(f"ProfilerStep#{step}", "user_annotation", began, now - began, HOST))
        now += 1
    trace = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "a GPU"}], "traceEvents": rows}
    with gzip.open(sys.argv[1], "wt") as file:
        json.dump(trace, file)


if __name__ == "__main__":
    main()
