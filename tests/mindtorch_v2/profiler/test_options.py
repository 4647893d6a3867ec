"""Each option of the profiler has its effect, or is refused."""

import dataclasses
import gc
import inspect
import json
import re
import typing
import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import (
    ProfilerActivity,
    _ExperimentalConfig,
    _KinetoProfile,
    profile,
    record_function,
    supported_activities,
    validate,
)
from mindtorch_v2.profiler.options import OptionAttributes, Options

x = torch.ones(2, 3)


def record(**options):
    with profile(**options) as prof, record_function("scope"):
        x + x
    return prof


def trace_of(prof, tmp_path):
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    assert validate(path) == []
    return json.loads(path.read_text())


def args_of(prof, tmp_path, name="aten::add"):
    (args,) = [r["args"] for r in trace_of(prof, tmp_path)["traceEvents"] if r["ph"] == "X" and r["name"] == name]
    return args


def names(prof):
    return [e["name"] for e in prof.events()]


class TestExperimentalConfig:
    def configured(self, *, with_stack=False, **fields):
        return record(experimental_config=_ExperimentalConfig(**fields), with_stack=with_stack)

    def test_capture_overload_names(self):
        def overloads(prof):
            return {e["name"]: e.overload_name for e in prof.events()}

        assert overloads(self.configured())["aten::add"] == ""
        named = self.configured(capture_overload_names=True)
        assert overloads(named) == {"scope": "", "aten::add": "Tensor"}
        rows = {row.key: row.overload_name for row in named.key_averages(group_by_overload_name=True)}
        assert rows["aten::add"] == "Tensor"

    def test_verbose_shows_the_stack_a_second_time(self, tmp_path):
        assert "Call stack" not in args_of(self.configured(with_stack=True), tmp_path)
        assert "test_options.py" in args_of(self.configured(with_stack=True, verbose=True), tmp_path)["Call stack"]

    def test_disable_external_correlation(self, tmp_path):
        assert "External id" in args_of(self.configured(), tmp_path)
        assert "External id" not in args_of(self.configured(disable_external_correlation=True), tmp_path)

    @pytest.mark.usefixtures("no_other_collection")
    def test_record_python_gc_info(self):
        def collect(**fields):
            with profile(experimental_config=_ExperimentalConfig(**fields)) as prof:
                gc.collect()
            return names(prof)

        assert collect() == []
        assert collect(record_python_gc_info=True) == ["Python GC"]

    def test_trace_only_makes_no_events(self, tmp_path):
        prof = self.configured(trace_only=True)
        for ask in (prof.events, prof.key_averages):
            with pytest.raises(RuntimeError, match="trace_only=True"):
                ask()
        assert args_of(prof, tmp_path)["runtime_name"] == "dispatch_kernel"

    def test_trace_only_gives_way_to_stacks(self):
        with pytest.warns(UserWarning, match="incompatible with with_stack"):
            prof = self.configured(trace_only=True, with_stack=True)
        assert "aten::add" in names(prof)

    def test_expose_kineto_event_metadata(self):
        def metadata(prof):
            (e,) = [e for e in prof.events() if e["name"] == "aten::add"]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                return e.metadata_json

        assert not metadata(self.configured())
        assert "Ev Idx" in metadata(self.configured(expose_kineto_event_metadata=True))

    def test_adjust_profiler_step_is_how_steps_always_are(self):
        assert names(self.configured(adjust_profiler_step=True)) == ["scope", "aten::add"]

    @pytest.mark.parametrize(
        "field",
        [
            {"profiler_metrics": ["kineto__cuda_core_flops"]},
            {"profiler_measure_per_kernel": True},
            {"performance_events": ["cycles"]},
            {"enable_cuda_sync_events": True},
            {"custom_profiler_config": "x"},
            {"adjust_timestamps": True},
        ],
    )
    def test_what_has_no_effect_is_refused(self, field):
        with pytest.raises(ValueError, match=f"{next(iter(field))}=….* has no effect here"):
            _ExperimentalConfig(**field)


class TestActivities:
    def test_the_cpu_is_supported(self):
        assert ProfilerActivity.CPU in supported_activities()
        assert profile().activities == supported_activities()

    def test_devices_of_other_names_are_the_npu(self):
        assert ProfilerActivity.CUDA is ProfilerActivity.GPU is ProfilerActivity.PrivateUse1 is ProfilerActivity.NPU

    @pytest.mark.parametrize("activity", ["CUDA", "NPU", "PrivateUse1"])
    @pytest.mark.parametrize("error", [AssertionError, ValueError])
    def test_a_device_that_is_not_there_alone(self, activity, error):
        prof = profile(activities=[getattr(ProfilerActivity, activity)])
        with (
            pytest.warns(UserWarning, match="NPU is not available"),
            pytest.raises(error, match=r"no device of the kind NPU is available here; .* add ProfilerActivity\.CPU"),
        ):
            prof.start()
        with profile() as again:  # nothing is left running
            torch.ones(2)
        assert again.events()

    @pytest.mark.parametrize("activities", [[], (), set()])
    def test_none_at_all_are_refused(self, activities):
        with pytest.raises(ValueError, match="No valid profiler activities"):
            profile(activities=activities)

    def test_one_twice_is_refused(self):
        with pytest.raises(ValueError, match="more than once"):
            profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CPU])

    @pytest.mark.parametrize(
        ("types", "kinds"),
        [(["CPU_OP"], {"op"}), (["USER_ANNOTATION"], {"scope"}), (["PYTHON_FUNCTION"], {"python_function"})],
    )
    def test_filters_let_their_types_of_events_through(self, types, kinds):
        prof = record(activities=[{ProfilerActivity.CPU: types}], with_stack=True)
        assert {e["kind"] for e in prof.events()} == kinds

    def test_an_unknown_type_is_refused_naming_the_known(self):
        with pytest.raises(RuntimeError, match=r"Unknown or non-member activity type name: 'KERNEL'.*CPU_OP"):
            profile(activities=[{ProfilerActivity.CPU: ["KERNEL"]}])


class TestMetadata:
    def test_later_values_replace_earlier_ones(self, tmp_path):
        prof = profile()
        prof.preset_metadata_json("a", "1")
        with prof:
            prof.add_metadata_json("a", "2")
        assert trace_of(prof, tmp_path)["a"] == 2
        prof.add_metadata("a", "three")
        assert trace_of(prof, tmp_path)["a"] == "three"

    def test_the_session_is_made_anew_for_what_is_added_only(self):
        prof = record()
        assert prof.session is prof.session
        prof.add_metadata("a", "text")
        assert prof.session.info.metadata["a"] == "text"

    def test_presets_are_in_every_cycle_and_what_is_added_stays(self, tmp_path):
        found = []
        prof = profile(
            schedule=lambda step: torch.profiler.ProfilerAction.RECORD_AND_SAVE,
            on_trace_ready=lambda p: found.append(trace_of(p, tmp_path)),
        )
        prof.preset_metadata_json("preset", '"here"')
        with prof:
            prof.add_metadata("added", "in step 0")
            prof.step()
        assert [(t["preset"], t["added"]) for t in found] == [("here", "in step 0")] * 2

    @pytest.mark.parametrize("value", [5, None, b"bytes", ["list"], {"a": 1}])
    def test_what_is_no_text_is_refused(self, value):
        with pytest.raises(AttributeError, match="add_metadata takes a str"):
            profile().add_metadata("key", value)

    def test_flags_are_metadata_as_in_torch(self, tmp_path):
        trace = trace_of(record(record_shapes=True, with_stack=True), tmp_path)
        assert (trace["record_shapes"], trace["with_stack"]) == (1, 1)
        assert "record_shapes" not in trace_of(record(), tmp_path)

    @pytest.mark.parametrize(
        "key", ["traceEvents", "schemaVersion", "traceName", "baseTimeNanoseconds", "displayTimeUnit", "deviceProperties"]
    )
    def test_keys_of_the_format_cannot_be_taken(self, key, tmp_path):
        prof = record()
        prof.add_metadata(key, "mine")
        path = tmp_path / "trace.json"
        prof.export_chrome_trace(str(path))
        assert validate(path) == []
        pairs = json.loads(path.read_text(), object_pairs_hook=lambda pairs: pairs)
        assert len({k for k, _ in pairs}) == len(pairs)


class TestTraceIds:
    def test_every_recording_has_an_id_of_its_own(self, tmp_path):
        prof = profile()
        assert prof.get_trace_id() is None
        ids = []
        for _ in range(2):
            with prof:
                x + x
            ids.append(prof.get_trace_id())
            assert trace_of(prof, tmp_path)["trace_id"] == ids[-1]
        assert ids[0] != ids[1]
        assert all(re.fullmatch(r"[0-9A-F]{32}", i) for i in ids)

    def test_ids_can_be_made_by_the_user(self, tmp_path):
        numbers = iter(range(10))
        prof = profile(custom_trace_id_callback=lambda: f"run-{next(numbers)}")
        with prof:
            x + x
        assert prof.get_trace_id() == "run-0"
        assert trace_of(prof, tmp_path)["trace_id"] == "run-0"
        prof.set_custom_trace_id_callback(lambda: "other")
        with prof:
            x + x
        assert prof.get_trace_id() == "other"


class TestStatistics:
    def test_events_are_counted_when_they_are_made(self):
        with profile() as prof:
            x + x
        stats = prof._stats()
        assert (stats.number_of_events, stats.function_events_build_tree_call_duration_us) == (0, 0)
        prof.events()
        assert stats.number_of_events == 1
        assert stats.function_events_build_tree_call_duration_us > 0


class TestTimeout:
    def test_events_beyond_the_time_are_left_out_and_torchs_logger_says_so(self, caplog):
        with profile(post_processing_timeout_s=0) as prof:
            for _ in range(10):
                x + x
        with caplog.at_level("WARNING", logger="torch.autograd.profiler"):
            assert list(prof.events()) == []
            assert list(prof.events()) == []  # and says it once
        (line,) = caplog.records
        assert (line.name, line.levelname) == ("torch.autograd.profiler", "WARNING")
        words = "Profiler _parse_kineto_results timed out after 0.000 seconds, returning partial results with 0 events"
        assert line.getMessage() == words

    def test_enough_time_leaves_nothing_out(self, caplog):
        assert names(record(post_processing_timeout_s=100.0)) == ["scope", "aten::add"]
        assert caplog.records == []

    def test_less_than_nothing_is_refused(self):
        with pytest.raises(ValueError, match="non-negative"):
            profile(post_processing_timeout_s=-1.0).start()


class TestDeprecated:
    def test_use_cuda(self):
        with pytest.warns(FutureWarning, match="use_cuda"):
            prof = profile(use_cuda=False)
        assert prof.activities == {ProfilerActivity.CPU}


class TestOptions:
    def test_attributes_are_the_options(self):
        assert typing.get_type_hints(OptionAttributes) == typing.get_type_hints(Options)

    @pytest.mark.parametrize("kind", [profile, _KinetoProfile, torch.autograd.profiler.profile])
    def test_every_option_is_an_argument_and_an_attribute(self, kind):
        made = kind()
        own = {"activity_filters", "use_device", "activities"}  # arguments of one of the profilers, attributes of both
        for option in dataclasses.fields(Options):
            assert option.name in vars(made)
            assert option.name in inspect.signature(kind).parameters or option.name in own

    @pytest.mark.parametrize("kind", [profile, _KinetoProfile, torch.autograd.profiler.profile])
    def test_an_attribute_that_is_set_counts_from_the_next_recording_on(self, kind):
        prof = kind()
        prof.record_shapes = True
        start, stop = ("__enter__", "__exit__") if kind is torch.autograd.profiler.profile else ("start", "stop")
        getattr(prof, start)()
        x + x
        getattr(prof, stop)(*[None] * 3 * (stop == "__exit__"))
        assert prof.session.info.record_shapes

    def test_options_do_not_change(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            Options().record_shapes = True
