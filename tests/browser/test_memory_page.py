"""The page of a memory timeline in a browser: drawn, marked, pointed at, zoomed."""

import gc

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler._memory_profiler import MemoryProfileTimeline
from mindtorch_v2.profiler.model.memory_timeline import timeline_of

pytestmark = pytest.mark.browser

ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Steps of training, and the page of them."""
    gc.collect()
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 8))
    optimizer = torch.optim.Adam(net.parameters())
    x, y = torch.ones(128, 64), torch.zeros(128, 8)
    with profile(**ALL) as prof:
        for _ in range(3):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
    path = tmp_path_factory.mktemp("page") / "timeline.html"
    prof.export_memory_timeline(str(path))
    return prof, path


@pytest.fixture
def page(browser, recorded):
    browser.open(recorded[1].as_uri())
    return browser


@pytest.fixture(scope="module")
def peak(recorded):
    """When most memory was in use, how much, and how much of each category: from the changes one by one."""
    session = recorded[0].session
    live, best = {}, (0, 0, {})
    for change, size, category in timeline_of(session).transfers():
        name = "unknown" if category is None else category.name.lower().replace("_", " ")
        live[name] = live.get(name, 0) + size
        if sum(live.values()) > best[1]:
            best = (max(change.time_ns - session.info.started_ns, 0), sum(live.values()), dict(live))
    return best


def shown_bytes(text):
    number, unit = text.split()
    return float(number) * {"B": 1, "KiB": 2**10, "MiB": 2**20}[unit]


def place_of(page, time_ns):
    """Where in the chart a time is, from its middle."""
    return page.run(f"memory.toX({time_ns}) - memory.width / 2")


def point_at(page, time_ns, y=0):
    chart = page.one("#chart")
    page.pointer().move_to_element_with_offset(chart, round(place_of(page, time_ns)), y).perform()


def view(page):
    return page.run("[memory.view.from, memory.view.to]")


def test_it_opens_without_errors_and_without_a_network(page, recorded):
    assert page.errors() == []
    assert page.requests() == [recorded[1].as_uri()]
    assert page.one("h1").text == "Memory timeline"


def test_every_category_has_its_area(page, peak):
    areas = {path.get_attribute("data-category"): path for path in page.all(".areas path[data-category]")}
    assert areas.keys() >= {name for name, size in peak[2].items() if size}
    for name in ("parameter", "optimizer state", "gradient", "activation"):
        box = page.run("arguments[0].getBBox()", areas[name])
        assert box["width"] > 300
        assert box["height"] > 3
    colours = [page.run("getComputedStyle(arguments[0]).fill", path) for path in areas.values()]
    assert len(set(colours)) == len(areas)


def test_areas_are_as_high_as_the_memory_is_large(page, peak):
    time_ns, total, by_category = peak
    heights = page.run(f"memory.data.categories.map((_, c) => memory.model.levels[c][memory.model.momentAt({time_ns})])")
    names = page.run("memory.data.categories")
    assert {name: size for name, size in zip(names, heights, strict=True) if size} == {n: s for n, s in by_category.items() if s}
    assert page.run("memory.model.totals[memory.model.momentAt(memory.data.peak.time)]") == total


def test_the_peak_is_marked_where_it_is(page, peak):
    time_ns, total, by_category = peak
    mark = page.one("#peak")
    assert float(mark.get_attribute("data-time")) == time_ns
    assert float(mark.get_attribute("data-bytes")) == total
    dot = page.one("#peak circle")
    span = page.run("[memory.margin.left, memory.width - memory.margin.right, memory.data.end]")
    expected = span[0] + (span[1] - span[0]) * time_ns / span[2]
    assert float(dot.get_attribute("cx")) == pytest.approx(expected, abs=0.5)
    outline = page.run("document.querySelector('.areas .total').getBBox().y")
    assert float(dot.get_attribute("cy")) == pytest.approx(outline, abs=0.5)
    text = page.one("#peak text").text
    assert text.startswith("peak ")
    assert shown_bytes(" ".join(text.split()[1:3])) == pytest.approx(total, rel=0.01)
    assert max(by_category, key=by_category.get) in text


def test_who_owns_the_memory_at_the_peak(page, peak):
    rows = [[cell.text for cell in row.find_elements("css selector", "td")] for row in page.all("#owners tr")[1:]]
    total = sum(shown_bytes(row[0]) for row in rows)
    assert total == pytest.approx(peak[1], rel=0.01)
    assert ["parameter", "before the recording × 4"] in [row[1:3] for row in rows]
    activations = [row for row in rows if row[1] == "activation"]
    assert any("aten::gelu" in row[2] for row in activations)
    assert any("test_memory_page.py" in row[3] for row in activations)
    at_peak = {
        row.get_attribute("data-category"): row.find_elements("css selector", "td")[2].text
        for row in page.all("#categories tr[data-category]")
    }
    assert {name: shown_bytes(text) for name, text in at_peak.items() if shown_bytes(text)} == {
        name: pytest.approx(size, rel=0.01) for name, size in peak[2].items() if size
    }


def test_pointing_shows_the_operator_and_the_size(page, recorded):
    timeline = timeline_of(recorded[0].session)
    session = recorded[0].session
    names = [session.labels[i].name for i in session.label]
    gelus = [s for s in timeline.graph.storages if s.made_by >= 0 and names[s.made_by] == "aten::gelu"]
    made_ns = gelus[1].made_ns - session.info.started_ns
    page.run(f"memory.zoom({made_ns} - 20000, {made_ns} + 20000)")  # so near that no other change is within a few pixels
    point_at(page, made_ns)
    tip = page.one("#tip")
    assert tip.is_displayed()
    assert tip.find_element("css selector", ".name").text == "aten::gelu"
    assert tip.find_element("css selector", ".what").text == "made 128 KiB (activation)"
    assert "test_memory_page.py" in tip.text
    assert "in use" in tip.text
    assert page.one("#cursor").get_attribute("visibility") == "visible"
    now = page.one("#categories tr[data-category='parameter'] [data-now]").text
    assert shown_bytes(now) == pytest.approx(4 * (64 * 256 + 256 + 256 * 8 + 8), rel=0.01)
    page.pointer().move_to_element(page.one("h1")).perform()
    assert not tip.is_displayed()


def test_dragging_zooms_and_a_double_click_shows_everything(page):
    whole = view(page)
    chart = page.one("#chart")
    page.pointer().move_to_element_with_offset(chart, -100, 0).click_and_hold().move_by_offset(200, 0).release().perform()
    inside = view(page)
    assert whole[0] < inside[0] < inside[1] < whole[1]
    assert (inside[1] - inside[0]) / whole[1] == pytest.approx(
        200 / page.run("memory.width - memory.margin.left - memory.margin.right"), rel=0.02
    )
    assert page.all(".areas path[data-category]")
    page.pointer().double_click(chart).perform()
    assert view(page) == whole
    assert page.errors() == []


def test_the_wheel_keys_and_buttons_zoom(page):
    whole = view(page)
    chart = page.one("#chart")
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    page.pointer().scroll_from_origin(ScrollOrigin.from_element(chart), 0, -200).perform()
    nearer = view(page)
    assert nearer[1] - nearer[0] < whole[1] - whole[0]
    page.one("#in").click()
    nearest = view(page)
    assert nearest[1] - nearest[0] == pytest.approx((nearer[1] - nearer[0]) / 2)
    page.run("document.getElementById('chart').focus()")
    page.pointer().send_keys("\ue014").perform()  # arrow right
    assert view(page)[0] == pytest.approx(nearest[0] + (nearest[1] - nearest[0]) / 5)
    page.one("#reset").click()
    assert view(page) == whole


def test_a_click_shows_who_owns_the_memory_then(page, recorded):
    at = page.run("memory.model.moments.at(-1)")
    point_at(page, at)
    page.pointer().click().perform()
    assert float(page.one("#pin").get_attribute("x1")) == pytest.approx(page.run(f"memory.toX({at})"), abs=5)
    _, sizes = MemoryProfileTimeline(recorded[0]._memory_profile())._coalesce_timeline("cpu")
    title = page.one("#owners-title").text
    assert shown_bytes(" ".join(title.split()[3:5])) == pytest.approx(
        page.run("memory.model.totals[memory.model.momentAt(memory.pinned)]"), rel=0.01
    )
    assert page.run("memory.model.totals.at(-1)") == sum(sizes[-1])
    page.one("#to-peak").click()
    assert "at the peak" in page.one("#owners-title").text


def test_categories_can_be_left_out(page):
    highest = page.run("memory.highest")
    page.one("#categories tr[data-category='activation'] input").click()
    assert not page.all(".areas path[data-category='activation']")
    assert page.run("memory.highest") < highest
    assert page.errors() == []


@pytest.mark.parametrize("width", [380, 1600])
def test_it_fits_windows_of_any_width(page, width):
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    )
    try:
        page.open(page.driver.current_url if page.driver.current_url != "about:blank" else "")
        assert page.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert page.run("document.querySelector('.areas').getBBox().width") > width * 0.6
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_dark_pages_have_light_letters(page):
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    try:
        back, ink = page.run("['backgroundColor', 'color'].map(name => getComputedStyle(document.body)[name])")
        brightness = [np.mean([int(part) for part in colour[4:-1].split(",")]) for colour in (back, ink)]
        assert brightness[0] < 60
        assert brightness[1] > 180
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_an_empty_recording_says_so(browser, tmp_path):
    gc.collect()
    with profile(**ALL) as prof:
        pass
    prof.export_memory_timeline(str(tmp_path / "empty.html"), device="npu:0")
    browser.open((tmp_path / "empty.html").as_uri())
    assert "No memory was in use" in browser.one("#frame").text
    assert browser.errors() == []


def test_names_can_be_any_text(browser, tmp_path):
    name = "</script><script>document.title='taken over'</script> {{DATA}}"
    with profile(**ALL) as prof, torch.profiler.record_function(name):
        kept = torch.ones(8)
    MemoryProfileTimeline(prof._memory_profile()).export_memory_timeline_html(tmp_path / "page.html", "cpu", title="<b>a & b</b>")
    browser.open((tmp_path / "page.html").as_uri())
    assert browser.one("h1").text == browser.driver.title == "<b>a & b</b>"
    assert browser.errors() == []
    assert kept.shape == (8,)
