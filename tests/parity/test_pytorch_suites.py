"""The table of PyTorch's own tests."""

from pathlib import Path

import pytest
import pytorch_suites

pytestmark = pytest.mark.parity


def test_the_page_has_the_table():
    page = Path(__file__).parents[2] / "docs" / "compatibility.md"
    assert pytorch_suites.section() in page.read_text(), "write it anew: make coverage"


@pytest.mark.parametrize("name", pytorch_suites.SUITES)
def test_what_is_missing_is_said(name):
    total, passing, missing = pytorch_suites.SUITES[name]
    assert passing <= total
    assert bool(missing) == (passing < total)
