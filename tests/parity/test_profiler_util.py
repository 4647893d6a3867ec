"""Events and lists of events are torch's: names, signatures, sums, and the text of tables to the letter."""

import inspect
import itertools
import json
import random
import warnings

import pytest
from tests.mindtorch_v2.profiler.by_hand import op, record

import mindtorch_v2.autograd.profiler_util as ours
from mindtorch_v2.profiler.device_type import DeviceType
from mindtorch_v2.profiler.experimental_config import RecordScope
from mindtorch_v2.profiler.output.event_list import EventList
from mindtorch_v2.profiler.output.kineto_results import EventType, KinetoResults

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.autograd.profiler_util")

pytestmark = pytest.mark.parity

HELPERS = [
    *("_attr_formatter", "_build_metadata", "_build_table", "_filter_name", "_filter_stack_entry", "_format_memory"),
    *("_format_time", "_format_time_share", "_rewrite_name"),
]
GROUPINGS = list(itertools.product([False, True], [0, 1, 3], [False, True]))
TABLES = [
    {},
    {"sort_by": "self_cpu_time_total"},
    {"sort_by": "cuda_time_total", "row_limit": 3},
    {"sort_by": "self_xpu_memory_usage", "row_limit": 5},
    {"sort_by": "count", "max_name_column_width": None, "max_shapes_column_width": None, "max_src_column_width": None},
    {"sort_by": "cpu_time", "header": "A model", "top_level_events_only": True, "time_unit": "ms"},
    {"row_limit": 0, "time_unit": "s", "max_name_column_width": 12, "max_shapes_column_width": 9, "max_src_column_width": 10},
    {"row_limit": -1, "sort_by": "cpu_memory_usage", "time_unit": "us"},
    {"sort_by": "speed"},
]


# Names and signatures ----------------------------------------------------------------------------------------------------------


def members(cls):
    return [name for name in dir(cls) if not name.startswith("__") and not hasattr(object, name)]


def parameters(function):
    """Names, kinds and defaults."""
    return [(p.name, p.kind, str(p.default)) for p in inspect.signature(function).parameters.values()]


def test_public_names():
    assert sorted(ours.__all__) == sorted(theirs.__all__)


@pytest.mark.parametrize("name", ["MEMORY_EVENT_NAME", "OUT_OF_MEMORY_EVENT_NAME"])
def test_constants(name):
    assert getattr(ours, name) == getattr(theirs, name)


@pytest.mark.parametrize("name", HELPERS)
def test_signatures_of_helpers(name):
    positional = [p for p in parameters(getattr(ours, name)) if p[1] is not inspect.Parameter.KEYWORD_ONLY]  # others are ours
    assert [p[2] for p in positional] == [p[2] for p in parameters(getattr(theirs, name))]


# Arguments that torch does not have, after all of its own.
OURS = {
    "EventList.key_averages(group_by_module)": "rows for each module",
    "EventList.table(max_width)": "a table that fits a terminal",
}


@pytest.mark.parametrize("name", theirs.__all__)
def test_members_and_their_signatures(name):
    our_class, their_class = getattr(ours, name), getattr(theirs, name)
    # a dictionary's and a list's own methods are Python's
    public = [member for member in members(their_class) if not hasattr(dict, member) and not hasattr(list, member)]
    assert [member for member in public if not hasattr(our_class, member)] == []
    for member in ["__init__", *public]:
        their_member = inspect.getattr_static(their_class, member)
        if isinstance(their_member, property):
            assert isinstance(inspect.getattr_static(our_class, member), property), member
        elif inspect.isfunction(their_member):
            added = [
                parameter for parameter in parameters(getattr(our_class, member)) if f"{name}.{member}({parameter[0]})" in OURS
            ]
            assert parameters(getattr(our_class, member)) == [*parameters(their_member), *added], member


@pytest.mark.parametrize("name", ["FunctionEvent", "FunctionEventAvg", "Interval"])
def test_attributes(name):
    arguments = {"FunctionEvent": (1, "a", 1, 0, 1), "FunctionEventAvg": (), "Interval": (0, 1)}[name]
    our_names, their_names = (set(vars(getattr(module, name)(*arguments))) for module in (ours, theirs))
    # is_user_annotation of torch's averages is there after the first event only
    assert our_names - their_names == ({"is_user_annotation"} if name == "FunctionEventAvg" else set())
    assert their_names - our_names == ({"cpu_children"} if name == "FunctionEventAvg" else set())  # a property here


def test_fields_of_tuples():
    assert ours.Kernel._fields == theirs.Kernel._fields
    assert ours.EventMetadata._fields == theirs.EventMetadata._fields
    assert list(ours._EVENT_METADATA_KEYS) == list(theirs._EVENT_METADATA_KEYS)


@pytest.mark.parametrize(
    ("mine", "name"),
    [(DeviceType, "_autograd.DeviceType"), (EventType, "_profiler._EventType"), (RecordScope, "_profiler.RecordScope")],
)
def test_members_of_enumerations(mine, name):
    their_enum = torch._C
    for part in name.split("."):
        their_enum = getattr(their_enum, part)
    numbers = {key: int(value) for key, value in their_enum.__members__.items()}
    assert {key: member.value for key, member in mine.__members__.items() if key != "NPU"} == numbers
    assert [str(member) for member in mine] == [f"{mine.__name__}.{key}" for key in numbers]


def test_kineto_results_have_torchs_methods():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
        torch.ones(2)
    their_results, our_results = prof.profiler.kineto_results, KinetoResults(record([op("aten::ones", 0, 1)]))

    def lacking(our_object, their_object):
        names = set(members(their_object)) - {"_pybind11_conduit_v1_"}
        return {name for name in names if not hasattr(our_object, name)}

    # the activities are Kineto's own objects; events() has their facts
    assert lacking(our_results, their_results) == {"trace_activities"}
    (our_event,), their_event = our_results.events(), their_results.events()[0]
    assert lacking(our_event, their_event) == set()
    for name in set(members(their_event)) - {"_pybind11_conduit_v1_", "device_type"}:
        assert type(getattr(our_event, name)()) is type(getattr(their_event, name)()), name
    (our_node,), their_node = our_results.experimental_event_tree(), their_results.experimental_event_tree()[0]
    assert lacking(our_node, their_node) == set()
    assert lacking(our_node.extra_fields, their_node.extra_fields) == set()


# Formats -----------------------------------------------------------------------------------------------------------------------

AMOUNTS = [0, 0.0004, 0.0005, 0.001, 1, 12.3456, 999.9994, 999.9995, 1000, 123456.789, 999999.9, 1_000_000, 1.5e9, -1, -1500.5]


@pytest.mark.parametrize("amount", AMOUNTS)
def test_formats(amount):
    assert ours._format_time(amount) == theirs._format_time(amount)
    assert ours._format_time_share(amount, 4321) == theirs._format_time_share(amount, 4321)
    assert ours._format_memory(int(amount * 1000)) == theirs._format_memory(int(amount * 1000))


@pytest.mark.parametrize(
    "name", ["aten::add", "ProfilerStep#12", "[memory]", "aten::is_leaf", "t", "profiler::_record_function_exit"]
)
def test_names(name):
    assert ours._filter_name(name) == theirs._filter_name(name)
    for wildcard in (False, True):
        assert ours._rewrite_name(name, wildcard) == theirs._rewrite_name(name, wildcard)
    assert ours.StringTable()[name] == theirs.StringTable()[name]


@pytest.mark.parametrize(
    "entry", ["m.py(3): f", "torch/autograd/__init__.py(9): backward", "torch/tensor.py(1): backward", "torch/tensor"]
)
def test_frames(entry):
    assert ours._filter_stack_entry(entry) == theirs._filter_stack_entry(entry)


def test_metadata():
    facts = {"stream": "7", "grid": "[1, 2, 3]", "warps per SM": "1.5", "Is asynchronized op": "true", "Collective name": '"all"'}
    assert tuple(ours._build_metadata(facts)) == tuple(theirs._build_metadata(facts))
    assert ours._build_metadata({"mine": "1"}) is theirs._build_metadata({"mine": "1"}) is None


def test_memory_records():
    class Record:
        def __init__(self, start_ns):
            self._start_ns = start_ns

        def start_ns(self):
            return self._start_ns

    records = [[Record(t), t] for t in (30, 10, 20, 20, 40)]
    for span in [(10, 20), (11, 39), (0, 100), (41, 50), (20, 20)]:
        found = [[r[1] for r in module.MemRecordsAcc(records).in_interval(*span)] for module in (ours, theirs)]
        assert found[0] == found[1]
    assert list(ours.MemRecordsAcc([]).in_interval(0, 1)) == []


# The same events in both libraries ---------------------------------------------------------------------------------------------

NAMES = ["aten::a", "aten::b", "aten::very_" + "long" * 18, "c"]
STACKS = [[], ["f.py(1): g", "h.py(2): k" * 9], ["f.py(1): g"]]


class Maker:
    """Makes the same random events whichever library it is given."""

    def __init__(self, module, device_types, seed):
        self.module, self.device_types, self.random = module, device_types, random.Random(seed)
        choose = self.random.choice
        self.device = choose([None, None, "cuda", "privateuse1"])
        self.shapes, self.stacks, self.overloads, self.flops, self.memory = (choose([False, True]) for _ in range(5))
        self.made = []

    def events(self):
        for thread in (1, 2):
            self.fill(0, 2000, 0, thread)
        if self.device is not None:
            self.add_kernels()
        options = {"use_device": self.device, "profile_memory": self.memory, "with_flops": self.flops}
        made = self.module.EventList(self.made, **options)
        made._build_tree()
        return made

    def fill(self, start, end, depth, thread):
        """Events one after the other, in eighths of a microsecond, each filled in turn."""
        at = start
        while at < end - 2 and depth < 4:
            first = at + self.random.randint(0, 20) / 8
            last = min(end, first + self.random.randint(0, 4000) / 8)
            if first >= last:
                return
            self.made.append(self.event(thread, first, last))
            self.fill(first, last, depth + 1, thread)
            at = last

    def event(self, thread, start, end):
        choose, number = self.random.choice, self.random.randint
        event = self.module.FunctionEvent(
            id=len(self.made) + 1,
            name=choose(NAMES),
            thread=thread,
            start_us=start,
            end_us=end,
            overload_name=choose(["", "Tensor", "out"]) if self.overloads else "",
            fwd_thread=thread,
            input_shapes=choose([[], [[2, 3], []], [[4]] * 9]) if self.shapes else [],
            stack=choose(STACKS) if self.stacks else [],
            scope=choose([0, 0, 0, 1, 7]),
            use_device=self.device,
            cpu_memory_usage=number(-(9**7), 9**7),
            device_memory_usage=number(-9, 9**6),
            is_async=number(0, 30) == 0,
            sequence_nr=number(-1, 5),
            flops=choose([0, 10, 10**7]) if self.flops else 0,
            trace_name="x",
            is_user_annotation=number(0, 4) == 0,
            node_id=3 if number(0, 40) == 0 else -1,
        )
        if self.device is not None and number(0, 2) == 0:
            event.append_kernel("k", 0, number(0, 80) / 8)
        event.is_legacy = self.device is not None and number(0, 9) == 0
        return event

    def add_kernels(self):
        for i in range(4):
            self.made.append(
                self.module.FunctionEvent(
                    id=1000 + i,
                    name=f"kernel{i % 2}",
                    thread=7,
                    start_us=i * 10,
                    end_us=i * 10 + self.random.randint(1, 80) / 8,
                    use_device=self.device,
                    device_type=getattr(self.device_types, "CUDA" if self.device == "cuda" else "PrivateUse1"),
                    input_shapes=[],
                    stack=[],
                    overload_name="",
                    flops=0,
                    is_user_annotation=i == 3,
                )
            )


@pytest.fixture(params=range(12))
def both(request):
    return Maker(ours, DeviceType, request.param).events(), Maker(theirs, torch.autograd.DeviceType, request.param).events()


def facts(event):
    """All attributes as text; other events by their numbers."""
    names = dict.fromkeys([*vars(event), "cpu_children"])  # a property of our averages
    return {name: _fact(name, getattr(event, name)) for name in names}


def _fact(name, value):
    if name == "cpu_parent":
        return None if value is None else value.id
    if name == "cpu_children":
        return [child.id for child in value or ()]
    return f"{value.start} {value.end}" if name == "time_range" else str(value)


def outcome(function):
    try:
        return function()
    except Exception as error:
        return type(error), str(error)


def test_trees(both):
    our_events, their_events = both
    assert [facts(e) for e in our_events] == [facts(e) for e in their_events]
    assert repr(list(our_events)) == repr(list(their_events))
    assert our_events.self_cpu_time_total == their_events.self_cpu_time_total
    assert facts(our_events.total_average()) == facts(their_events.total_average())


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_averages(both, grouping):
    our_rows, their_rows = (events.key_averages(*grouping) for events in both)
    assert [facts(r) for r in our_rows] == [facts(r) for r in their_rows]
    assert repr(list(our_rows)) == repr(list(their_rows))


def check_tables(our_list, their_list):
    """Torch's text, and a line behind it that counts."""
    for options in TABLES:
        our_text, their_text = (
            outcome(lambda rows=rows, options=options: rows.table(**options)) for rows in (our_list, their_list)
        )
        if isinstance(their_text, str):
            their_text = with_each_under_its_heading(their_text)
            assert our_text[: len(their_text)] == their_text, options
            assert our_text[len(their_text) :].startswith("Count: ")
            assert our_text[len(their_text) :].count("\n") == 1
        else:
            # ours says besides what can be asked for
            assert our_text[0] is their_text[0], options
            assert our_text[1].startswith(their_text[1]), options


def with_each_under_its_heading(text):
    """With stacks and operations, torch writes each under the other's heading, and the further places of a stack under the last one."""
    if "Source Location" not in text or "FLOPs" not in text:
        return text
    lines = text.split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("--"))
    after = next(i for i in range(first + 3, len(lines)) if lines[i].startswith("--"))
    *others, places, flops = [len(part) for part in lines[first].split()]
    start = sum(width + 2 for width in others)
    for i in range(first, after + 1):
        fields = lines[i][start : start + places], lines[i][start + places + 2 :].rstrip()
        if i in (first, first + 2, after):
            fields = "-" * flops, "-" * places
        elif i == first + 1:
            fields = lines[i][lines[i].rindex("Total ") :], "Source Location"
        lines[i] = f"{lines[i][:start]}{fields[0].strip():>{flops}}  {fields[1].strip():<{places}}  "
    return "\n".join(lines)


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_tables_of_averages(both, grouping):
    check_tables(*(events.key_averages(*grouping) for events in both))


def test_tables_of_events(both):
    check_tables(*both)


@pytest.mark.parametrize("metric", ["self_cpu_time_total", "self_cuda_time_total", "self_privateuse1_time_total", "cpu_time"])
def test_stacks(both, metric, tmp_path):
    texts = []
    for name, events in zip(("ours", "theirs"), both, strict=True):
        problem = outcome(lambda events=events, name=name: events.export_stacks(str(tmp_path / name), metric))
        texts.append((problem, (tmp_path / name).read_text() if problem is None else None))
    assert texts[0] == texts[1]


def test_traces(both, tmp_path):
    for name, events in zip(("ours", "theirs"), both, strict=True):
        events.export_chrome_trace(str(tmp_path / name))
    assert json.loads((tmp_path / "ours").read_text()) == json.loads((tmp_path / "theirs").read_text())


@pytest.mark.parametrize(
    "name", ["cuda_time", "cuda_time_total", "self_cuda_time_total", "self_cuda_memory_usage", "metadata_json"]
)
def test_old_names_warn_alike(name):
    def warnings_of(module):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            getattr(module.FunctionEvent(1, "a", 1, 0, 1), name)
        return [(w.category, str(w.message)) for w in caught]

    assert warnings_of(ours) == warnings_of(theirs)
    assert len(warnings_of(ours)) == 1


def test_a_profile_of_torch_shows_the_same_here():
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=True, with_flops=True) as prof:
        x = torch.randn(8, 8, requires_grad=True)
        torch.nn.functional.relu(x @ x).sum().backward()
    their_events = prof.events()
    moved = {event: ours.FunctionEvent(event.id, event.name, event.thread, 0, 0) for event in their_events}
    for event, mine in moved.items():
        vars(mine).update(vars(event))
        mine.device_type = DeviceType(int(event.device_type))
        mine.cpu_parent = moved.get(event.cpu_parent)
        mine.cpu_children = [moved[child] for child in event.cpu_children]
    our_events = EventList(moved.values(), profile_memory=True, with_flops=True)
    our_events._tree_built = True
    for grouping in GROUPINGS:
        check_tables(our_events.key_averages(*grouping), their_events.key_averages(*grouping))
