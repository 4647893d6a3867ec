"""Take a picture of the memory timeline of the small GPT: `python docs/draw_memory_page.py OUT.png`. Needs chromium."""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

import gpt

import mindtorch_v2 as torch
from mindtorch_v2.nn.functional import cross_entropy
from mindtorch_v2.profiler import profile, schedule

WIDTH, HEIGHT = 1180, 960


def record(*, active: int = 2, **flags: bool) -> profile:
    torch.manual_seed(0)
    model = gpt.GPT()
    optimizer = torch.optim.AdamW(model.parameters())
    flags |= {"record_shapes": True, "profile_memory": True, "with_stack": True}
    with profile(**flags, schedule=schedule(wait=0, warmup=2, active=active, repeat=1)) as prof:
        for _ in range(2 + active):
            lines = gpt.sums(64)
            optimizer.zero_grad()
            logits = model(lines[:, :-1])
            cross_entropy(logits.reshape(-1, len(gpt.ALPHABET)), lines[:, 1:].reshape(-1)).backward()
            optimizer.step()
            prof.step()
    return prof


def main() -> None:
    out = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "timeline.html"
        record().export_memory_timeline(str(page))
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/browser"]
        flags += [f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={out}"]
        subprocess.run(["chromium", *flags, page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    main()
