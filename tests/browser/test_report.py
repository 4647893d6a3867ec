"""The report in a browser: every section drawn, sorted, filtered, zoomed, linked to, in light and dark, by mouse and keys."""

import json

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from tests.mindtorch_v2.profiler.report.reports import ALL, trained

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.model.session import Info, empty_session
from mindtorch_v2.profiler.output import report

pytestmark = pytest.mark.browser

HOSTILE = "<script>document.title='taken over'</script><img src=x onerror=document.title='taken'>"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Steps of training, and the page of them."""
    prof = trained(**ALL)
    path = tmp_path_factory.mktemp("report") / "report.html"
    prof.export_report(path, title="the run")
    return prof, path


class Page:
    """A report in the browser."""

    def __init__(self, browser, path):
        self.browser, self.path = browser, path

    def open(self, fragment="overview"):
        self.browser.open(f"{self.path.as_uri()}#{fragment}")
        self.wait(lambda: self.browser.run("document.querySelector('main')?.dataset.ready") == fragment.partition("?")[0])
        return self

    def wait(self, condition):
        return WebDriverWait(self.browser.driver, 30).until(lambda _: condition())

    def rows(self):
        """The rows of the table in sight: cells by column."""
        script = "[...document.querySelectorAll('.t-row')].map(row => Object.fromEntries([...row.children].map(cell => [cell.dataset.column, cell.textContent])))"
        return self.browser.run(script)

    def fragment(self):
        return self.browser.run("decodeURIComponent(location.hash)")

    def press(self, *keys):
        self.browser.pointer().send_keys(*keys).perform()


@pytest.fixture
def page(browser, recorded):
    return Page(browser, recorded[1])


def nanoseconds(text):
    number, unit = text.replace("−", "-").split()
    return float(number) * {"µs": 1e3, "ms": 1e6, "s": 1e9}[unit]


@pytest.mark.parametrize("section", ["overview", "operators", "timeline"])
def test_sections_open_without_errors_and_without_a_network(page, recorded, section):
    page.open(section)
    assert page.browser.errors() == []
    assert {url.partition("#")[0] for url in page.browser.requests()} == {recorded[1].as_uri()}
    assert page.browser.one("h1").text == "the run"
    assert page.browser.one("nav [aria-current]").get_attribute("data-view") == section


def test_the_overview_says_where_the_time_went(page, recorded):
    page.open()
    summary = recorded[0].summary()
    cells = {
        row.get_attribute("data-part"): row.find_element("css selector", ".number").text
        for row in page.browser.all("tr[data-part]")
    }
    assert nanoseconds(cells["backward"]) == pytest.approx(summary.backward_ns, rel=1e-3)
    assert nanoseconds(cells["own Python"]) == pytest.approx(summary.python_ns, rel=1e-3)
    rows = sorted((row for row in recorded[0].key_averages() if "::" in row.key), key=lambda row: -row.self_cpu_time_total)
    assert rows[0].key in page.browser.one(".top-rows a").get_attribute("title")


class TestOperators:
    def test_rows_are_the_averages_sorted_by_self_time(self, page, recorded):
        page.open("operators?kind=all")
        averages = sorted(recorded[0].key_averages(), key=lambda row: -row.self_cpu_time_total)
        rows = page.rows()
        assert [float(row["count"]) for row in rows[:10]] == [row.count for row in averages[:10]]
        for row, average in zip(rows[:10], averages, strict=False):
            assert nanoseconds(row["self"]) == pytest.approx(
                average.self_cpu_time_total * 1000, abs=1e6 if "s" in row["self"] else 1
            )

    def test_sorting_by_a_click_is_kept_in_the_address(self, page):
        page.open("operators")
        page.browser.one("[data-sort=count]").click()
        counts = [float(row["count"].replace(",", "")) for row in page.rows()]
        assert counts == sorted(counts, reverse=True)
        assert "sort=count" in page.fragment()
        page.browser.one("[data-sort=count]").click()
        assert float(page.rows()[0]["count"]) == min(counts)
        before = page.rows()
        page.open(page.fragment().lstrip("#"))
        assert page.rows() == before

    def test_filtering(self, page):
        page.open("operators")
        page.press("/")
        page.press("addmm")
        page.wait(lambda: all("addmm" in str(row.values()).lower() for row in page.rows()))
        assert {row["name"] for row in page.rows()} >= {"aten::addmm", "AddmmBackward0"}
        assert "filter=addmm" in page.fragment()

    def test_grouping(self, page, recorded):
        page.open("operators?filter=aten::addmm&group=shape")
        found = {row["detail"]: row["count"] for row in page.rows()}
        expected = {
            str(row.input_shapes): str(row.count)
            for row in recorded[0].key_averages(group_by_input_shape=True)
            if row.key == "aten::addmm"
        }
        assert found == expected
        page.browser.one("[data-key=module]").click()
        assert "Net.head · forward" in {row["detail"] for row in page.rows()}
        assert "group=module" in page.fragment()

    def test_what_was_not_recorded_says_how(self, browser, tmp_path):
        trained(steps=1).export_report(tmp_path / "plain.html")
        page = Page(browser, tmp_path / "plain.html").open("operators?group=shape")
        assert "record_shapes=True" in browser.one(".nothing").text
        assert page.browser.errors() == []


class TestTimeline:
    def view(self, page):
        return page.browser.run("[timeline.from, timeline.to]")

    def row_of(self, page, name):
        """The first event of a name."""
        return page.browser.run(
            f"timeline.options.processes[0].events.label.findIndex(i => timeline.options.processes[0].events.labels[i][0] === {json.dumps(name)})"
        )

    def click(self, page, row):
        page.browser.run(f"timeline.zoomTo({{process: 0, row: {row}}})")
        page.wait(lambda: page.browser.run("!timeline.wanted"))
        x0, y0, x1, y1 = page.browser.run(f"timeline.box({{process: 0, row: {row}}})")
        canvas = page.browser.one(".timeline canvas")
        width, height = canvas.size["width"], canvas.size["height"]
        page.browser.pointer().move_to_element_with_offset(
            canvas, round((x0 + x1) / 2 - width / 2), round((y0 + y1) / 2 - height / 2)
        ).click().perform()

    def test_clicking_shows_the_event(self, page, recorded):
        page.open("timeline")
        row = self.row_of(page, "aten::addmm")
        self.click(page, row)
        detail = page.browser.one(".detail")
        assert detail.find_element("css selector", "h2").text == "aten::addmm"
        assert "float32[8, 16]" in detail.text
        assert "reports.py" in detail.text
        assert "Net.body.0" in detail.text
        event = recorded[0].events()[row]
        assert f"{event['duration_ns'] / 1000:.3f}" in detail.text or f"{event['duration_ns'] / 1e6:.3f}" in detail.text
        assert f"event=0.{row}" in page.fragment()

    def test_its_partner_is_a_click_away(self, page):
        page.open("timeline")
        self.click(page, self.row_of(page, "aten::addmm"))
        (partner,) = [button for button in page.browser.all(".detail .link") if "AddmmBackward0" in button.text]
        partner.click()
        assert page.browser.one(".detail h2").text == "AddmmBackward0"
        page.press("p")
        assert page.browser.one(".detail h2").text == "aten::addmm"

    def test_keys_zoom_and_move(self, page):
        page.open("timeline")
        whole = self.view(page)
        page.press("w", "w")
        nearer = self.view(page)
        assert nearer[1] - nearer[0] == pytest.approx((whole[1] - whole[0]) * 0.49)
        page.press("d")
        moved = self.view(page)
        assert moved[0] == pytest.approx(nearer[0] + 0.2 * (nearer[1] - nearer[0]))
        page.press("a", "s", "s")
        assert self.view(page) == pytest.approx(whole)

    def test_the_wheel_and_dragging(self, page):
        from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

        page.open("timeline")
        whole = self.view(page)
        canvas = page.browser.one(".timeline canvas")
        page.browser.pointer().key_down(Keys.CONTROL).scroll_from_origin(ScrollOrigin.from_element(canvas), 0, -200).key_up(
            Keys.CONTROL
        ).perform()
        nearer = self.view(page)
        assert nearer[1] - nearer[0] < whole[1] - whole[0]
        page.browser.pointer().move_to_element_with_offset(canvas, 100, 60).click_and_hold().move_by_offset(
            -200, 0
        ).release().perform()
        moved = self.view(page)
        assert moved[0] > nearer[0]
        assert moved[1] - moved[0] == pytest.approx(nearer[1] - nearer[0])

    def test_the_address_brings_a_view_back(self, page):
        page.open("timeline")
        page.press("w", "w", "d")
        view = [round(t) for t in self.view(page)]
        page.wait(lambda: f"from={view[0]}" in page.fragment())
        page.open(page.fragment().lstrip("#"))
        assert self.view(page) == view

    def test_searching_finds_and_goes_from_match_to_match(self, page, recorded):
        page.open("timeline")
        count = sum(event.name == "aten::relu" for event in recorded[0].events())
        page.press("/")
        page.press("aten::relu")
        page.wait(lambda: page.browser.one("#found").text.startswith(f"{count} events"))
        page.press(Keys.ENTER)
        assert page.browser.one("#found").text == f"1 of {count}"
        assert page.browser.one(".detail h2").text == "aten::relu"
        page.press(Keys.ENTER)
        assert page.browser.one("#found").text == f"2 of {count}"

    def test_arrow_keys_go_from_event_to_event(self, page):
        page.open("timeline")
        row = self.row_of(page, "aten::addmm")
        page.browser.run(f"timeline.select({{process: 0, row: {row}}})")
        page.press(Keys.ARROW_UP)
        assert page.browser.one(".detail h2").text == "aten::linear"
        page.press(Keys.ARROW_DOWN)
        first = page.browser.one(".detail h2").text
        page.press(Keys.ARROW_RIGHT)
        assert {first, page.browser.one(".detail h2").text} == {"aten::t", "aten::addmm"}
        page.press(Keys.ESCAPE)
        assert not page.browser.one(".detail").is_displayed()


def test_names_are_shown_and_not_run(browser, tmp_path):
    with profile(with_stack=True) as prof, record_function(HOSTILE):
        torch.ones(2) + 1
    prof.export_report(tmp_path / "hostile.html", title=HOSTILE)
    page = Page(browser, tmp_path / "hostile.html")
    for section in ("overview", "operators?kind=scopes", "timeline?event=0.0&search=script"):
        page.open(section)
        assert browser.driver.title == HOSTILE
        assert browser.errors() == []
    page.open("operators?kind=scopes")
    assert HOSTILE in [row["name"] for row in page.rows()]


def test_the_policy_stops_other_scripts(page):
    page.open()
    page.browser.run("void document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.taken = 1\">')")
    page.browser.run(
        "void document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.taken = 2'}))"
    )
    assert page.browser.run("window.taken === undefined")
    assert any("Content Security Policy" in message for message in page.browser.errors())


def brightness(colour):
    return np.mean([float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]])


def test_light_and_dark(page):
    colours = "['backgroundColor', 'color'].map(name => getComputedStyle(document.body)[name])"
    page.open("timeline")
    back, ink = map(brightness, page.browser.run(colours))
    assert back > 200 > 100 > ink
    page.browser.one("#theme").click()
    back, ink = map(brightness, page.browser.run(colours))
    assert back < 60 < 180 < ink
    page.browser.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    try:
        page.open("overview")
        back, ink = map(brightness, page.browser.run(colours))
        assert back < 60 < 180 < ink
    finally:
        page.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (844, 390)])
@pytest.mark.parametrize("section", ["overview", "operators", "timeline"])
def test_it_fits_the_window(page, width, height, section):
    page.browser.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    )
    try:
        page.open(section)
        assert page.browser.run(
            "document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight"
        )
        assert page.browser.run("document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth")
        box = page.browser.run("document.querySelector('main').getBoundingClientRect().height")
        assert box > 0.6 * height
    finally:
        page.browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_help_by_a_key(page):
    page.open()
    page.press("?")
    assert "zoom in and out" in page.browser.one("dialog").text
    page.press(Keys.ESCAPE)
    page.wait(lambda: not page.browser.all("dialog"))


def test_an_empty_recording(browser, tmp_path):
    report.write([empty_session(Info(started_ns=5, stopped_ns=5))], tmp_path / "empty.html")
    page = Page(browser, tmp_path / "empty.html")
    for section in ("overview", "operators", "timeline"):
        page.open(section)
        assert browser.errors() == []
