"""Take a picture of the report of the small GPT: `python docs/draw_report.py OUT.png [section]`. Needs chromium."""

import subprocess
import sys
import tempfile
from pathlib import Path

from draw_memory_page import record

WIDTH, HEIGHT = 1280, 760


def main() -> None:
    out, section = Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else "overview"
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        record(with_modules=True, with_flops=True, active=12).export_report(page, title="gpt.py")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/browser"]
        flags += [f"--window-size={WIDTH},{HEIGHT}", "--virtual-time-budget=3000", f"--screenshot={out}"]
        subprocess.run(["chromium", *flags, f"{page.as_uri()}#{section}"], check=True, capture_output=True)


if __name__ == "__main__":
    main()
