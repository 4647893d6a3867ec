"""Tests that the pages name are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
NAMED = [(page.name, name) for page in PAGES for name in re.findall(r"`(test_\w+\.py(?:::\w+)*)`", page.read_text())]


def test_some_are_named():
    assert len(NAMED) > 10


@pytest.mark.parametrize(("page", "name"), NAMED)
def test_a_test_that_a_page_names(page, name):
    file, *parts = name.split("::")
    (path,) = (ROOT / "tests" / "mindtorch_v2" / "profiler").glob(file)
    source = path.read_text()
    assert [part for part in parts if not re.search(rf"^ *(?:def|class) {part}\b", source, re.MULTILINE)] == []
