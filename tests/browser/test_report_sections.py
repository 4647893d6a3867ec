"""Sections of the report in a browser: tables, timeline, steps, modules, flame graphs and memory, by mouse and keys."""

import json

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys
from tests.browser.report_page import Page, nanoseconds
from tests.mindtorch_v2.profiler.by_hand import op, record, scope
from tests.mindtorch_v2.profiler.report.reports import trained

from mindtorch_v2.profiler.output import report

pytestmark = pytest.mark.browser


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

    def test_the_strip_shows_the_whole_and_moves_the_view(self, page):
        page.open("timeline")
        end, width = page.browser.run("[timeline.options.end, timeline.canvas.clientWidth]")
        canvas, middle = page.browser.one(".timeline canvas"), -page.browser.run("timeline.canvas.clientHeight") // 2 + 10

        def drag(start, stop):
            at = [round(page.browser.run(f"timeline.stripX({t * end})") - width / 2) for t in (start, stop)]
            held = page.browser.pointer().move_to_element_with_offset(canvas, at[0], middle).click_and_hold()
            held.move_by_offset(at[1] - at[0], 0).release().perform()
            return [t / end for t in self.view(page)]

        assert drag(0.2, 0.4) == pytest.approx([0.2, 0.4], abs=0.01)  # everything was shown: a part is chosen
        assert drag(0.3, 0.6) == pytest.approx([0.5, 0.7], abs=0.01)  # from inside its frame: it moves
        assert drag(0.1, 0.3) == pytest.approx([0.1, 0.3], abs=0.01)  # from beside it: another part
        assert drag(0.8, 0.8) == pytest.approx([0.7, 0.9], abs=0.01)  # a click: to that moment
        assert page.browser.errors() == []

    def test_what_is_found_is_seen_among_many_in_a_pixel(self, browser, tmp_path):
        events = [op("aten::mm" if i == 10_007 else "aten::add", 10 * i, 10 * i + 8) for i in range(20_000)]
        report.write([record(events)], tmp_path / "many.html")
        page = Page(browser, tmp_path / "many.html").open("timeline?search=aten::mm")
        page.wait(lambda: browser.run("timeline.stripState.length > 0 && !timeline.wanted"))
        x, y, _, _ = browser.run("timeline.box({process: 0, row: 10007})")

        def pixel(x, y):
            script = "Array.from(timeline.canvas.getContext('2d').getImageData(arguments[0] * devicePixelRatio, arguments[1] * devicePixelRatio, 1, 1).data)"
            return browser.run(script, int(x), int(y))

        assert pixel(x, y + 8) != pixel(x - 20, y + 8) == pixel(x + 20, y + 8)
        at = browser.run("timeline.stripX(100070)")
        assert pixel(at, 20) != pixel(at - 20, 20) == pixel(at + 20, 20)

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


class TestSteps:
    def test_bars_and_facts(self, page, recorded):
        page.open("steps")
        page.wait(lambda: page.browser.all(".chart canvas"))
        steps = sorted(event["duration_ns"] for event in recorded[0].events() if event.name == "ProfilerStep*")
        facts = dict(
            zip([e.text for e in page.browser.all(".facts dt")], [e.text for e in page.browser.all(".facts dd")], strict=True)
        )
        assert nanoseconds(facts["median"]) == pytest.approx(int(np.median(steps)), rel=1e-3)
        assert nanoseconds(facts["longest"]) == pytest.approx(steps[-1], rel=1e-3)

    def test_a_click_shows_the_step_in_the_timeline(self, page):
        page.open("steps")
        page.wait(lambda: page.browser.all(".u-over"))
        over = page.browser.one(".u-over")
        page.browser.pointer().move_to_element_with_offset(over, round(-over.size["width"] / 2) + 40, 60).click().perform()
        page.wait(lambda: page.fragment().startswith("#timeline?from="))

    def test_slow_ones_are_told(self, browser, tmp_path):
        events = [
            scope(
                f"ProfilerStep#{i}",
                10_000 * i,
                10_000 * i + 6000 + 3000 * (i == 5),
                op("aten::mm", 10_000 * i + 100, 10_000 * i + 5000 + 3000 * (i == 5)),
            )
            for i in range(8)
        ]
        report.write([record(events)], tmp_path / "slow.html")
        Page(browser, tmp_path / "slow.html").open("steps")
        (row,) = browser.all(".slow tbody tr")
        assert "step 5" in row.text
        assert "aten::mm +3 µs" in row.text


class TestModules:
    def test_rows_are_those_of_by_module(self, page, recorded):
        page.open("modules")
        times = recorded[0].by_module()
        rows = page.browser.all(".tree tbody tr")
        assert [row.find_element("css selector", "a").get_attribute("title") for row in rows] == [row.module for row in times]
        shown = [nanoseconds(row.find_element("css selector", "[data-column=forward]").text) for row in rows]
        assert shown == [pytest.approx(row.forward_us * 1000, rel=1e-3, abs=1) for row in times]

    def test_branches_close_and_open(self, page):
        page.open("modules")
        page.browser.one("[data-module='1'] .toggle").click()
        assert len(page.browser.all(".tree tbody tr")) == 3
        assert "closed=1" in page.fragment()
        page.open(page.fragment().lstrip("#"))
        assert len(page.browser.all(".tree tbody tr")) == 3

    def test_sorting(self, page, recorded):
        page.open("modules")
        page.browser.one("[data-sort=backward]").click()
        inner = [row for row in recorded[0].by_module() if row.module.count(".") == 2]
        names = [row.find_element("css selector", "a").get_attribute("title") for row in page.browser.all(".tree tbody tr")]
        assert [name for name in names if name.count(".") == 2] == [
            row.module for row in sorted(inner, key=lambda row: -row.backward_us)
        ]


class TestFlame:
    def total(self, page, name):
        return page.browser.run(
            f"flame.layout.total[flame.layout.tree.name.findIndex(i => flame.layout.tree.names[i] === {json.dumps(name)})]"
        )

    def test_blocks_are_as_wide_as_their_time(self, page, recorded):
        page.open("flame")
        total = sum(round(row.cpu_time_total * 1000) for row in recorded[0].key_averages() if row.key == "ProfilerStep*")
        steps, whole = self.total(page, "ProfilerStep*"), page.browser.run("flame.layout.whole")
        python = sum(event.self_cpu_time_total for event in recorded[0].events() if event["kind"] == "python_function") * 1000
        assert 0 <= total - steps <= python + 1
        page.wait(lambda: page.browser.run("flame.graph.boxes.length") > 3)
        box = page.browser.run("flame.graph.boxOf(flame.layout.roots[0])")
        assert box["w"] / page.browser.run("flame.graph.canvas.clientWidth") == pytest.approx(steps / whole, rel=0.01)

    def test_forward_and_backward_are_parts_of_both(self, page):
        wholes = []
        for phase in ("both", "forward", "backward"):
            page.open(f"flame?by=module&phase={phase}")
            wholes.append(page.browser.run("flame.layout.whole"))
        assert wholes[0] == wholes[1] + wholes[2]
        assert wholes[2] > 0

    def test_a_click_zooms_and_the_address_keeps_it(self, page):
        page.open("flame?by=module")
        page.wait(lambda: page.browser.run("flame.graph.boxes.length") > 3)
        box = page.browser.run("flame.graph.boxOf(flame.layout.find(['Net']))")
        canvas = page.browser.one(".flame canvas")
        size = canvas.size
        page.browser.pointer().move_to_element_with_offset(
            canvas, round(box["x"] + box["w"] / 2 - size["width"] / 2), round(box["y"] + 9 - size["height"] / 2)
        ).click().perform()
        page.wait(lambda: "Net" in page.browser.one(".path").text)
        assert page.browser.run("flame.graph.root === flame.layout.find(['Net'])")
        page.open(page.fragment().lstrip("#"))
        assert page.browser.run("flame.graph.root === flame.layout.find(['Net'])")
        page.press("0")
        assert page.browser.run("flame.graph.root") == -1

    def test_own_code_keeps_the_time_and_loses_the_frames(self, page):
        page.open("flame?by=stack")
        whole, names = page.browser.run(
            "[flame.layout.whole, [...new Set(Array.from(flame.layout.tree.name, i => flame.layout.tree.names[i]))]]"
        )
        assert any(name.startswith("mindtorch_v2/") for name in names)
        page.browser.one("[data-key=own]").click()
        own = page.browser.run("[...new Set(Array.from(flame.layout.tree.name, i => flame.layout.tree.names[i]))]")
        assert page.browser.run("flame.layout.whole") == whole
        assert not any(name.startswith("mindtorch_v2/") for name in own)
        assert any("reports.py" in name for name in own)
        assert "frames=own" in page.fragment()

    def test_callers_have_what_took_the_time_at_the_top(self, page, recorded):
        page.open("flame")
        whole = page.browser.run("flame.layout.whole")
        page.open("flame?way=up")
        assert page.browser.run("flame.layout.whole") == whole
        tops = dict(
            page.browser.run(
                "flame.layout.roots.map(i => [flame.layout.tree.names[flame.layout.tree.name[i]], flame.layout.total[i]])"
            )
        )
        expected = {row.key: round(row.self_cpu_time_total * 1000) for row in recorded[0].key_averages()}
        assert tops == {name: expected[name] for name in tops}
        assert "aten::addmm" in tops

    def test_searching_says_how_much(self, page):
        page.open("flame?search=AddmmBackward0")
        expected = page.browser.run(
            "flame.layout.total.reduce((sum, ns, i) => sum + (flame.layout.tree.names[flame.layout.tree.name[i]].startsWith('autograd::engine::evaluate_function: AddmmBackward0') ? ns : 0), 0)"
        )
        page.wait(lambda: page.browser.one("#found").text)
        assert nanoseconds(page.browser.one("#found").text.split(",")[0]) == pytest.approx(expected, rel=1e-3)


class TestMemory:
    def test_it_is_the_memory_page(self, page, recorded):
        page.open("memory")
        assert page.browser.run("memory.data.peak.bytes") == recorded[0].session.memory.total_bytes.max()
        page.wait(lambda: page.browser.all(".areas path[data-category=activation]"))
        assert "peak" in page.browser.one("#peak text").text

    def test_zooming_is_kept_in_the_address(self, page):
        page.open("memory")
        page.press("w", "w")
        view = page.browser.run("[memory.view.from, memory.view.to].map(Math.round)")
        page.wait(lambda: f"from={view[0]}" in page.fragment())
        page.open(page.fragment().lstrip("#"))
        assert page.browser.run("[memory.view.from, memory.view.to]") == view

    def test_a_curve_where_categories_were_not_recorded(self, browser, tmp_path):
        trained(steps=1, profile_memory=True).export_report(tmp_path / "curve.html")
        page = Page(browser, tmp_path / "curve.html").open("memory")
        page.wait(lambda: browser.all(".chart canvas"))
        assert "record_shapes=True, with_stack=True" in browser.one(".card").text
        assert browser.errors() == []
