"""What a notebook shows of a recording: HTML in which names are text, whatever they are."""

import html.parser

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.comparison import compare
from mindtorch_v2.profiler.query import query
from mindtorch_v2.profiler.writing.html_table import html_table
from mindtorch_v2.profiler.writing.text_table import Column

HOSTILE = "<script>alert(1)</script>&\ud800"


class Page(html.parser.HTMLParser):
    """The cells and the tags of a piece of HTML."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def prof():
    model = torch.nn.Linear(3, 3)
    with profile(with_modules=True, profile_memory=True, record_shapes=True) as prof, record_function(HOSTILE):
        for _ in range(60):
            model(torch.ones(2, 3))
    return prof


@pytest.mark.parametrize(
    "shown",
    [
        lambda prof: prof.key_averages(),
        lambda prof: prof.events(),
        lambda prof: prof.by_module(),
        lambda prof: prof.summary(),
        lambda prof: prof.advise(),
        lambda prof: compare(prof.session, prof.session),
        lambda prof: query(prof.session, "select name, count(*) from events group by name"),
    ],
    ids=["averages", "events", "modules", "summary", "advice", "comparison", "answer"],
)
def test_names_are_shown_and_never_run(prof, shown):
    page = Page(shown(prof)._repr_html_())
    assert "script" not in page.tags
    assert page.tags <= {"table", "thead", "tbody", "tr", "th", "td", "p", "pre"}
    assert "".join(page.texts).strip()


def test_averages_have_the_numbers_of_the_table(prof):
    page = Page(prof.key_averages()._repr_html_())
    row = next(r for r in prof.key_averages() if r.key == "aten::addmm")
    assert "aten::addmm" in page.texts
    assert row.self_cpu_time_total_str in page.texts
    assert any(text.startswith("<script>alert(1)</script>") for text in page.texts)


def test_a_long_list_says_how_much_more_there_is(prof):
    assert f"{len(prof.events()) - 50:,} rows more" in prof.events()._repr_html_()


def test_a_table_without_rows():
    assert html_table([Column("Name", str)], []).startswith("<table><thead><tr><th")
