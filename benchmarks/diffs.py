"""Whether `mindtorch diff` names what was planted, and nothing where nothing was: runs of small programs in processes of their own.

    python -m benchmarks.diffs [times]

Each planted slowdown is compared with the program without it; the same program is compared with itself. The answer is right if the change that is
named first is the planted one, or if no change is named.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import sys
import torch
from torch import nn

planted = sys.argv[1]
torch.manual_seed(0)
width = 512 if planted == "wide" else 256
model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU(), nn.Linear(width, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(60):
    inputs, labels = torch.randn(128, 128), torch.randint(0, 10, (128,))
    if planted == "copy":
        inputs = inputs.repeat(8, 1).clone()[:128]
    loss = nn.functional.cross_entropy(model(inputs), labels)
    if planted == "item":
        loss.item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

# batches come from another thread, or from another process
BESIDE = """
import sys, queue, threading
import torch
from torch import nn

planted, where = sys.argv[1].split("-")


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 60 * 128

    def __getitem__(self, i):
        image = torch.full((128,), float(i))
        return image.sort()[0] if planted == "sorting" else image.relu()


def prepare(wanted, made):
    while (inputs := wanted.get()) is not None:
        made.put(inputs.sort()[0] if planted == "sorting" else inputs.relu())


def of_thread():
    wanted, made = queue.Queue(2), queue.Queue(2)
    thread = threading.Thread(target=prepare, args=(wanted, made), name="preparer")
    thread.start()
    for _ in range(60):
        wanted.put(torch.randn(128, 128))
        yield made.get()
    wanted.put(None)
    thread.join()


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = of_thread() if where == "thread" else torch.utils.data.DataLoader(Images(), batch_size=128, num_workers=1)
    for inputs in batches:
        loss = nn.functional.cross_entropy(model(inputs), torch.randint(0, 10, (128,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

# what the first change has to be, by what was planted; None: no change at all
EXPECTED = {
    "same": None,
    "wide": {("slower", "aten::addmm"), ("slower", "aten::mm")},
    "item": {("added", "aten::item")},
    "copy": {("added", "aten::repeat"), ("added", "aten::clone")},
    "same-thread": None,
    "sorting-thread": {("added", "aten::sort")},
    "same-process": None,
    "sorting-process": {("added", "aten::sort")},
}


def record(folder: Path, name: str, planted: str) -> Path:
    target, program = folder / name, folder / ("beside.py" if "-" in planted else "program.py")
    command = [
        sys.executable,
        "-m",
        "mindtorch_v2",
        "profile",
        "--quiet",
        "--with-modules",
        "-o",
        str(target),
        str(program),
        planted,
    ]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    return target


def first_change(before: Path, after: Path) -> tuple[str, str] | None:
    command = [sys.executable, "-m", "mindtorch_v2", "diff", "--json", str(before), str(after)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return (found["changes"][0]["kind"], found["changes"][0]["name"]) if found["changes"] else None


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    right = dict.fromkeys(EXPECTED, 0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM)
        (folder / "beside.py").write_text(BESIDE)
        for turn in range(times):
            for planted, expected in EXPECTED.items():
                if planted.startswith("same"):
                    before = record(folder, f"before-{planted}{turn}", planted)
                named = first_change(before, record(folder, f"{planted}{turn}", planted))
                is_right = named is None if expected is None else named in expected
                right[planted] += is_right
                if not is_right:
                    print(f"turn {turn}, {planted}: {named}", flush=True)
    for planted, count in right.items():
        print(f"{planted}: {count} of {times}")


if __name__ == "__main__":
    main()
