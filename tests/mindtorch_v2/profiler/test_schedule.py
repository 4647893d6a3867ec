"""Steps and schedules: what is recorded when, and what is kept."""

import itertools
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import dispatcher, keys
from mindtorch_v2.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule

NONE, WARMUP, RECORD, SAVE, STOPPED = ProfilerAction
x = torch.ones(2)


def cycle(wait, warmup, active):
    return [NONE] * wait + [WARMUP] * warmup + [RECORD] * (active - 1) + [SAVE]


def actions_by_the_book(steps, *, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """The actions of the first steps, cycle after cycle."""
    cycles = itertools.count() if repeat == 0 else range(repeat)
    actions = [NONE] * skip_first
    for i in cycles:
        actions += cycle(0 if i == 0 and skip_first_wait else wait, warmup, active)
        if len(actions) >= steps:
            break
    return (actions + [NONE] * steps)[:steps]


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
@pytest.mark.parametrize("wait", [0, 1, 3])
@pytest.mark.parametrize("warmup", [0, 1, 2])
@pytest.mark.parametrize("active", [1, 2, 4])
@pytest.mark.parametrize("skip_first_wait", [0, 1, 5])
def test_actions_of_all_numbers(wait, warmup, active, skip_first_wait):
    for repeat, skip_first in itertools.product((0, 1, 2), (0, 1, 4)):
        numbers = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat}
        numbers |= {"skip_first": skip_first, "skip_first_wait": skip_first_wait}
        of_step = schedule(**numbers)
        assert [of_step(step) for step in range(30)] == actions_by_the_book(30, **numbers), numbers


def test_a_schedule_without_warmup_warns():
    with pytest.warns(UserWarning, match="won't be using warmup"):
        schedule(wait=1, warmup=0, active=1)


def test_a_schedule_refuses_steps_below_0():
    with pytest.raises(ValueError, match="non-negative"):
        schedule(wait=1, warmup=1, active=1)(-1)


def run(actions, **options):
    """Follow these actions, one addition in each step."""
    with profile(schedule=lambda step: actions[step], **options) as prof:
        for step in range(len(actions)):
            assert (prof.step_num, prof.current_action) == (step, actions[step])
            x + x
            if step < len(actions) - 1:
                prof.step()
    return prof


def steps_of(prof, name="aten::add"):
    return [e["step"] for e in prof.events() if e["name"] == name]


class TestSteps:
    def test_steps_are_rows_around_what_happens_in_them(self):
        prof = run([WARMUP, RECORD, SAVE])
        assert [e["name"] for e in prof.events()] == ["ProfilerStep#1", "aten::add", "ProfilerStep#2", "aten::add"]
        assert [e.cpu_parent and e.cpu_parent["name"] for e in prof.events()] == [None, "ProfilerStep#1", None, "ProfilerStep#2"]
        assert [e["step"] for e in prof.events()] == [1, 1, 2, 2]
        first, _, second, _ = prof.events()
        assert first["end_ns"] <= second["start_ns"]

    def test_without_a_schedule_there_are_no_rows_of_steps(self):
        with profile() as prof:
            prof.step()
            x + x
        assert [e["name"] for e in prof.events()] == ["aten::add"]
        assert (prof.record_steps, prof.step_num, prof.current_action) == (False, 1, RECORD)

    def test_every_step_of_the_schedule_is_recorded_or_not(self):
        actions = [NONE, WARMUP, RECORD, SAVE, NONE, WARMUP, WARMUP, SAVE, SAVE, RECORD, RECORD, SAVE]
        seen = []
        run(actions, on_trace_ready=lambda p: seen.append(steps_of(p)))
        assert seen == [[2, 3], [7], [8], [9, 10, 11]]

    def test_acc_events_keeps_the_events_of_all_cycles(self):
        seen = []
        run([WARMUP, SAVE, NONE, WARMUP, SAVE, SAVE], on_trace_ready=lambda p: seen.append(steps_of(p)), acc_events=True)
        assert seen == [[1], [1, 4], [1, 4, 5]]

    @pytest.mark.parametrize(
        ("actions", "kept"),
        [
            ([SAVE], [0]),
            ([SAVE, NONE, NONE], [0]),
            ([SAVE, WARMUP], [0]),
            ([SAVE, NONE, WARMUP, WARMUP], [0]),
            ([SAVE, WARMUP, RECORD], [2]),
            ([SAVE, RECORD], [1]),
            ([SAVE, SAVE], [1]),
            ([RECORD, RECORD], [0, 1]),
        ],
    )
    def test_a_cycle_is_replaced_when_the_active_steps_of_the_next_begin(self, actions, kept):
        assert steps_of(run(actions)) == kept

    def test_a_finished_cycle_can_be_read_while_the_next_waits_or_warms_up(self):
        actions = [WARMUP, SAVE, NONE, WARMUP, SAVE]
        with profile(schedule=lambda step: actions[step]) as prof:
            for _ in range(2):
                x + x
                prof.step()
            for _ in range(2):
                assert steps_of(prof) == [1]
                assert prof.key_averages()[0].key == "ProfilerStep*"
                x + x
                prof.step()
            x + x
        assert steps_of(prof) == [4]

    @pytest.mark.filterwarnings("ignore:nothing was recorded")
    def test_the_handler_runs_once_a_cycle_and_at_the_end_of_a_recording_cut_short(self):
        for actions, count in [
            ([RECORD], 1),
            ([WARMUP], 0),
            ([NONE], 0),
            ([SAVE, NONE], 1),
            ([SAVE, RECORD], 2),
            ([SAVE, SAVE], 2),
        ]:
            called = []
            run(actions, on_trace_ready=called.append)
            assert len(called) == count, actions

    def test_what_warms_up_is_not_recorded(self):
        with profile(schedule=lambda step: WARMUP if step < 2 else SAVE, record_shapes=True) as prof:
            for _ in range(2):
                with record_function("warm"):
                    x * x
                prof.step()
            x + x
        assert [e["name"] for e in prof.events()] == ["ProfilerStep#2", "aten::add"]

    def test_no_key_is_active_while_the_profiler_waits(self):
        with profile(schedule=lambda step: [NONE, WARMUP, SAVE, NONE][step]) as prof:
            for active in (False, True, True, False):
                assert bool(dispatcher.active_keys() & keys.PROFILER) is active
                if prof.step_num < 3:
                    prof.step()

    def test_a_profiler_that_starts_again_goes_on_with_its_steps(self):
        prof = profile(schedule=lambda step: SAVE)
        for step in range(2):
            with prof:
                x + x
                prof.step()
                x + x
            assert steps_of(prof) == [step + 1]

    def test_events_of_other_threads_belong_to_the_step_in_which_they_began(self):
        import threading

        with profile() as prof:
            prof.step()
            thread = threading.Thread(target=lambda: x + x)
            thread.start()
            thread.join()
            prof.step()
        assert steps_of(prof) == [1]


class TestOddSchedules:
    @pytest.mark.filterwarnings("ignore:nothing was recorded")
    @pytest.mark.parametrize(
        ("actions", "warning", "kept"),
        [
            ([WARMUP, NONE, NONE], "WARMUP followed by NONE", []),
            ([RECORD, NONE], "RECORD followed by NONE", [0]),
            ([RECORD, WARMUP], "RECORD followed by WARMUP", [0]),
            ([RECORD, WARMUP, SAVE], "RECORD followed by WARMUP", [2]),
            ([SAVE, WARMUP, NONE], "WARMUP followed by NONE", [0]),
        ],
    )
    def test_warn_and_go_on(self, actions, warning, kept):
        with pytest.warns(UserWarning, match=f"^Incorrect schedule: {warning}$"):
            prof = run(actions)
        assert (steps_of(prof) if prof.profiler is not None else []) == kept
        assert not dispatcher.active_keys() & keys.PROFILER

    def test_a_warning_that_is_an_error_leaves_a_profiler_that_works(self):
        with profile(schedule=lambda step: [RECORD, NONE, SAVE][step]) as prof:
            x + x
            with pytest.raises(UserWarning, match="RECORD followed by NONE"):  # warnings are errors in these tests
                prof.step()
            assert not dispatcher.active_keys() & keys.PROFILER
            prof.step()
            x + x
        assert steps_of(prof) == [2]

    @pytest.mark.parametrize("wrong", [None, 2, "RECORD", True])
    def test_a_schedule_that_returns_no_action_is_refused(self, wrong):
        with pytest.raises(TypeError, match="must return a ProfilerAction"):
            profile(schedule=lambda step: wrong)

    def test_the_action_of_stopped_devices_is_the_profilers_own(self):
        with pytest.raises(ValueError, match="DEVICE_STOPPED"):
            profile(schedule=lambda step: STOPPED)

    def test_a_schedule_that_raises_leaves_everything_as_it_is(self):
        def of_step(step):
            if step == 1:
                raise KeyError("schedule")
            return RECORD

        with profile(schedule=of_step) as prof:
            x + x
            with pytest.raises(KeyError, match="schedule"):
                prof.step()
            assert (prof.step_num, prof.current_action) == (0, RECORD)
            x * x
        assert [(e["name"], e["step"]) for e in prof.events()] == [("ProfilerStep#0", 0), ("aten::add", 0), ("aten::mul", 0)]

    def test_the_map_of_actions_has_every_pair_a_schedule_can_make(self):
        prof = profile()
        possible = {NONE, WARMUP, RECORD, SAVE}
        assert set(itertools.product(possible, possible | {None})) <= set(prof.action_map)


class TestToggling:
    def test_scopes_that_are_open_go_on_and_new_ones_are_not_seen(self):
        with profile() as prof, record_function("outer"):
            with record_function("inner"):
                prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
                x * x
            with record_function("unseen"):
                prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
            x + x
        assert [e["name"] for e in prof.events()] == ["outer", "inner", "aten::add"]
        outer, inner, add = prof.events()
        assert (inner.cpu_parent, add.cpu_parent) == (outer, outer)

    def test_an_optimizers_scope_ends_though_collection_stopped_inside(self):
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)

        def closure():
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])

        with profile() as prof:
            optimizer.step(closure)
            prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
            x + x
        step, add = prof.events()
        assert step["name"] == "Optimizer.step#SGD.step"
        assert add.cpu_parent is None

    def test_toggling_twice_the_other_activity_or_before_the_start_changes_nothing(self):
        prof = profile()
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        with prof:
            x + x
            prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
            prof.toggle_collection_dynamic(False, [ProfilerActivity.NPU])
            prof.toggle_collection_dynamic(False, [])
            x * x
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            x - x
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        assert [e["name"] for e in prof.events()] == ["aten::add", "aten::mul"]
        assert not dispatcher.active_keys() & keys.PROFILER

    @pytest.mark.parametrize("options", [{"with_stack": True}, {"record_shapes": True}])
    def test_with_all_options(self, options):
        with profile(**options) as prof:
            x + x
            prof.toggle_collection_dynamic(False, {ProfilerActivity.CPU})
            x * x
            prof.toggle_collection_dynamic(True, {ProfilerActivity.CPU})
            x - x
        assert [e["name"] for e in prof.events() if e["kind"] == "op"] == ["aten::add", "aten::sub"]

    def test_what_is_no_activity_is_refused(self):
        with profile() as prof, pytest.raises(TypeError, match="ProfilerActivity"):
            prof.toggle_collection_dynamic(False, ["CPU"])


@pytest.mark.parametrize("with_daemon", [True, False])
def test_steps_are_counted_for_a_daemon(monkeypatch, with_daemon):
    monkeypatch.setenv("KINETO_USE_DAEMON", "1" if with_daemon else "")
    tracker = torch.autograd.profiler.KinetoStepTracker
    before = tracker.current_step()
    for steps in (5, 3):
        with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=2)) as prof:
            for _ in range(steps):
                prof.step()
    assert tracker.current_step() == before + (8 if with_daemon else 0)


def test_whether_a_profiler_records_is_said():
    profiler = torch.autograd.profiler
    assert profiler._is_profiler_enabled is False
    for make in (torch.profiler.profile, profiler.profile):
        with make():
            assert profiler._is_profiler_enabled is True
        assert profiler._is_profiler_enabled is False
    with pytest.raises(AttributeError, match=r"module 'mindtorch_v2.autograd.profiler' has no attribute 'no_such_name'"):
        profiler.no_such_name  # noqa: B018


class TestNoActiveStep:
    """A schedule that never came to record says so, and where it would have."""

    ACCESSORS = {
        "events": lambda prof, path: prof.events(),
        "key_averages": lambda prof, path: prof.key_averages(),
        "table": lambda prof, path: prof.table(),
        "export_chrome_trace": lambda prof, path: prof.export_chrome_trace(path),
        "export_stacks": lambda prof, path: prof.export_stacks(path),
        "leaks": lambda prof, path: prof.leaks(),
        "session": lambda prof, path: prof.session,
    }

    def stopped(self, steps, plan, **options):
        prof = profile(schedule=plan, **options)
        prof.start()
        for _ in range(steps):
            prof.step()
        with pytest.warns(UserWarning, match="nothing was recorded") as warned:
            prof.stop()
        (warning,) = warned
        assert warning.filename == __file__
        return prof, str(warning.message)

    def test_a_warning_at_the_end(self):
        _, text = self.stopped(3, schedule(wait=5, warmup=2, active=1))
        assert text == "nothing was recorded: the schedule's first active step is step 7, step() was called 3 times"

    @pytest.mark.parametrize(
        ("plan", "first"),
        [
            ({"wait": 5, "warmup": 2, "active": 1}, 7),
            ({"wait": 5, "warmup": 2, "active": 1, "skip_first": 4}, 11),
            ({"wait": 5, "warmup": 2, "active": 1, "skip_first": 4, "skip_first_wait": 1}, 6),
        ],
    )
    def test_the_first_active_step(self, plan, first):
        action = schedule(**plan)
        assert f"is step {first}, step() was called 1 time" in self.stopped(1, action)[1]
        actions = [action(step) for step in range(first + 1)]
        assert [a.name.startswith("RECORD") for a in actions] == [False] * first + [True]

    def test_a_schedule_of_the_programs_own(self):
        _, text = self.stopped(2, lambda step: ProfilerAction.NONE)
        assert text == "nothing was recorded: the schedule has no active step among steps 0 to 2, step() was called 2 times"

    @pytest.mark.parametrize("accessor", ACCESSORS)
    def test_what_is_asked_for_afterwards(self, accessor, tmp_path):
        prof, _ = self.stopped(3, schedule(wait=5, warmup=2, active=1), with_stack=True, profile_memory=True)
        with pytest.raises(
            AssertionError, match=r"^Profiler must be initialized before .*; no step was recorded: the schedule's first"
        ) as e:
            self.ACCESSORS[accessor](prof, str(tmp_path / "file"))
        assert "step() was called 3 times" in str(e.value)
        assert list(tmp_path.iterdir()) == []

    def test_a_step_that_was_active_is_enough(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with profile(schedule=schedule(wait=1, warmup=1, active=1)) as prof:
                for _ in range(3):
                    prof.step()
            with profile():
                pass

    def test_the_programs_error_comes_through(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(KeyError, match="mine"), profile(schedule=schedule(wait=5, warmup=1, active=1)):
                raise KeyError("mine")


class TestSampledSteps:
    def record(self, count=12, **options):
        x = torch.ones(2)
        with profile(**options) as prof:
            for _ in range(count):
                x + x
                prof.step()
        return prof

    def test_one_of_so_many(self):
        prof = self.record(sample_steps=5)
        assert prof.session.step.tolist() == [0, 5, 10]
        assert prof.session.info.unrecorded == ("10 of 13 steps are not recorded: sample_steps",)
        assert prof.key_averages().table().splitlines()[-1] == prof.session.info.unrecorded[0]
        assert len(prof.session.info.collected) == 3

    @pytest.mark.parametrize("acc_events", [False, True])
    def test_steps_of_several_cycles(self, acc_events):
        prof = self.record(sample_steps=2, schedule=schedule(wait=0, warmup=1, active=3, repeat=3), acc_events=acc_events)
        skipped, steps = (4, 9) if acc_events else (1, 3)
        assert prof.session.info.unrecorded == (f"{skipped} of {steps} steps are not recorded: sample_steps",)

    def test_a_share_is_the_same_in_each_run(self):
        first, second = (self.record(200, sample_steps=0.1).session.step.tolist() for _ in range(2))
        assert first == second
        assert 10 <= len(first) <= 30
        assert len(set(np.diff(first).tolist())) > 3  # not at even distances, at which programs do things

    def test_active_steps_of_a_schedule(self):
        found = []
        options = {"schedule": schedule(wait=1, warmup=1, active=4), "sample_steps": 2}
        self.record(**options, on_trace_ready=lambda p: found.append(sorted(set(p.session.step.tolist()))))
        assert found == [[2, 4], [8, 10]]

    def test_of_few_active_steps_the_first(self):
        found = []
        options = {"schedule": schedule(wait=5, warmup=2, active=3, repeat=3), "sample_steps": 4}
        self.record(30, **options, on_trace_ready=lambda p: found.append(sorted(set(p.session.step.tolist()))))
        assert found == [[7], [18], [29]]

    def test_a_step_that_is_not_recorded_has_no_scope(self):
        prof = self.record(sample_steps=3, schedule=schedule(wait=0, warmup=1, active=6, repeat=1))
        assert [label.name for label in prof.session.labels if label.kind == "scope"] == ["ProfilerStep#1", "ProfilerStep#4"]

    def test_all_of_them(self):
        assert self.record(3, sample_steps=1).session.step.tolist() == [0, 1, 2]

    @pytest.mark.parametrize(
        ("toggles", "recorded"),
        [({1: False}, [0]), ({0: False, 3: True}, [4]), ({3: True}, [0, 2, 4]), ({2: False, 4: True}, [0, 4])],
    )
    def test_a_step_is_recorded_where_the_program_wants_it_too(self, toggles, recorded):
        x = torch.ones(2)
        with profile(sample_steps=2) as prof:
            for step in range(6):
                if step in toggles:
                    prof.toggle_collection_dynamic(toggles[step], [ProfilerActivity.CPU])
                x + x
                prof.step()
        assert prof.session.step.tolist() == recorded
        assert prof.session.info.unrecorded == ("3 of 7 steps are not recorded: sample_steps",)

    def test_a_toggle_inside_of_a_step_is_of_that_step(self):
        x = torch.ones(2)
        with profile(sample_steps=3) as prof:
            for _ in range(4):
                x + x
                prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
                x - x
                prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
                x * x
                prof.step()
        assert [e.name for e in prof.events()] == ["aten::add", "aten::mul"] * 2

    @pytest.mark.parametrize("steps", [0, -3, 1.5, float("nan")])
    def test_nonsense(self, steps):
        with pytest.raises(ValueError, match="sample_steps must be a whole number of steps above 0, or a share between 0 and 1"):
            profile(sample_steps=steps)
