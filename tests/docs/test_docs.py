"""The code on the documentation's pages runs."""

import importlib.util
import re
from pathlib import Path

import pytest

from mindtorch_v2._dispatch import registry

pytestmark = pytest.mark.usefixtures("compile_rows")

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")])
TUTORIALS = sorted(ROOT.glob("docs/tutorials/*.md"))  # whose samples are about times: `test_tutorials.py` looks at what matters

spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
generate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate)


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


def all_rows(command: str) -> str:
    """The command without limits: which rows are the first ones depends on times."""
    return re.sub(r"--row-limit \d+", "--row-limit -1", command).partition("|")[0]


@pytest.mark.parametrize(
    "page", [p for p in PAGES if "<!-- output of: " in p.read_text() and p not in TUTORIALS], ids=lambda p: p.stem
)
def test_samples_of_output_are_what_is_printed_now(page):
    """Headings, names of rows and sentences, not times. `make docs` writes the samples anew."""
    found = list(generate.samples(page, all_rows))
    assert len(found) == page.read_text().count("<!-- output of: ")
    for sample in found:
        printed = generate.structure(sample.printed)
        for paragraph in paragraphs(sample):
            assert generate.structure(paragraph) <= printed, sample.of


def paragraphs(sample) -> list[str]:
    """What of a sample has to be there. Findings depend on times: those that are not found now are known to a rule at least."""
    if "rows depend on times" in sample.of:  # what takes longest, and the advice about it
        lines = [
            line for line in sample.text.splitlines() if "::" not in line and "Optimizer." not in line and "advice." not in line
        ]
        return ["\n".join(line for line in lines if "First advice" not in line)]
    if "findings depend on times" not in sample.of:
        return [sample.text]
    rules = "".join(path.read_text() for path in (ROOT / "src/mindtorch_v2/profiler/advice").rglob("*.py"))
    found = sample.text.split("\n\n")
    titles = [re.sub(r"^\d+\. |: about .*", "", part.partition("\n")[0]) for part in found[1:]]
    assert all(title in rules for title in titles if title), titles
    kept = [part for part, title in zip(found[1:], titles, strict=True) if title in sample.printed]
    assert kept
    # the rows of evidence are the longest ones: only their headings are always there; of what is not explained, the title
    kept = [part.partition("\n")[0] if part.startswith("Not explained:") else part for part in kept]
    return ["\n".join(line for line in part.splitlines() if "train.py:" not in line and " more" not in line) for part in kept]


def test_every_sample_of_output_has_a_marker():
    """A block without a language is output, and names what prints it."""
    for page in PAGES:
        lines = page.read_text().splitlines()
        fences = [i for i, line in enumerate(lines) if line.startswith("```")]
        for i in fences[::2]:
            if lines[i] in ("```", "```text"):
                assert lines[i - 1].startswith("<!-- output of: "), f"{page.name}:{i + 1}"


def test_structure():
    assert generate.structure(
        "----  ----\n   Name  Self CPU %\n aten::mm  1.50%  3.2us  4\n1. item(): about 3.8 ms a step, 14.7% of it"
    ) == {
        "Name Self CPU %",
        "aten::mm",
        "item(): about a step, of it",
    }
