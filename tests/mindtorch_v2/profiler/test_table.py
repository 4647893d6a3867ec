"""The table of events. That its text is torch's, `tests/parity/test_profiler_util.py` checks."""

import itertools

import numpy as np
import pytest

from mindtorch_v2.profiler.model.events import FunctionEvent
from mindtorch_v2.profiler.model.session import Frame, Info, TensorInput, empty_session
from mindtorch_v2.profiler.output.event_list import EventList

from .by_hand import op, record, scope

LINEAR = op("aten::linear", 0, 10_000, op("aten::t", 1_000, 2_000), op("aten::addmm", 2_000, 9_000))
TIMES = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]


def rows(*recorded, **info):
    return EventList.of(record(recorded or [LINEAR], info=Info(**info))).key_averages(
        group_by_input_shapes=info.get("record_shapes", False), group_by_stack_n=5 if info.get("with_stack") else 0
    )


def cells(line):
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def parts(text):
    """Headings, rows and what stands below."""
    lines = text.splitlines()
    rules = [i for i, line in enumerate(lines) if line.startswith("---")]
    return cells(lines[rules[0] + 1]), [cells(line) for line in lines[rules[1] + 1 : rules[2]]], lines[rules[2] + 1 :]


def column(text, heading):
    headings, shown, _ = parts(text)
    return [row[headings.index(heading)] for row in shown]


def test_headings_rows_and_totals():
    headings, shown, below = parts(rows().table())
    assert headings == ["Name", *TIMES, "# of Calls"]
    assert shown == [
        ["aten::linear", "20.00%", "2.000us", "100.00%", "10.000us", "10.000us", "1"],
        ["aten::t", "10.00%", "1.000us", "10.00%", "1.000us", "1.000us", "1"],
        ["aten::addmm", "70.00%", "7.000us", "70.00%", "7.000us", "7.000us", "1"],
    ]
    assert below == ["Self CPU time total: 10.000us", "Count: 3 events, Total: 10.000us"]


def test_the_same_text_every_time():
    averages = rows()
    assert averages.table() == averages.table() == rows().table() == str(averages)


def test_nothing_recorded_is_a_table_without_rows():
    headings, shown, below = parts(EventList.of(empty_session()).key_averages().table())
    assert (headings, shown) == (["Name", *TIMES, "# of Calls"], [])
    assert below == ["Self CPU time total: 0.000us", "Count: 0 events, Total: 0.000us"]


class TestOrder:
    def test_largest_first(self):
        assert column(rows().table(sort_by="self_cpu_time_total"), "Name") == ["aten::addmm", "aten::linear", "aten::t"]

    def test_equals_stay_in_order(self):
        assert column(rows().table(sort_by="count"), "Name") == ["aten::linear", "aten::t", "aten::addmm"]

    @pytest.mark.parametrize("device", ["cuda", "xpu", "privateuse1", "npu", "device"])
    def test_any_device_is_the_device(self, device):
        assert rows().table(sort_by=f"self_{device}_time_total")

    def test_a_key_that_is_no_device(self):
        assert column(rows().table(sort_by="input_shapes"), "Name") == ["aten::linear", "aten::t", "aten::addmm"]

    def test_unknown_key(self):
        with pytest.raises(
            AttributeError, match=r"'FunctionEventAvg' object has no attribute 'speed'.*; sort by one of self_cpu_time"
        ):
            rows().table(sort_by="speed")
        with pytest.raises(AttributeError, match=r"\(sort_by='cuda_tme'\); did you mean 'device_time'"):
            rows().table(sort_by="cuda_tme")

    def test_no_key_and_no_order(self):
        with pytest.raises(TypeError, match="sort_by takes the name of an attribute such as 'self_cpu_time_total', got 3"):
            rows().table(sort_by=3)
        with pytest.raises(TypeError, match="sort_by='cpu_parent' has no order"):
            rows().table(sort_by="cpu_parent")


class TestSelection:
    def test_row_limit(self):
        assert column(rows().table(row_limit=2), "Name") == ["aten::linear", "aten::t"]
        assert column(rows().table(row_limit=0), "Name") == []
        assert len(column(rows().table(row_limit=-1), "Name")) == 3
        assert len(column(rows().table(row_limit=None), "Name")) == 3
        assert len(column(rows().table(row_limit=np.int64(2)), "Name")) == 2
        with pytest.raises(TypeError, match="row_limit takes a number of rows, -1 for all of them; got 'x'"):
            rows().table(row_limit="x")

    def test_totals_are_of_all_rows(self):
        assert parts(rows().table(row_limit=1))[2] == ["Self CPU time total: 10.000us", "Count: 3 events, Total: 10.000us"]

    def test_top_level(self):
        text = rows().table(top_level_events_only=True)
        assert column(text, "Name") == ["aten::linear"]
        assert text.splitlines()[1] == "This report only display top-level ops statistics"


def test_header_stands_between_double_lines():
    first, header, rule, *_ = rows().table(header="My model").splitlines()
    assert (first, header) == ("=" * (len(rule) - 2), "My model")


@pytest.mark.parametrize(("unit", "time"), [("s", "0.000s"), ("ms", "0.010ms"), ("us", "10.000us")])
def test_time_unit(unit, time):
    text = rows().table(time_unit=unit)
    assert column(text, "CPU total")[0] == time
    assert f"Self CPU time total: {time}" in text


def test_unknown_time_unit():
    with pytest.raises(ValueError, match="time_unit takes 's', 'ms', 'us' or None for what suits each time; got 'ns'"):
        rows().table(time_unit="ns")


class TestWidths:
    LONG = op("aten::" + "x" * 94, 0, 10)

    def test_long_names_are_cut(self):
        assert column(rows(self.LONG).table(), "Name") == ["aten::" + "x" * 46 + "..."]
        assert column(rows(self.LONG).table(max_name_column_width=None), "Name") == ["aten::" + "x" * 94]

    def test_shapes(self):
        matrix = TensorInput((2, 3), (3, 1), "float32")
        averages = rows(op("add", 0, 1, inputs=(matrix, matrix, 1)), record_shapes=True)
        assert column(averages.table(), "Input Shapes") == ["[[2, 3], [2, 3], []]"]
        assert column(averages.table(max_shapes_column_width=6), "Input Shapes") == ["[[2, 3"]

    def test_stacks_take_a_line_each_and_keep_their_ends(self):
        stack = (Frame("project/model.py", 45, "forward"), Frame("train.py", 7, "main"))
        averages = rows(op("add", 0, 1, stack=stack), with_stack=True)
        _, (first, second, blank), _ = parts(averages.table())
        assert (first[-1], second, blank) == ("project/model.py(45): forward", ["train.py(7): main"], [])
        _, (first, second, blank), _ = parts(averages.table(max_src_column_width=13))
        assert (first[-1], second) == ("...): forward", ["...y(7): main"])


def test_memory():
    add = FunctionEvent(1, "add", 1, 0, 1, cpu_memory_usage=2048, device_memory_usage=3 << 20, use_device="npu")
    text = EventList([add], use_device="npu", profile_memory=True).table()
    headings, (row,), _ = parts(text)
    assert headings[6:10] == ["CPU Mem", "Self CPU Mem", "NPU Mem", "Self NPU Mem"]
    assert row[6:10] == ["2.00 KB", "2.00 KB", "3.00 MB", "3.00 MB"]


class TestDevice:
    def test_columns(self):
        add = FunctionEvent(1, "add", 1, 0, 10, use_device="npu")
        add.append_kernel("Add", 0, 5)
        add.is_legacy = True
        headings, (row,), below = parts(EventList([add]).table())
        assert headings[6:10] == ["Self NPU", "Self NPU %", "NPU total", "NPU time avg"]
        assert row[6:10] == ["5.000us", "100.00%", "5.000us", "5.000us"]
        assert below[1:] == ["Self NPU time total: 5.000us", "Count: 1 event, Total: 15.000us"]

    def test_time_of_no_device(self):
        add = FunctionEvent(1, "add", 1, 0, 10, use_device="npu")
        add.append_kernel("Add", 0, 5)
        with pytest.raises(RuntimeError, match="use_device is None"):
            EventList([FunctionEvent(2, "mul", 1, 0, 1), add]).table()


def test_flops_in_a_unit_that_suits_the_smallest():
    matrix = TensorInput((100, 100), (100, 1), "float32")
    averages = rows(
        op("aten::mm", 0, 1, inputs=(matrix, matrix)),
        op("aten::add", 1, 2, inputs=(matrix, matrix)),
        op("aten::relu", 2, 3, inputs=(matrix,)),
        record_shapes=True,
        with_flops=True,
    )
    assert column(averages.table(), "Total KFLOPs") == ["2000.000", "10.000", "--"]


def test_overloads():
    recorded = record([op("add", 0, 1, overload="Tensor")], info=Info(overload_names=True))
    averages = EventList.of(recorded).key_averages(group_by_overload_name=True)
    assert column(averages.table(), "Overload Name") == ["Tensor"]


def test_events_themselves_have_a_table_too():
    shown = EventList.of(record([scope("ProfilerStep#0", 0, 10_000, LINEAR)]))
    assert column(shown.table(sort_by="cpu_time_total", row_limit=2), "Name") == ["ProfilerStep*", "aten::linear"]
    assert shown[0].self_cpu_percent == "0.00%"


class TestEachCellStandsUnderItsHeading:
    """In every combination of the columns that can be missing."""

    OPTIONS = ("shapes", "stacks", "flops", "memory", "overloads", "modules", "device", "nodes")
    ALL = list(itertools.product([False, True], repeat=len(OPTIONS)))

    def event(self, number, *, shapes, stacks, flops, memory, overloads, modules, device, nodes):
        event = FunctionEvent(
            number,
            f"aten::operator{number}",
            1,
            0,
            10,
            input_shapes=[[number, 2]] if shapes else [],
            stack=[f"file.py({number}): place", f"file.py({number}): caller"] if stacks else [],
            flops=number * 1000 if flops else 0,
            overload_name=f"overload{number}" if overloads else "",
            use_device="npu" if device else None,
            node_id=number if nodes else -1,
            cpu_memory_usage=number * 1024,
            device_memory_usage=number,
        )
        if modules:
            event.module, event.phase = f"module{number}", "forward"
        if device:
            event.append_kernel("kernel", 0, 5)
            event.is_legacy = True
        return event

    @pytest.mark.parametrize("chosen", ALL, ids=lambda chosen: "".join("01"[c] for c in chosen))
    def test_all(self, chosen):
        options = dict(zip(self.OPTIONS, chosen, strict=True))
        shown = EventList(
            [self.event(number, **options) for number in (1, 2)], profile_memory=options["memory"], with_flops=options["flops"]
        )
        lines = shown.table().splitlines()
        rule, heading, _, *body = lines
        edges = list(itertools.accumulate((len(part) + 2 for part in rule.split()), initial=0))
        places = list(itertools.pairwise(edges))
        headings = [heading[a:b].strip() for a, b in places]
        wanted = {
            "Name": "aten::operator1",
            "Self CPU": "10.000us",
            "# of Calls": "1",
            **({"Input Shapes": "[[1, 2]]"} if options["shapes"] else {}),
            **({"Source Location": "file.py(1): place"} if options["stacks"] else {}),
            **({"Total KFLOPs": "1.000"} if options["flops"] else {}),
            **({"CPU Mem": "1.00 KB"} if options["memory"] else {}),
            **({"NPU Mem": "1 B"} if options["memory"] and options["device"] else {}),
            **({"Overload Name": "overload1"} if options["overloads"] else {}),
            **({"Module": "module1", "Phase": "forward"} if options["modules"] else {}),
            **({"Self NPU": "5.000us"} if options["device"] else {}),
            **({"Node ID": "1"} if options["nodes"] else {}),
        }
        cells = {name: body[0][a:b].strip() for name, (a, b) in zip(headings, places, strict=True)}
        assert {name: cells[name] for name in wanted} == wanted
        assert len(headings) == len(set(headings))
        if options["stacks"]:
            below = {name: body[1][a:b].strip() for name, (a, b) in zip(headings, places, strict=True)}
            assert {name: text for name, text in below.items() if text} == {"Source Location": "file.py(1): caller"}


class TestTextThatCannotBeEncoded:
    def test_halves_of_characters_are_escaped(self):
        name, place = b"caf\xe9".decode("utf-8", "surrogateescape"), b"/tmp/\xff.py".decode("utf-8", "surrogateescape")
        stack = (Frame(place, 45, "forward"), Frame(place, 46, "main"))
        text = rows(op(name, 0, 1, stack=stack), with_stack=True).table(header=name)
        text.encode("utf-8")
        _, (first, second, _), _ = parts(text)
        assert (first[0], first[-1], second) == ("caf\\udce9", "/tmp/\\udcff.py(45): forward", ["/tmp/\\udcff.py(46): main"])
        rule, heading, _, row = text.splitlines()[2:6]
        assert len(rule) == len(heading) == len(row)

    def test_other_characters_stay(self):
        assert column(rows(op("größe", 0, 1)).table(), "Name") == ["größe"]


class TestMaxWidth:
    LONG = op("aten::" + "x" * 40 + "::end", 0, 10, op("aten::short", 1, 2))

    def text(self, max_width, **options):
        return rows(self.LONG).table(max_width=max_width, **options)

    def test_wide_enough_changes_nothing_but_blanks_at_the_ends(self):
        plain = rows(self.LONG).table()
        assert self.text(1000) == "\n".join(line.rstrip() for line in plain.splitlines()) + "\n"

    @pytest.mark.parametrize("width", [132, 120, 100, 80, 60, 40])
    def test_no_line_is_wider(self, width):
        text = self.text(width)
        table_lines = [line for line in text.splitlines() if not line.startswith("To fit")]
        assert max(map(len, table_lines)) <= width
        assert {"Name", "Self CPU"} <= set(parts(text)[0])

    def test_names_give_way_first(self):
        text = self.text(120)
        assert parts(text)[0] == ["Name", *TIMES, "# of Calls"]
        assert column(text, "Name") == ["aten::" + "x" * 12 + "…" + "x" * 12 + "::end", "aten::short"]
        assert text.splitlines()[-1] == "To fit 120 characters: names shortened"

    def test_then_columns_of_least_use(self):
        text = self.text(80)
        assert parts(text)[0] == ["Name", "Self CPU %", "Self CPU", "CPU total", "# of Calls"]
        assert text.splitlines()[-1] == "To fit 80 characters: without CPU total %, CPU time avg; names shortened"

    def test_the_column_it_is_sorted_by_stays(self):
        assert "CPU time avg" in parts(self.text(60, sort_by="cpu_time"))[0]

    def test_stacks(self):
        stack = (Frame("project/model.py", 45, "forward"), Frame("train.py", 7, "main"))
        averages = rows(op("add", 0, 1, stack=stack), with_stack=True)
        assert parts(averages.table(max_width=200))[1][0][-1] == "project/model.py(45): forward"
        narrow = averages.table(max_width=60)
        assert "Source Location" not in parts(narrow)[0]
        assert len(parts(narrow)[1]) == 1  # no lines for the places

    @pytest.mark.parametrize("width", [0, -3, "80", 80.5, True])
    def test_no_width(self, width):
        with pytest.raises(ValueError, match="max_width takes a number of characters from 1, got"):
            self.text(width)
