"""Lists of events: sums by name, trees from times, exports. Recordings are built by Hypothesis where they are many."""

import itertools
import json
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_v2.profiler.device_type import DeviceType
from mindtorch_v2.profiler.model.averages import FunctionEventAvg
from mindtorch_v2.profiler.model.events import FunctionEvent, Kernel
from mindtorch_v2.profiler.model.grouping import GroupBy
from mindtorch_v2.profiler.model.session import BACKWARD_FUNCTION, Frame, Info, TensorInput, Track, empty_session
from mindtorch_v2.profiler.output.event_list import EventList

from .by_hand import Event, kernel, op, python_function, record, runtime, scope

LINEAR = op("aten::linear", 0, 10_000, op("aten::t", 1_000, 2_000), op("aten::addmm", 2_000, 9_000))
ADDMM = op("aten::addmm", 20_000, 25_000)


def events(*recorded, **info):
    return EventList.of(record(recorded, info=Info(**info)))


def row(rows, key, **facts):
    (found,) = [r for r in rows if r.key == key and all(getattr(r, name) == value for name, value in facts.items())]
    return found


class TestKeyAverages:
    def test_sums_by_name_in_order_of_first_occurrence(self):
        rows = events(LINEAR, ADDMM).key_averages()
        assert [r.key for r in rows] == ["aten::linear", "aten::t", "aten::addmm"]
        addmm = row(rows, "aten::addmm")
        assert (addmm.count, addmm.cpu_time_total, addmm.self_cpu_time_total, addmm.cpu_time) == (2, 12, 12, 6)
        linear = row(rows, "aten::linear")
        assert (linear.count, linear.cpu_time_total, linear.self_cpu_time_total) == (1, 10, 2)

    def test_rows_are_no_mappings(self):
        (add,) = events(op("aten::add", 0, 1)).key_averages()
        with pytest.raises(TypeError, match="not subscriptable"):
            add["key"]

    def test_steps_are_one_row(self):
        rows = events(scope("ProfilerStep#0", 0, 5_000), scope("ProfilerStep#1", 5_000, 9_000)).key_averages()
        assert [(r.key, r.count, r.cpu_time_total) for r in rows] == [("ProfilerStep*", 2, 9)]

    def test_an_operator_and_a_scope_of_one_name_are_two_rows(self):
        rows = events(op("add", 0, 1), scope("add", 2, 3)).key_averages()
        assert [(r.key, r.is_user_annotation) for r in rows] == [("add", False), ("add", True)]

    def test_by_shapes(self):
        two, three = (TensorInput((n,), (1,), "float32") for n in (2, 3))
        shown = events(*(op("add", i, i + 1, inputs=(x, 1)) for i, x in enumerate((two, three, two))), record_shapes=True)
        assert [(r.count, r.input_shapes) for r in shown.key_averages(group_by_input_shapes=True)] == [
            (2, [[2], []]),
            (1, [[3], []]),
        ]
        assert [(r.count, r.input_shapes) for r in shown.key_averages()] == [(3, "")]

    def test_by_stack(self):
        f, g, main = Frame("m.py", 1, "f"), Frame("m.py", 2, "g"), Frame("m.py", 9, "<module>")
        stacks = [(f, main), (g, main), (f, g, main)]
        shown = events(*(op("add", i, i + 1, stack=stack) for i, stack in enumerate(stacks)), with_stack=True)
        assert [(r.count, r.stack) for r in shown.key_averages(group_by_stack_n=1)] == [(2, ["m.py(1): f"]), (1, ["m.py(2): g"])]
        assert [r.count for r in shown.key_averages(group_by_stack_n=2)] == [1, 1, 1]
        assert [(r.count, r.stack) for r in shown.key_averages()] == [(3, [])]

    def test_by_overload(self):
        calls = [op("add", 0, 1, overload="Tensor"), op("add", 1, 2, overload="out"), op("add", 2, 3, overload="Tensor")]
        rows = events(*calls, overload_names=True).key_averages(group_by_overload_name=True)
        assert [(r.count, r.overload_name) for r in rows] == [(2, "Tensor"), (1, "out")]
        with pytest.warns(UserWarning, match="group_by_overload_name=True has no effect"):
            rows = events(*calls).key_averages(group_by_overload_name=True)
        assert [(r.count, r.overload_name) for r in rows] == [(3, "")]

    def test_flops_add_up(self):
        matrix = TensorInput((2, 2), (2, 1), "float32")
        calls = [op("aten::mm", i, i + 1, inputs=(matrix, matrix)) for i in range(3)]
        assert events(*calls, record_shapes=True, with_flops=True).key_averages()[0].flops == 3 * 16

    def test_nothing_recorded(self):
        assert EventList.of(empty_session()).key_averages() == []
        assert EventList.averages_of(empty_session()) == []

    def test_the_tree_comes_first(self):
        with pytest.raises(AssertionError, match="Expected tree to be built"):
            EventList([FunctionEvent(1, "add", 1, 0, 1)]).key_averages()

    def test_rows_add_up_to_rows(self):
        rows = events(LINEAR, ADDMM).key_averages()
        total = FunctionEventAvg()
        total += row(rows, "aten::addmm")
        total += row(rows, "aten::addmm")
        assert (total.count, total.cpu_time_total) == (4, 24)
        with pytest.raises(AssertionError, match="Expected keys to match, but got aten::t vs aten::addmm"):
            total.add(row(rows, "aten::t"))
        with pytest.raises(AssertionError, match="FunctionEvent or FunctionEventAvg"):
            total.add("aten::t")


class TestGroupsThatWereNotRecorded:
    """torch takes these without a word, and the rows are those of the name."""

    @pytest.mark.parametrize(
        ("asked", "needed"),
        [
            ({"group_by_input_shapes": True}, "group_by_input_shape=True has no effect.*record_shapes=True"),
            ({"group_by_stack_n": 3}, "group_by_stack_n=3 has no effect.*with_stack=True"),
            ({"group_by_overload_name": True}, "group_by_overload_name=True has no effect.*capture_overload_names=True"),
            ({"group_by_module": True}, "group_by_module=True has no effect.*with_modules=True"),
        ],
    )
    def test_a_warning_says_what_is_needed(self, asked, needed):
        shown = events(LINEAR, ADDMM)
        for ask in (shown.key_averages, lambda **by: EventList.averages_of(record([LINEAR, ADDMM]), GroupBy(*group_of(by)))):
            with pytest.warns(UserWarning, match=needed) as warned:
                rows = ask(**asked)
            assert [r.key for r in rows] == ["aten::linear", "aten::t", "aten::addmm"]
            assert [w.filename for w in warned] == [__file__]


def group_of(asked):
    names = ("group_by_input_shapes", "group_by_stack_n", "group_by_overload_name", "group_by_module")
    return [asked.get(name, 0) for name in names]


class TestTotals:
    def test_total_average(self):
        total = events(LINEAR, ADDMM).total_average()
        assert (total.key, total.count, total.cpu_time_total, total.self_cpu_time_total) == ("Total", 4, 23, 15)

    def test_self_cpu_time_total(self):
        assert events(LINEAR, ADDMM).self_cpu_time_total == 15

    def test_of_nothing(self):
        nothing = EventList.of(empty_session())
        assert (nothing.self_cpu_time_total, nothing.total_average().count, nothing.total_average().key) == (0, 0, "Total")


class TestChanges:
    """What someone does to a list or its events is what the sums say."""

    @pytest.fixture
    def shown(self):
        return events(LINEAR, ADDMM, with_stack=True, use_device="npu")

    def test_removed(self, shown):
        del shown[2]
        assert row(shown.key_averages(), "aten::addmm").cpu_time_total == 5
        assert row(shown.key_averages(), "aten::linear").self_cpu_time_total == 2  # its children are still its children

    def test_order(self, shown):
        shown.sort(key=lambda e: e.name)
        assert [r.key for r in shown.key_averages()] == ["aten::addmm", "aten::linear", "aten::t"]

    def test_twice(self, shown):
        shown += shown[:1]
        assert row(shown.key_averages(), "aten::linear").count == 2

    def test_joined_by_one_made_by_hand(self, shown):
        shown.append(FunctionEvent(9, "aten::t", 1, 0, 8, stack=[], overload_name=""))
        assert (row(shown.key_averages(), "aten::t").cpu_time_total, shown.self_cpu_time_total) == (9, 23)

    def test_joined_by_those_of_another_recording(self, shown):
        shown.extend(events(ADDMM))
        assert row(shown.key_averages(), "aten::addmm").cpu_time_total == 17

    def test_name(self, shown):
        shown[1].name = "mine"
        assert [r.key for r in shown.key_averages()] == ["aten::linear", "mine", "aten::addmm"]

    def test_times(self, shown):
        shown[3].time_range.end += 1
        assert row(shown.key_averages(), "aten::addmm").cpu_time_total == 13
        assert (shown.total_average().cpu_time_total, shown.self_cpu_time_total) == (24, 16)

    def test_children(self, shown):
        shown[0].cpu_children.clear()
        assert row(shown.key_averages(), "aten::linear").self_cpu_time_total == 10

    def test_kernels(self, shown):
        shown[3].append_kernel("MatMul", 0, 4)
        assert row(shown.key_averages(), "aten::addmm").device_time_total == 4

    def test_stack(self, shown):
        shown[3].stack.append("m.py(1): f")
        assert [r.stack for r in shown.key_averages(group_by_stack_n=1)][-1] == ["m.py(1): f"]

    def test_counting_attributes_that_are_the_same_as_before(self, shown):
        shown[3].flops = 7
        assert row(shown.key_averages(), "aten::addmm").flops == 7

    def test_reading_changes_nothing(self, shown):
        before = [vars(r) for r in shown.key_averages()]
        assert str(shown)
        assert all(repr(e) and e.cpu_children is not None for e in shown)
        assert [vars(r) for r in shown.key_averages()] == before


class TestTreeFromTimes:
    def make(self, *spans, **facts):
        made = EventList([FunctionEvent(i, name, *span, **facts) for i, (name, *span) in enumerate(spans)])
        made._build_tree()
        return made

    def test_inside_is_child(self):
        outer, first, second = self.make(("outer", 1, 0, 10), ("a", 1, 1, 3), ("b", 1, 3, 4))
        assert outer.cpu_children == [first, second]
        assert first.cpu_parent is second.cpu_parent is outer

    def test_overlap_is_no_child(self):
        first, second = self.make(("a", 1, 0, 5), ("b", 1, 4, 8))
        assert (first.cpu_children, second.cpu_parent) == ([], None)

    def test_another_thread_is_no_parent(self):
        _, second = self.make(("a", 1, 0, 5), ("b", 2, 1, 2))
        assert second.cpu_parent is None

    def test_asynchronous_events_are_nobodys_parents(self):
        _, inner = self.make(("a", 1, 0, 5), ("b", 1, 1, 2), is_async=True)
        assert inner.cpu_parent is None

    def test_a_tree_is_built_once(self):
        made = self.make(("a", 1, 0, 5), ("b", 1, 1, 2))
        with pytest.raises(AssertionError, match="There is already a CPU parent event for b"):
            made._build_tree()

    def test_repeats_are_left_out_and_their_kernels_lifted(self):
        outer, inner = FunctionEvent(0, "to", 1, 0, 9), FunctionEvent(1, "to", 1, 1, 8)
        inner.append_kernel("copy", 0, 3)
        made = EventList([outer, inner, FunctionEvent(2, "copy_", 1, 2, 7)])
        made._build_tree()
        assert [e.name for e in made] == ["to", "copy_"]
        assert (outer.kernels, outer.cpu_children) == ([Kernel("copy", 0, 3)], [made[1]])

    def test_backward_has_the_stack_of_forward(self):
        forward = FunctionEvent(0, "exp", 1, 0, 5, stack=["m.py(1): f"], sequence_nr=4)
        node = FunctionEvent(1, "ExpBackward0", 2, 6, 9, stack=[], sequence_nr=4, fwd_thread=1, scope=BACKWARD_FUNCTION)
        inner = FunctionEvent(2, "mul", 2, 7, 8, stack=[])
        EventList([forward, node, inner])._build_tree()
        assert node.stack == inner.stack == ["m.py(1): f"]

    def test_backward_knows_its_forward_thread(self):
        with pytest.raises(AssertionError, match="Expected fwd_thread to be set"):
            EventList([FunctionEvent(1, "ExpBackward0", 2, 6, 9, scope=BACKWARD_FUNCTION)])._build_tree()


class TestExports:
    def test_stacks(self, tmp_path):
        f, main = Frame("m.py", 1, "f"), Frame("a b.py", 9, "<module>")
        shown = events(
            op("add", 0, 3_700, stack=(f, main)), op("mul", 5_000, 5_100, stack=(f,)), op("sub", 6_000, 9_000), with_stack=True
        )
        shown.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
        assert (tmp_path / "stacks").read_text() == "a_b.py(9):_<module>;m.py(1):_f 3\n"

    def test_metrics_by_name(self, tmp_path):
        with pytest.raises(ValueError, match=r"metric should be one of: .*self_cpu_time_total"):
            events(LINEAR).export_stacks(str(tmp_path / "stacks"), "cpu_time_total")
        assert "self_privateuse1_time_total" in events(LINEAR).supported_export_stacks_metrics()

    def test_trace_of_a_list(self, tmp_path):
        events(scope('say "hi"', 1_000, 3_500)).export_chrome_trace(str(tmp_path / "trace.json"))
        (slice_,) = json.loads((tmp_path / "trace.json").read_text())
        expected = {"name": 'say "hi"', "ph": "X", "ts": 1.0, "dur": 2.5, "tid": 1, "pid": "CPU functions", "args": {}}
        assert slice_ == expected

    def test_trace_has_arrows_to_kernels(self, tmp_path):
        add = FunctionEvent(1, "add", 1, 0, 5, trace_name="add")
        add.append_kernel("Add", 0, 3)
        EventList([add, FunctionEvent(2, "[memory]", 1, 0, 0)], use_device="npu").export_chrome_trace(str(tmp_path / "trace.json"))
        _, arrow = json.loads((tmp_path / "trace.json").read_text())
        assert (arrow["ph"], arrow["ts"], arrow["id"], arrow["cat"]) == ("s", 0, 0, "cpu_to_npu")


class TestDevice:
    def test_kernels_belong_to_the_operator_that_started_them(self):
        launch = runtime("aclnnMatMul", 1_000, 2_000, correlation=5)
        tracks = [Track(1, 1), Track(7, 7, "stream", "NPU", 0)]
        linear = op("aten::linear", 0, 4_000, op("aten::mm", 500, 3_000, launch))
        session = record(
            [linear, kernel("MatMul", 2_500, 9_500, stream=7, correlation=5)], info=Info(use_device="npu"), tracks=tracks
        )
        shown = EventList.of(session)
        outer, mm, call, matmul = (
            next(e for e in shown if e.name == n) for n in ("aten::linear", "aten::mm", "aclnnMatMul", "MatMul")
        )
        assert mm.kernels == [Kernel("MatMul", 0, 7.0)]
        assert (mm.device_time_total, mm.self_device_time_total) == (7, 7)
        assert (outer.device_time_total, outer.self_device_time_total) == (7, 0)
        assert (matmul.linked_correlation_id, call.linked_correlation_id, mm.linked_correlation_id) == (mm.id, mm.id, 0)
        assert matmul.id == call.id
        assert (mm["runtime_name"], mm["correlation_id"]) == ("aclnnMatMul", mm.id)
        rows = shown.key_averages()
        assert row(rows, "aten::linear").device_time_total == 7
        assert row(rows, "aten::mm").self_device_time_total == 7
        assert row(rows, "MatMul").self_device_time_total == 7
        assert row(rows, "MatMul").device_type == DeviceType.NPU


# Recordings of any shape -------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c"])


def threads_of(*kinds):
    """What several threads call: name, kind, time at the end, and gaps and calls inside."""
    kind, rest, gap = st.sampled_from(kinds), st.integers(1, 50), st.integers(0, 9)
    leaf = st.tuples(NAMES, kind, rest, st.just([]))
    calls = st.recursive(
        leaf, lambda inner: st.tuples(NAMES, kind, rest, st.lists(st.tuples(gap, inner), max_size=4)), max_leaves=12
    )
    return st.lists(st.lists(calls, max_size=4), min_size=1, max_size=3)


def lay_out(call, start_ns, tid, unit_ns) -> Event:
    """The event of a call: its children one after the other with the gaps between, then what it takes at the end."""
    name, kind, rest, children = call
    at, inside = start_ns, []
    for gap, child in children:
        inside.append(lay_out(child, at + gap * unit_ns, tid, unit_ns))
        at = inside[-1].end_ns
    return kind(name, start_ns, at + rest * unit_ns, *inside, tid=tid)


def recording(threads, unit_ns=1):
    recorded = []
    for tid, calls in enumerate(threads, 1):
        at = 0
        for call in calls:
            recorded.append(lay_out(call, at, tid, unit_ns))
            at = recorded[-1].end_ns
    return record(recorded, tracks=[Track(tid, tid) for tid in range(1, len(threads) + 1)]), recorded


@given(threads_of(op, scope, python_function))
def test_self_times_of_a_thread_are_its_time(threads):
    session, roots = recording(threads)
    own, spent = defaultdict(int), defaultdict(int)
    for e in EventList.of(session):
        assert e.self_cpu_time_total >= 0
        own[e.thread] += round(e.self_cpu_time_total * 1000)
    for root in roots:
        spent[root.tid] += root.end_ns - root.start_ns
    assert own == spent


@given(threads_of(op, scope, python_function))
def test_python_functions_leave_the_times_of_operators_alone(threads):
    numbers = itertools.count()
    roots = [with_own_name(root, numbers) for root in recording(threads)[1]]
    with_functions, without = record(roots), record([e for root in roots for e in without_functions(root)])
    times = [
        {e.name: e.self_cpu_time_total for e in EventList.of(session) if e["kind"] == "op"} for session in (with_functions, without)
    ]
    assert times[0] == times[1]


def with_own_name(event, numbers):
    label = event.label._replace(name=f"aten::{event.label.name}{next(numbers)}")  # a `Function` of the program has no namespace
    return event._replace(label=label, children=tuple(with_own_name(child, numbers) for child in event.children))


def without_functions(event):
    """The event without the Python functions in it; of a function, what is inside."""
    children = tuple(inner for child in event.children for inner in without_functions(child))
    return children if event.label.kind == "python_function" else (event._replace(children=children),)


@given(threads_of(op, scope, python_function))
def test_parents_and_children_agree(threads):
    shown = EventList.of(recording(threads)[0])
    for e in shown:
        assert all(child.cpu_parent is e for child in e.cpu_children)
        if e.cpu_parent is not None:
            assert e in e.cpu_parent.cpu_children
            assert (e.cpu_parent.thread, e.cpu_parent["start_ns"] <= e["start_ns"]) == (e.thread, True)
            assert e["end_ns"] <= e.cpu_parent["end_ns"]
    starts = [e["start_ns"] for e in shown]
    assert starts == sorted(starts)


@pytest.mark.filterwarnings("ignore:group_by_.* has no effect")
@given(threads_of(op, scope, python_function), st.tuples(st.booleans(), st.integers(0, 3), st.booleans()))
def test_averages_need_no_events(threads, grouping):
    session, _ = recording(threads)
    directly, from_events = EventList.averages_of(session, GroupBy(*grouping)), EventList.of(session).key_averages(*grouping)
    assert [facts_of(row) for row in directly] == [facts_of(row) for row in from_events]
    assert directly.table() == from_events.table()


def with_distinct_scopes(session):
    """Lists made by hand leave out a scope that is all there is in one of its name, as torch does; recorded scopes are never left out."""
    labels, label = list(session.labels), session.label.copy()
    for i in range(len(session)):
        if labels[label[i]].kind == "scope":
            labels.append(labels[label[i]]._replace(name=f"{labels[label[i]].name} {i}"))
            label[i] = len(labels) - 1
    return session.replace(labels=tuple(labels), label=label)


@pytest.mark.filterwarnings("ignore:group_by_.* has no effect")
@given(threads_of(op, scope))
def test_columns_and_events_made_by_hand_give_the_same_sums(threads):
    session, _ = recording(threads, unit_ns=1000)  # whole microseconds, which doubles add up without error
    session = with_distinct_scopes(session)
    recorded = EventList.of(session)
    by_hand = EventList(
        FunctionEvent(
            id=i,
            name=session.labels[session.label[i]].name,
            thread=int(session.track[i]) + 1,
            start_us=session.start_ns[i] / 1000,
            end_us=session.end_ns[i] / 1000,
            overload_name="",
            input_shapes=[],
            stack=[],
            scope=session.labels[session.label[i]].scope,
            flops=0,
            is_user_annotation=session.labels[session.label[i]].kind == "scope",
        )
        for i in range(len(session))
    )
    by_hand._build_tree()
    assert [e.name for e in recorded] == [e.name for e in by_hand]
    for options in itertools.product([False, True], [0, 2], [False, True]):
        for ours, theirs in zip(recorded.key_averages(*options), by_hand.key_averages(*options), strict=True):
            assert facts_of(ours) == facts_of(theirs)
    assert facts_of(recorded.total_average()) == facts_of(by_hand.total_average())
    assert recorded.key_averages().table() == by_hand.key_averages().table()
    assert recorded.table() == by_hand.table()


def facts_of(average):
    """A row without its links to events."""
    return {name: value for name, value in vars(average).items() if name not in ("cpu_parent", "_children")}


def test_averages_make_no_children_before_they_are_asked_for():
    session = record([scope("step", 0, 2000, *[op("aten::add", i, i + 1) for i in range(2000)])])
    step, add = EventList.averages_of(session)
    events = add._children._recording.events
    assert len(events) == 2  # one that describes each row
    assert [child.name for child in step.cpu_children] == ["aten::add"] * 2000
    assert len(events) == 2001
    step.cpu_children = None
    assert step.cpu_children is None
