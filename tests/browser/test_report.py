"""The report in a browser: all of it opens, without a network, in light and dark, on small screens, by keys; names are shown and not run."""

import json

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys
from tests.browser.report_page import Page, nanoseconds
from tests.mindtorch_v2.profiler import device_traces
from tests.mindtorch_v2.profiler.by_hand import op, record

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.model.session import Info, empty_session
from mindtorch_v2.profiler.opening import open_recording
from mindtorch_v2.profiler.output import report

pytestmark = pytest.mark.browser

HOSTILE = "<script>document.title='taken over'</script><img src=x onerror=document.title='taken'>"


SECTIONS = ["overview", "steps", "operators", "modules", "timeline", "flame", "memory", "advice", "environment"]


@pytest.mark.parametrize("section", SECTIONS)
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
    operators = {event.name for event in recorded[0].events() if event["kind"] == "op"}
    rows = sorted((row for row in recorded[0].key_averages() if row.key in operators), key=lambda row: -row.self_cpu_time_total)
    assert [link.get_attribute("title") for link in page.browser.all(".top-rows a")] == [row.key for row in rows[:5]]
    shares = [f"{row.self_cpu_time_total * 1e3 / summary.wall_ns:.1%}".replace("%", " %") for row in rows[:5]]
    assert [number.text.rpartition(" · ")[2] for number in page.browser.all(".top-rows .number")] == shares


def test_advice_links_to_its_evidence(page, recorded):
    page.open("advice")
    titles = [card.text for card in page.browser.all(".finding h2")]
    assert len(titles) == len(recorded[0].advise())
    links = page.browser.all(".evidence a")
    assert links
    links[0].click()
    page.wait(lambda: page.browser.run("document.querySelector('main').dataset.ready") == "operators")
    assert page.rows()


def test_the_environment(page):
    page.open("environment")
    text = page.browser.one("main").text
    assert "NumPy" in text
    assert "shapes of inputs" in text


def test_a_device_has_its_section_and_its_tracks(browser, tmp_path):
    rows = [
        device_traces.op("aten::mm", 0, 12),
        device_traces.call("cudaLaunchKernel", 3, 6, 1),
        device_traces.kernel("gemm", 12, 30, 1),
        device_traces.call("cudaLaunchKernel", 63, 6, 3),
        device_traces.kernel("add", 70, 10, 3),
    ]
    (tmp_path / "trace.json").write_text(json.dumps(device_traces.trace(rows)))
    report.write(open_recording(tmp_path / "trace.json").sessions, tmp_path / "device.html")
    page = Page(browser, tmp_path / "device.html").open("device")
    assert [row["name"] for row in page.rows()] == ["gemm", "add"]
    assert "host late" in browser.one(".device").text
    path = browser.one(".critical-path")
    assert path.text.startswith("Critical path of the whole recording, 80.000 µs")
    assert path.find_element("css selector", "[data-cause='device'] .number").text == "10.000 µs"
    assert browser.errors() == []
    page.open("timeline")
    assert browser.run("timeline.bands.map(band => band.title)")[1] == "CUDA 0 · stream 7"
    browser.run("timeline.select({process: 0, row: 1})")
    assert browser.one(".detail h2").text == "cudaLaunchKernel"
    page.press("p")
    assert browser.one(".detail h2").text == "gemm"


def test_processes_are_shown_together(browser, tmp_path):
    first = record([op("aten::mm", 1000, 1200)], info=Info(started_ns=900, stopped_ns=2000, pid=11, process_name="python"))
    second = record(
        [op("aten::stack", 1500, 1600)], info=Info(started_ns=1400, stopped_ns=1700, pid=12, parent_pid=11, process_name="worker")
    )
    report.write([first, second], tmp_path / "two.html")
    page = Page(browser, tmp_path / "two.html").open("timeline")
    assert browser.run("timeline.bands.map(band => band.title)") == ["python 11 · thread 1", "worker 12 · thread 1"]
    page.open("operators?process=1")
    assert [row["name"] for row in page.rows()] == ["aten::stack"]
    page.open("environment")
    items = [item.text for item in browser.all(".options li") if "events" in item.text]
    assert [item.split(" · ")[0] for item in items] == ["python 11", "worker 12"]
    from selenium.webdriver.support.ui import Select

    Select(browser.one("#process")).select_by_index(1)
    page.wait(lambda: "process=1" in page.fragment())


def test_names_are_shown_and_not_run(browser, tmp_path):
    with profile(with_stack=True) as prof, record_function(HOSTILE):
        torch.ones(2) + 1
    prof.export_report(tmp_path / "hostile.html", title=HOSTILE)
    page = Page(browser, tmp_path / "hostile.html")
    for section in (
        "overview",
        "operators?kind=scopes",
        "timeline?event=0.0&search=script",
        "flame?search=script",
        "advice",
        "environment",
    ):
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
@pytest.mark.parametrize("section", SECTIONS)
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
    for section in SECTIONS:
        page.open(section)
        assert browser.errors() == []


def test_keys_go_to_sections(page):
    page.open()
    for number, section in enumerate(SECTIONS, 1):
        page.press(str(number))
        page.wait(lambda section=section: page.browser.run("document.querySelector('main').dataset.ready") == section)
    page.browser.driver.back()
    page.wait(lambda: page.browser.run("document.querySelector('main').dataset.ready") == SECTIONS[-2])


def test_the_link_is_copied(page):
    page.open("operators?filter=mm")
    page.browser.run("void (navigator.clipboard.writeText = async text => { window.copied = text; })")
    page.browser.one("#copy-link").click()
    page.wait(lambda: page.browser.one("#copy-link").text == "Copied")
    assert page.browser.run("window.copied") == page.browser.run("location.href")


def test_tabbing_reaches_everything_in_order(page):
    """The header, the sections, then what the section has; what has the focus can be seen."""
    page.open("operators")
    reached = []
    for _ in range(24):
        page.press(Keys.TAB)
        reached.append(
            page.browser.run(
                "document.activeElement.id || document.activeElement.dataset.view || document.activeElement.dataset.key || document.activeElement.className"
            )
        )
        assert page.browser.run("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert reached[:3] == ["copy-link", "theme", "help"]
    assert reached[3 : 3 + len(SECTIONS)] == SECTIONS
    assert reached[3 + len(SECTIONS)] == "filter"
    assert "t-scroll" in reached


def test_a_hundred_thousand_rows_scroll(browser, tmp_path):
    session = record([op(f"mine::op{i}", 10 * i, 10 * i + 5) for i in range(100_000)])
    report.write([session], tmp_path / "many.html")
    page = Page(browser, tmp_path / "many.html").open("operators?sort=name")
    assert browser.one(".t-scroll").get_attribute("aria-rowcount") == "100001"
    assert len(browser.all(".t-row")) < 100
    browser.run("void document.querySelector('.t-scroll').scrollTo(0, 1e9)")
    page.wait(lambda: page.rows()[-1]["name"] == "mine::op99999")
    assert len(browser.all(".t-row")) < 100
