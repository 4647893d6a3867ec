"""The code on the documentation's pages runs."""

import re
from pathlib import Path

import pytest

from mindtorch_v2._dispatch import registry

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md"])


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)


@pytest.fixture
def clean_registry():
    before = set(registry.all_ops())
    yield
    for op in set(registry.all_ops()) - before:
        registry.remove(op)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.stem)
def test_the_blocks_of_a_page_run_in_order(page, clean_registry):
    namespace = {"__name__": "page"}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
