"""Reading a trace of torch's: `PYTHONPATH=src python -m benchmarks.opening [events] [--hta]`.

A training is recorded by torch with shapes, and its trace is repeated until it has that many events (a million unless told otherwise). Each
reader runs in a process of its own, in turn: `mindtorch top`, `json.load` alone, and with `--hta` HolisticTraceAnalysis' loading. Shown are
the least CPU seconds of each and the memory that it took at most. Torch is needed for the trace; CPU seconds are user and system time.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 2

TOP = "import sys, mindtorch_front\nsys.argv = ['mindtorch', 'top', sys.argv[1], '--limit', '5']\nmindtorch_front.main()"
LOAD = "import json, sys\njson.load(open(sys.argv[1], 'rb'))"
HTA = "import sys, os\nfrom hta.trace_analysis import TraceAnalysis\n"
HTA += "TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=os.path.dirname(sys.argv[1]))"

RECORD = """
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters())
with torch.profiler.profile(record_shapes=True) as profiler:
    for _ in range(200):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(torch.randn(16, 32)), torch.randint(0, 10, (16,))).backward()
        optimizer.step()
        profiler.step()
profiler.export_chrome_trace(sys.argv[1])
"""


def repeated(trace: Path, events: int, target: Path) -> int:
    """The trace, one copy of its slices after the other, in torch's layout; how many events it has."""
    content = json.loads(trace.read_bytes())
    rows = content.pop("traceEvents")
    slices = [row for row in rows if row["ph"] == "X" and row["cat"] != "Trace"]
    others = [row for row in rows if row["ph"] != "X" or row["cat"] == "Trace"]
    first = min(row["ts"] for row in slices)
    length = max(row["ts"] + row["dur"] for row in slices) - first
    count = 0
    with target.open("w") as file:
        header = json.dumps({**content, "distributedInfo": {"rank": 0}}, indent=2)
        file.write(f'{header[:-2]},\n  "traceEvents": [\n')
        file.write(",\n".join(json.dumps(row, indent=2) for row in others))
        while count < events:
            for row in slices:
                file.write(",\n" + json.dumps({**row, "ts": round(row["ts"] + (count // len(slices)) * length, 3)}, indent=2))
            count += len(slices)
        file.write("\n]}")
    return count


def measured(code: str, path: Path) -> tuple[float, int]:
    """CPU seconds of a process, and the most memory that it had, in bytes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = "import resource, sys\n" + code + "\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", child, str(path)], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1024 * int(done.stderr.split()[-1])


def main() -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--hta"]
    readers = {"mindtorch top": TOP, "json.load": LOAD} | ({"HolisticTraceAnalysis": HTA} if "--hta" in sys.argv else {})
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small.json"), Path(folder, "large.json")
        subprocess.run([sys.executable, "-c", RECORD, str(small)], check=True, capture_output=True)
        count = repeated(small, int(arguments[0]) if arguments else 1_000_000, large)
        size = large.stat().st_size
        print(f"{count:,} events, {size / 1e6:.0f} MB; imports included, least CPU seconds of {ROUNDS}")
        found: dict[str, list[tuple[float, int]]] = {name: [] for name in readers}
        for _ in range(ROUNDS):
            for name, code in readers.items():
                found[name].append(measured(code, large))
        for name, runs in found.items():
            print(f"{name:<22} {min(seconds for seconds, _ in runs):7.2f} s  {max(memory for _, memory in runs) / 1e6:7.0f} MB")


if __name__ == "__main__":
    main()
