"""The profiler's public names, signatures and behaviour are those of PyTorch 2.13."""

import importlib
import inspect
import itertools
import logging
import re
import types
import warnings

import pytest

import mindtorch_v2
from mindtorch_v2.profiler import ProfilerAction

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

MODULES = ["profiler", "profiler.profiler", "autograd.profiler", "autograd.profiler_util", "profiler.itt"]

# What is not torch's, and why. A key is `module.name`, `Class.attribute` or, for signatures, `Class.method(argument)`.
DIFFERENCES = {
    "autograd.profiler.profile.config": "hands a C++ object to the C++ recorder; there is neither here",
    "profile.action_map": "in torch an attribute of the instance, whose bound methods would keep the profiler alive; here a property",
    "profile.session": "ours: the recording as columns",
    "profile.by_module": "ours: the time of each module, forward and backward",
    "_KinetoProfile.by_module": "ours: the time of each module, forward and backward",
    "profile.export_report": "ours: a page of the recording",
    "_KinetoProfile.export_report": "ours: a page of the recording",
    "profile.leaks": "ours: what was made inside and is alive at the end",
    "_KinetoProfile.leaks": "ours: what was made inside and is alive at the end",
    "profile.__init__(sample_steps)": "ours: which steps are recorded",
    "profile.__init__(bounds)": "ours: which events are kept, and a file that they are written to meanwhile",
    "profile.__init__(background)": "ours: handlers beside the program",
    "_KinetoProfile.__init__(bounds)": "ours: which events are kept, and a file that they are written to meanwhile",
    "profile.key_averages(group_by_module)": "ours: rows for each module",
    "_KinetoProfile.key_averages(group_by_module)": "ours: rows for each module",
    "EventList.key_averages(group_by_module)": "ours: rows for each module",
    "profile.summary": "ours: where the wall time of the recording went",
    "_KinetoProfile.summary": "ours: where the wall time of the recording went",
    "profile.table(max_width)": "ours: a table that fits a terminal",
    "profile.table": "ours, on `torch.profiler.profile`: the events as a table",
    "_KinetoProfile.table": "ours: the events as a table",
    "profile.self_cpu_time_total": "ours, on `torch.profiler.profile`: as on the profiler below it",
    "_KinetoProfile.self_cpu_time_total": "ours: as on the profiler below it",
    "profile.advise": "ours: what could be faster",
    "_KinetoProfile.advise": "ours: what could be faster",
    "EventList.table(max_width)": "ours: a table that fits a terminal",
    "EventList.of": "ours: a list of events over a session",
    "EventList.averages_of": "ours: rows of averages over a session",
    "FunctionEvent.module": "ours: where the module stands that the event belongs to",
    "FunctionEvent.module_hierarchy": "ours: the same, as torch writes it in traces",
    "FunctionEvent.phase": "ours: forward or backward",
    "FunctionEventAvg.module": "ours: of rows that are grouped by module",
    "FunctionEventAvg.phase": "ours: of rows that are grouped by module",
    "FunctionEventAvg.cpu_children": "in torch an attribute of the instance, here a property: a step has a million, which are made when somebody asks",
    "FunctionEventAvg.describe": "ours: fills a row in from columns",
    "FormattedTimesMixin.gflops_per_second": "ours: the rate of counted floating point operations",
    "FunctionEvent.gflops_per_second": "ours: the rate of counted floating point operations",
    "FunctionEventAvg.gflops_per_second": "ours: the rate of counted floating point operations",
    "profile.kineto_results": "in torch an attribute of the instance, here a property: made when somebody asks",
    "emit_itt.tool": "ours: the name in messages",
    "emit_nvtx.tool": "ours: the name in messages",
    "ProfilerActivity.HPU": "a device that this runtime does not have",
    "ProfilerActivity.MTIA": "a device that this runtime does not have",
    "ProfilerActivity.XPU": "a device that this runtime does not have",
    "ProfilerActivity.NPU": "ours: the device; CUDA, GPU and PrivateUse1 are other names of it",
    "ProfilerActivity.GPU": "ours: another name of the device",
    "DeviceType.NPU": "ours: PrivateUse1 by its name here",
    "_ExperimentalConfig(profile_all_threads)": "all threads are recorded by default, because that is what users ask torch for",
}


def modules(path):
    return importlib.import_module(f"torch.{path}"), importlib.import_module(f"mindtorch_v2.{path}")


def public_names(module):
    """`__all__`, and what else is public and of torch's own making; not types of its C++ side."""

    def is_own(name):
        value = getattr(module, name)
        return getattr(value, "__module__", "").startswith(("torch.profiler.profiler", "torch.autograd.profiler", module.__name__))

    return sorted({*getattr(module, "__all__", ()), *(n for n in dir(module) if not n.startswith("_") and is_own(n))})


def parameters(function):
    """Names, kinds and defaults; None for what is written in C++. Defaults are compared as texts: each library has its own enums."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [(p.name, p.kind.name, "" if p.default is p.empty else str(p.default)) for p in found]


def parameters_without_ours(name, function):
    """As `parameters`, without those at the end that the table of differences has."""
    found = parameters(function)
    while found and f"{name}({found[-1][0]})" in DIFFERENCES:
        found.pop()
    return found


def public_attributes(cls):
    members = getattr(cls, "__members__", {})  # enums: what dir() says of them differs between Python and C++
    return set(members) if members else {name for name in dir(cls) if not name.startswith("_")}


class TestNames:
    @pytest.mark.parametrize("path", MODULES)
    def test_every_public_name_is_there(self, path):
        theirs, ours = modules(path)
        assert [name for name in public_names(theirs) if not hasattr(ours, name)] == []
        assert set(getattr(ours, "__all__", ())) >= set(getattr(theirs, "__all__", ()))

    @pytest.mark.parametrize("path", MODULES)
    def test_signatures(self, path):
        theirs, ours = modules(path)
        different = {}
        for name in public_names(theirs):
            a, b = getattr(theirs, name), getattr(ours, name)
            place = name
            if isinstance(a, type):
                a, b, place = a.__init__, b.__init__, f"{name}.__init__"
            if callable(a) and parameters(a) not in (None, found := parameters_without_ours(place, b)):
                different[name] = parameters(a), found
        assert not different

    @pytest.mark.parametrize("path", MODULES)
    def test_classes_have_the_same_public_attributes_with_the_same_signatures(self, path):
        theirs, ours = modules(path)
        different = []
        for name in public_names(theirs):
            a, b = getattr(theirs, name), getattr(ours, name)
            if not isinstance(a, type):
                continue
            only_one = public_attributes(a) ^ public_attributes(b)
            different += [f"{name}.{x}" for x in only_one if not {f"{name}.{x}", f"{path}.{name}.{x}"} & DIFFERENCES.keys()]
            for x in public_attributes(a) & public_attributes(b) if not hasattr(a, "__members__") else ():
                was, is_now = inspect.getattr_static(a, x), inspect.getattr_static(b, x)
                if isinstance(was, property) != isinstance(is_now, property):
                    different.append(f"{name}.{x} is a {type(is_now).__name__}, not a {type(was).__name__}")
                elif inspect.isroutine(getattr(a, x)):
                    wanted, found = parameters(getattr(a, x)), parameters_without_ours(f"{name}.{x}", getattr(b, x))
                    if wanted not in (None, found):
                        different.append(f"{name}.{x}{found}, not {wanted}")
        assert not different

    @pytest.mark.parametrize("path", MODULES)
    def test_classes_derive_from_the_same(self, path):
        theirs, ours = modules(path)
        for name in public_names(theirs):
            a, b = getattr(theirs, name), getattr(ours, name)
            if isinstance(a, type) and a.__module__.startswith("torch."):
                known = {c.__name__ for c in a.__mro__} - {"object", "pybind11_object"}
                assert known <= {c.__name__ for c in b.__mro__}, name

    def test_the_table_of_differences_is_true(self):
        """Nothing stands in the table that is not different."""
        import torch

        for key in DIFFERENCES:
            if match := re.fullmatch(r"(\w+)\.(\w+)\((\w+)\)", key):
                pairs = [tuple(getattr(m, match[1], None) for m in modules(path)) for path in MODULES]
                pairs = [pair for pair in pairs if all(hasattr(cls, match[2]) for cls in pair)]
                names = [{n for n, *_ in parameters(getattr(cls, match[2]))} for pair in pairs for cls in pair]
                assert any(match[3] in theirs ^ ours for theirs, ours in zip(names[::2], names[1::2], strict=True)), key
            if "(" in key:
                continue
            *place, name, attribute = key.split(".")
            places = [".".join(place)] if place else MODULES
            pairs = [tuple(getattr(m, name, None) for m in modules(path)) for path in places]
            assert any((attribute in public_attributes(a)) != (attribute in public_attributes(b)) for a, b in pairs if a and b), key
        assert "profile_all_threads: bool = False" in torch.profiler._ExperimentalConfig.__init__.__doc__
        assert mindtorch_v2.profiler._ExperimentalConfig().profile_all_threads is True

    def test_options_of_the_experimental_config(self):
        import torch

        text = torch.profiler._ExperimentalConfig.__init__.__doc__
        names = re.findall(r"(\w+): (?:collections|bool|str|SupportsInt|int|float)", text)
        ours = parameters(mindtorch_v2.profiler._ExperimentalConfig.__init__)
        assert len(names) > 8
        assert names == [name for name, _, _ in ours if name != "self"]

    def test_members_of_enumerations(self):
        import torch

        for name in ("ProfilerAction", "DeviceType", "RecordScope"):
            a, b = getattr(torch.profiler, name).__members__, getattr(mindtorch_v2.profiler, name).__members__
            assert {k: int(v.value) for k, v in a.items()} == {
                k: int(v.value) for k, v in b.items() if f"{name}.{k}" not in DIFFERENCES
            }
        activity = mindtorch_v2.profiler.ProfilerActivity
        assert activity.CUDA is activity.PrivateUse1 is activity.NPU


def both(function):
    """What a function of the library gives, or raises, with torch and with us."""
    import torch

    results = []
    for library in (torch, mindtorch_v2):
        try:
            results.append(function(library))
        except Exception as error:
            results.append(error)
    return results


class TestSchedules:
    def test_every_step_of_every_schedule(self):
        import torch

        counts = itertools.product((0, 1, 3), (0, 1, 2), (1, 2), (0, 1, 2), (0, 2), (0, 1))
        for wait, warmup, active, repeat, skip_first, skip_first_wait in counts:
            options = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat}
            options |= {"skip_first": skip_first, "skip_first_wait": skip_first_wait}
            a, b = torch.profiler.schedule(**options), mindtorch_v2.profiler.schedule(**options)
            assert [a(i).name for i in range(25)] == [b(i).name for i in range(25)], options

    @pytest.mark.parametrize(
        "options",
        [
            {"wait": -1, "warmup": 0, "active": 1},
            {"wait": 0, "warmup": -1, "active": 1},
            {"wait": 0, "warmup": 0, "active": 0},
            {"wait": 0, "warmup": 0, "active": 1, "repeat": -1},
            {"wait": 0, "warmup": 0, "active": 1, "skip_first": -1},
            {"wait": 0, "active": 1},
        ],
    )
    def test_refused(self, options):
        theirs, ours = both(lambda lib: lib.profiler.schedule(**options))
        assert isinstance(theirs, Exception)
        assert isinstance(ours, type(theirs))

    def test_a_negative_step(self):
        theirs, ours = both(lambda lib: lib.profiler.schedule(wait=0, warmup=1, active=1)(-1))
        assert isinstance(ours, type(theirs))

    def test_no_warmup_warns(self):
        def warnings_of(lib):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                lib.profiler.schedule(wait=0, warmup=0, active=1)
            return [(w.category, str(w.message)) for w in seen]

        theirs, ours = both(warnings_of)
        assert theirs == ours

    @pytest.mark.parametrize(
        "text", ["W1R1S1", "NNWRRS", "RRS", "SSS", "WRSWRS", "NWRSNNWRSN", "WN", "RN", "WWN", "SNR", "WRRRSS", "SRSR", "NSWN"]
    )
    def test_actions_of_any_schedule(self, text):
        """The same actions in each step, handlers called at the same steps, the same warnings, the same events left.

        Without warm-up after RECORD: there torch stops, prepares nothing, and the next start takes the process down.
        """
        letters = {"N": "NONE", "W": "WARMUP", "R": "RECORD", "S": "RECORD_AND_SAVE", "1": "NONE"}

        def run(lib):
            action = lambda step: getattr(lib.profiler.ProfilerAction, letters[text[step % len(text)]])
            seen = []
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                prof = lib.profiler.profile(
                    activities=[lib.profiler.ProfilerActivity.CPU],
                    schedule=action,
                    on_trace_ready=lambda p: seen.append((p.step_num, names(p))),
                )
                seen.append((prof.step_num, prof.current_action.name))
                with prof:
                    for _ in range(len(text) - 1):
                        lib.ones(2).neg()
                        prof.step()
                        seen.append((prof.step_num, prof.current_action.name))
            return seen, sorted(str(w.message) for w in warned if str(w.message).startswith("Incorrect schedule"))

        def names(prof):
            return [e.name for e in prof.events() if e.name == "aten::neg"]

        theirs, ours = both(run)
        assert ours == theirs


class TestErrors:
    @pytest.mark.parametrize(
        "call",
        [
            lambda lib: lib.profiler.profile(activities=[]),
            lambda lib: lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU] * 2).activities and None,
            lambda lib: lib.profiler.profile().events(),
            lambda lib: lib.profiler.profile().key_averages(),
            lambda lib: lib.profiler.profile().export_chrome_trace("nowhere.json"),
            lambda lib: lib.profiler.profile().export_stacks("nowhere.txt"),
            lambda lib: lib.profiler.profile(True),
            lambda lib: lib.profiler.profile(unknown=True),
            lambda lib: finished(lib).export_stacks("nowhere.txt"),
            lambda lib: finished(lib).export_memory_timeline("nowhere.json"),
            lambda lib: finished(lib).key_averages()[0]["key"],
            lambda lib: finished(lib).key_averages().table(sort_by="no_such_column"),
            lambda lib: finished(lib).add_metadata("key", 3),
            lambda lib: lib.profiler._KinetoProfile().start_trace(),
            lambda lib: lib.profiler._KinetoProfile().stop_trace(),
            lambda lib: lib.autograd.profiler.profile(use_cpu=False),
            lambda lib: lib.autograd.profiler.EventList([1, 2]).export_stacks("x", "no_such_metric"),
            lambda lib: lib.profiler.record_function(),
            lambda lib: lib.profiler.profile(post_processing_timeout_s=-1).start(),
        ],
    )
    def test_the_same_type(self, call, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        theirs, ours = both(call)
        if isinstance(theirs, Exception):
            assert isinstance(ours, type(theirs)), f"{theirs!r} is {ours!r}"
        else:
            assert not isinstance(ours, Exception), f"{ours!r}, and torch raises nothing"


def test_torchs_logger_says_that_events_were_not_made_in_time(monkeypatch):
    logger = logging.getLogger("torch.autograd.profiler")

    def words(lib):
        lines = []
        monkeypatch.setattr(logger, "handle", lines.append)  # torch gives its loggers handlers of its own
        events = finished(lib, post_processing_timeout_s=0).events()
        return list(events), [(line.name, line.levelname, line.getMessage()) for line in lines]

    theirs, ours = both(words)
    assert ours == theirs
    assert [len(part) for part in theirs] == [0, 1]


def finished(lib, **options):
    with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU], **options) as prof:
        x = lib.ones(2, 3, requires_grad=True)
        with lib.profiler.record_function("block"):
            (x * 2).sum().backward()
    return prof


class TestResults:
    def test_attributes_of_a_profiler_before_it_starts(self):
        def facts(lib):
            prof = lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU])
            return {
                k: v if v is None or isinstance(v, bool | int | str | dict) else type(v).__name__ for k, v in vars(prof).items()
            }

        theirs, ours = both(facts)
        theirs = {k: v for k, v in theirs.items() if not k.startswith("_")}
        for name in ("action_map", "activities", "profiler"):
            theirs.pop(name, None)
        assert {k: ours.get(k, "missing") for k in theirs} == theirs

    @pytest.mark.parametrize("options", [{}, {"record_shapes": True}])
    def test_the_table_has_the_same_header(self, options):
        def header(lib):
            lines = finished(lib, **options).key_averages(group_by_input_shape=bool(options)).table(row_limit=3).splitlines()
            return [re.split(r"\s{2,}", line.strip()) for line in lines if "# of Calls" in line]

        theirs, ours = both(header)
        assert theirs
        assert ours == theirs

    def test_types_of_the_attributes_of_events(self):
        def types_of(lib):
            events = {e.name: e for e in finished(lib, record_shapes=True).events()}
            return {
                (name, k): type(v).__name__
                for name in ("aten::mul", "MulBackward0", "block")
                for k, v in inspect.getmembers(events[name])
                if not k.startswith("_") and not isinstance(v, types.MethodType)
            }

        theirs, ours = both(types_of)
        assert len(theirs) > 100
        differences = {k: (v, ours.get(k, "missing")) for k, v in theirs.items() if ours.get(k, "missing") != v}
        # lists and events of ours are subclasses that fill themselves in; numbers are as good in one type as in the other
        alike = {
            ("FunctionEvent", "RecordedEvent"),
            ("Interval", "_RecordedInterval"),
            ("int", "float"),
            ("float", "int"),
            ("int", "RecordScope"),
        }
        assert {k: v for k, v in differences.items() if v not in alike} == {}

    def test_texts_of_profilers(self):
        theirs, ours = both(lambda lib: [f(lib.autograd.profiler.profile()) for f in (repr, str)])
        assert ours == theirs
        theirs, ours = both(
            lambda lib: re.sub("[0-9a-f]{8,}", "", repr(lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU])))
        )
        assert ours.replace("mindtorch_v2", "torch") == theirs
        theirs, ours = both(lambda lib: str(finished(lib).profiler).splitlines()[1].split()[:3])
        assert ours == theirs

    @pytest.mark.parametrize("gzipped", [False, True])
    def test_names_of_traces_for_tensorboard(self, gzipped, tmp_path):
        def file_names(lib):
            folder = tmp_path / lib.__name__
            handler = lib.profiler.tensorboard_trace_handler(str(folder), worker_name="one", use_gzip=gzipped)
            handler(finished(lib))
            return [re.sub(r"\d{15,}", "TIME", p.name) for p in folder.iterdir()]

        theirs, ours = both(file_names)
        assert ours == theirs == ["one.TIME.pt.trace.json" + ".gz" * gzipped]

    def test_a_worker_has_the_name_of_host_and_process(self, tmp_path):
        def file_names(lib):
            folder = tmp_path / lib.__name__
            lib.profiler.tensorboard_trace_handler(str(folder))(finished(lib))
            return [re.sub(r"\d{15,}", "TIME", p.name) for p in folder.iterdir()]

        theirs, ours = both(file_names)
        assert ours == theirs

    def test_steps_without_a_schedule(self):
        def numbers(lib):
            seen = []
            with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU]) as prof:
                for _ in range(3):
                    seen.append((prof.step_num, prof.current_action.name))
                    prof.step()
            return seen, prof.step_num, prof.current_action.name

        theirs, ours = both(numbers)
        assert ours == theirs

    def test_the_table_of_actions_has_every_reachable_pair(self):
        def pairs(lib):
            prof = lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU])
            return {
                tuple(None if action is None else action.name for action in pair)
                for pair, calls in prof.action_map.items()
                if not any("unreachable" in str(call) for call in calls)
            }

        theirs, ours = both(pairs)
        assert ours - {("NONE", None)} == theirs  # ours does nothing there, as torch does for what is not in the table


def test_actions_are_one_enumeration():
    assert ProfilerAction is mindtorch_v2.profiler.profiler.ProfilerAction
