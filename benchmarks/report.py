"""From the end of a script to its finished report: `python -m benchmarks.report [events …]`. Needs chromium for the last figures.

Prints, for plain recordings and for those with all options, the CPU seconds of stopping and of writing the page, the bytes that an
event takes in it, and how long the browser takes to show it and to draw a frame while the timeline is panned and zoomed.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler.output.report.page import PAGE

ALL = {"record_shapes": True, "with_stack": True, "profile_memory": True, "with_modules": True, "with_flops": True}
OPTIONS = {
    "plain": {},
    "stacks, shapes, modules": {"record_shapes": True, "with_stack": True, "with_modules": True},
    "all options": ALL,
}


def recorded(events: int, options: dict[str, bool]) -> Any:
    """A profiler that has recorded about so many events of training, and has not stopped yet."""
    net = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(8, 16)

    def step() -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    with torch.profiler.profile(**options) as trial:
        for _ in range(3):
            step()
    prof = torch.profiler.profile(**options, schedule=torch.profiler.schedule(wait=0, warmup=1, active=10**9))
    prof.start()
    for _ in range(events * 3 // len(trial.session) + 2):
        step()
        prof.step()
    return prof


# At several zooms, the shortest of a dozen drawings and of a dozen frames, each somewhere else: whatever slows the machine only adds.
PAN = """
const done = arguments[0], end = timeline.options.end, worst = [0, 0], longest = [];
const frame = () => new Promise(go => requestAnimationFrame(() => setTimeout(go, 0)));
(async () => {
  for (const span of [1, 0.5, 0.1, 0.02, 0.005, 0.001, 0.0002, 0.00005]) {
    const best = [1e9, 1e9];
    for (let k = 0; k < 12; k++) {
      timeline.from = end * (0.3 + 0.02 * k - span / 2);
      timeline.to = timeline.from + end * span;
      let began = performance.now();
      timeline.drawNow();
      best[0] = Math.min(best[0], performance.now() - began);
      began = performance.now();
      timeline.draw();
      await frame();
      await frame();
      const took = (performance.now() - began) / 2;
      longest.push(took);
      best[1] = Math.min(best[1], took);
    }
    worst.forEach((ms, i) => { worst[i] = Math.max(ms, best[i]); });
  }
  done([...worst, Math.max(...longest)]);
})();
"""


def in_browser(page: Path, folder: str) -> list[float]:
    """Seconds until the timeline is shown; at the zoom that takes longest, milliseconds of drawing it and of a frame; and of the longest frame."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,800", f"--user-data-dir={folder}/browser"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        driver.set_script_timeout(120)
        began = time.perf_counter()
        driver.get(f"{page.as_uri()}#timeline")
        while driver.execute_script("return document.querySelector('main')?.dataset.ready") != "timeline":
            time.sleep(0.02)
        shown = time.perf_counter() - began
        return [shown, *driver.execute_async_script(PAN)]
    finally:
        driver.quit()


def main(sizes: list[int]) -> None:
    has_browser = shutil.which("chromium") is not None and shutil.which("chromedriver") is not None
    heads = [
        "",
        "events",
        "stop, CPU s",
        "page, CPU s",
        "page, MB",
        "bytes an event",
        "shown, s",
        "drawing, ms",
        "frame, ms",
        "longest frame, ms",
    ]
    print("| " + " | ".join(heads) + " |")
    print("|---" + "|--:" * (len(heads) - 1) + "|")
    for name, options in OPTIONS.items():
        for size in sizes:
            prof = recorded(size, options)
            began = time.process_time()
            prof.stop()
            stopped = time.process_time()
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "report.html"
                prof.export_report(path)
                written = time.process_time()
                events, whole = len(prof.session), path.stat().st_size
                facts = [
                    f"{events:,}",
                    f"{stopped - began:.2f}",
                    f"{written - stopped:.2f}",
                    f"{whole / 1e6:.2f}",
                    f"{(whole - PAGE.stat().st_size) / events:.1f}",
                ]
                drawn = in_browser(path, folder) if has_browser else [0.0] * 4
                print("| " + " | ".join([name, *facts, f"{drawn[0]:.2f}", *(f"{ms:.0f}" for ms in drawn[1:])]) + " |", flush=True)


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [10_000, 100_000, 1_000_000])
