"""Write the samples of output on the pages anew, by running what the pages name.

    python docs/generate.py [page.md …]

A sample is a block of text after one of these markers:

    <!-- output of: the block above -->     what the Python block before it prints; the blocks of a page run in order
    <!-- output of: python -m … -->         what a command prints, where the folder `examples` is
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
ABOVE = "the block above"
PARTS = re.compile(
    r"^```python\n(?P<code>.*?)^```\n|^<!-- output of: (?P<of>.*?) -->\n+(?P<fence>```\w*\n)(?P<sample>.*?)^```\n", re.M | re.S
)


class Sample(NamedTuple):
    """A block of output on a page."""

    of: str
    text: str
    start: int  # where the text stands on the page
    printed: str  # what there is to show now


def samples(page: Path, change: Any = lambda command: command) -> Iterator[Sample]:
    """The samples of a page, and what stands for each now. `change` is a function of a command that gives the one to run."""
    text = page.read_text()
    parts = list(PARTS.finditer(text))
    by_code = any((part["of"] or "").startswith(ABOVE) for part in parts)
    printed = iter(_printed_by_code([part["code"] for part in parts if part["of"] is None]) if by_code else ())
    last = ""
    for part in parts:
        if part["of"] is None:
            last = next(printed, "")
            continue
        now = last if part["of"].startswith(ABOVE) else _printed_by_command(change(part["of"]))
        yield Sample(part["of"], part["sample"], part.start("sample"), now)


def _printed_by_code(blocks: list[str]) -> list[str]:
    """What each of these blocks prints, one after the other in a process of their own; lines are numbered as in one file."""
    program = "import contextlib, io, json, linecache, sys\nnamespace, printed, line = {'__name__': 'page'}, [], 0\n"
    program += f"linecache.cache['train.py'] = (0, None, {''.join(blocks).splitlines(keepends=True)!r}, 'train.py')\n"
    program += f"for block in {blocks!r}:\n"
    program += "    stream = io.StringIO()\n    with contextlib.redirect_stdout(stream):\n"
    program += "        exec(compile('\\n' * line + block, 'train.py', 'exec'), namespace)\n"
    program += "    printed.append(stream.getvalue())\n    line += block.count('\\n')\nprint(json.dumps(printed))\n"
    return [_tidy(text) for text in json.loads(_run([sys.executable, "-c", program]).splitlines()[-1])]


def _printed_by_command(command: str) -> str:
    return _tidy(_run(re.sub(r"(^|&& )python\b", rf"\1'{sys.executable}'", command), shell=True))


def _run(command: Any, **options: Any) -> str:
    """What a command prints, in a directory of its own that has the examples."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "examples").symlink_to(ROOT / "examples")
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True, **options)
    return done.stdout.replace(f"{folder}{os.sep}", "")


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


def structure(text: str) -> set[str]:
    """What does not depend on times: the words of each line, without numbers, units and places in the source."""
    found = set()
    for line in text.splitlines():
        line = re.sub(r"\(\d+\): \S+", "", line)
        words = [
            word
            for word in line.split()
            if not re.fullmatch(r"-+|▇+|…|[#(]?[-\d.,]*\d(%|ns|us|ms|s|[KMG]?B)?(/step)?[.,:;)]*", word)
        ]
        found.add(" ".join(word for word in words if word not in ("ns", "us", "ms", "s", "B", "KB", "MB", "GB")))
    return found - {""}


def generate(page: Path) -> None:
    text = page.read_text()
    for sample in reversed(list(samples(page))):
        text = text[: sample.start] + sample.printed + text[sample.start + len(sample.text) :]
    page.write_text(text)


if __name__ == "__main__":
    for name in sys.argv[1:] or map(str, [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]):
        generate(Path(name))
