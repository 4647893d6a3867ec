"""Take a picture of the report of the small GPT: `python docs/draw_report.py OUT.png [section]`. Needs chromium."""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
WIDTH, HEIGHT = 1280, 760
STEPS = ("--wait=4", "--warmup=1", "--active=12", "--repeat=1")
RECORDED = ("--record-shapes", "--with-stack", "--profile-memory", "--with-modules", "--with-flops")


def main() -> None:
    out, section = Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else "overview"
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "gpt.profile"
        profile = [
            sys.executable,
            "-m",
            "mindtorch_v2",
            "profile",
            "--quiet",
            *STEPS,
            *RECORDED,
            "-o",
            str(results),
            "examples/gpt.py",
        ]
        subprocess.run(profile, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/browser"]
        flags += [f"--window-size={WIDTH},{HEIGHT}", "--virtual-time-budget=3000", f"--screenshot={out}"]
        page = (results / "report.html").as_uri()
        subprocess.run(["chromium", *flags, f"{page}#{section}"], check=True, capture_output=True)


if __name__ == "__main__":
    main()
