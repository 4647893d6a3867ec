"""`advise`: each rule finds what it is about and is silent about the program as advised; findings say what they rest on."""

import itertools
import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import Session, advice, advise, profile, record_function, schedule
from mindtorch_v2.profiler.advice import RULES, Match, Rule, facts
from mindtorch_v2.profiler.capture.operators import recorder
from mindtorch_v2.profiler.model.session import Frame, Info, TensorInput, Track

from .advice_programs import LOADER, PROGRAMS, recorded
from .by_hand import kernel, op, python_function, record, runtime, scope

pytestmark = pytest.mark.usefixtures("nothing_frozen")

EXAMPLES = Path(__file__).parent.parent.parent.parent / "examples"
SHAPES = Info(record_shapes=True)
TIMED = ("DataLoader without workers", "DataLoader too slow")  # a wait of any length is evidence; what counts is its share

# of those about waits the first alone, in which nothing but waiting takes time
cases = [
    pytest.param(rule, *pair, id=f"{rule}: {pair[0].__name__}")
    for rule, pairs in PROGRAMS.items()
    for pair in (pairs[:1] if rule in TIMED else pairs)
]


def found(prof, rule, **options):
    return [finding for finding in advise(prof, **options) if finding.rule == rule]


def tensor(*shape, strides=None, dtype="float32"):
    return TensorInput(shape, strides or tuple(np.cumprod((1, *shape[:0:-1]))[::-1].tolist()), dtype)


def row_of(name, count, *, first=0, took=1000, pitch=2000, **facts):
    """Calls of one operator, one after the other."""
    return [op(name, first + i * pitch, first + i * pitch + took, **facts) for i in range(count)]


class TestRules:
    @pytest.mark.parametrize(("rule", "program", "advised"), cases)
    def test_a_program_and_the_same_as_advised(self, rule, program, advised):
        at_least = 0.2 if rule in TIMED else 0
        needs = dict.fromkeys(set(RULES[rule].needs) - {"record_shapes"}, True)
        slow, fast = program(), advised()
        findings = found(recorded(slow, **needs), rule, min_share=at_least)
        assert len(findings) == 1
        assert findings[0].gain_ns > 0
        assert findings[0].evidence
        assert found(recorded(fast, **needs), rule, min_share=at_least) == []

    @pytest.mark.parametrize(("rule", "program", "advised"), cases)
    def test_evidence_says_where(self, rule, program, advised):
        (finding,) = found(recorded(program(), with_stack=True), rule, min_share=0)
        places = [evidence.place for evidence in finding.evidence]
        assert any("advice_programs.py" in place for place in places if place)

    def test_every_rule_has_two_programs(self):
        assert all(len(pairs) >= 2 for pairs in PROGRAMS.values())
        on_devices = {"waiting for the device"}  # there is none in this runtime; sessions written down by hand have one
        about_recording = {"recording takes much of the time"}
        about_memory = {"memory grows with each step"}  # which claims no time
        assert set(RULES) == set(PROGRAMS) | on_devices | about_recording | about_memory

    def test_what_the_examples_are_advised_is_true(self, monkeypatch, capsys):
        expected = {
            "mlp": set(),
            "cnn": set(),
            "gpt": {"optimizer step not fused"},  # AdamW by parameter
        }
        for name, rules in expected.items():
            monkeypatch.setattr(sys, "argv", [name, "--steps", "5"])
            with profile(record_shapes=True) as prof:
                runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
            assert {finding.rule for finding in advise(prof, min_share=0)} <= rules, name
        capsys.readouterr()


class TestItem:
    def test_the_gain_is_the_time_of_reading_and_indexing_and_of_python_between(self):
        events = []
        for i in range(20):
            at = i * 10_000
            events += [op("aten::select", at, at + 1000), op("aten::item", at + 2000, at + 3000)]
        (finding,) = found(record(events), "item() in a loop")
        between = 1000 - facts.PLAIN_NS  # the 7000 ns to the next are the program's own work
        assert finding.gain_ns == 20 * 2000 + 20 * between
        assert {(e.operator, e.count, e.time_ns) for e in finding.evidence} == {
            ("aten::select", 20, 20_000),
            ("aten::item", 20, 20_000),
        }

    def test_the_result_of_a_computation_is_needed_all_the_same(self):
        events = []
        for i in range(20):
            at = i * 10_000
            events += [op("aten::sum", at, at + 1000), op("aten::item", at + 2000, at + 3000)]
        (finding,) = found(record(events), "item() in a loop")
        assert finding.gain_ns == 20 * 1000

    def test_few_calls_in_each_step_are_no_loop(self):
        events = [event._replace(step=i) for i, event in enumerate(row_of("aten::item", 50))]
        assert found(record(events), "item() in a loop", min_share=0) == []

    def test_what_operators_and_optimizers_read_is_theirs(self):
        inside = row_of("aten::item", 20, first=100)
        for around in (op("aten::allclose", 0, 50_000, *inside), scope("Optimizer.step#Adam.step", 0, 50_000, *inside)):
            assert found(record([around]), "item() in a loop", min_share=0) == []

    def test_on_a_device_each_waits(self):
        tracks = [Track(1, 1), Track(7, 1, device_type="NPU")]
        session = record(row_of("aten::item", 20), tracks=tracks)
        (finding,) = found(session, "item() in a loop")
        assert "waits until the device" in finding.seen
        assert "waits" not in found(record(row_of("aten::item", 20)), "item() in a loop")[0].message


class TestWaitingForTheDevice:
    tracks = (Track(1, 1), Track(7, 1, device_type="NPU"))

    def test_the_gain_is_the_wait(self):
        wait = runtime("aclrtSynchronizeStream", 2000, 9000, correlation=1)
        copy = op("aten::to", 0, 10_000, op("aten::_to_copy", 1000, 9500, wait))
        add = kernel("Add", 1000, 8900, stream=7, correlation=2)
        (finding,) = found(record([copy, add], tracks=self.tracks), "waiting for the device")
        assert finding.gain_ns == 7000
        assert [e.operator for e in finding.evidence] == ["aten::to"]

    def test_launches_are_no_waits(self):
        launch = runtime("aclnnAdd", 2000, 3000, correlation=1)
        add = kernel("Add", 4000, 5000, stream=7, correlation=1)
        assert (
            found(record([op("aten::add", 0, 3500, launch), add], tracks=self.tracks), "waiting for the device", min_share=0) == []
        )


class TestDataLoader:
    def session(self, kind, load, compute):
        events, at = [], 0
        for step in range(3):
            events.append(scope(LOADER.format(kind), at, at + load, step=step))
            events.append(op("aten::mm", at + load, at + load + compute, step=step))
            at += load + compute
        return record(events)

    @pytest.mark.parametrize(("load", "compute", "gain"), [(4, 6, 4), (6, 4, 4)])
    def test_without_workers_the_shorter_is_gained(self, load, compute, gain):
        (finding,) = advise(self.session("SingleProcess", load * 1000, compute * 1000))
        assert finding.rule == "DataLoader without workers"
        assert finding.gain_ns_per_step == gain * 1000
        assert finding.gain_share == gain / (load + compute)
        assert finding.evidence[0].steps == (0, 1, 2)

    def test_with_workers_the_wait_is(self):
        (finding,) = advise(self.session("MultiProcessing", 3000, 7000))
        assert (finding.rule, finding.gain_ns_per_step) == ("DataLoader too slow", 3000)

    def test_the_wait_is_explained(self):
        part = advise(self.session("MultiProcessing", 7000, 3000)).unexplained[0]
        assert part.name.startswith("aten::mm")

    def test_batches_that_are_there_in_time(self):
        assert advise(self.session("MultiProcessing", 50, 9950)) == []


class TestGradients:
    def test_zeros_of_other_tensors_are_none_of_its_business(self):
        w = torch.randn(8, 8, requires_grad=True)
        state = torch.ones(5)

        def step():
            (w * w).sum().backward()
            (w * w).sum().backward()  # accumulates, as it should
            state.zero_()
            w.grad = None

        assert found(recorded(step), "zero_grad without set_to_none", min_share=0) == []

    def test_module_zero_grad_is_known_by_its_stack(self):
        model, x = nn.Linear(4, 4), torch.ones(2, 4)

        def step():
            model(x).sum().backward()
            model.zero_grad(set_to_none=False)

        step()
        with profile(with_stack=True) as prof:
            step()
            step()
        assert len(found(prof, "zero_grad without set_to_none", min_share=0)) == 1

    def test_the_node_that_gave_the_gradient_is_named(self):
        w = torch.randn(8, 6, requires_grad=True)

        def step():
            w.grad = None
            (w.permute(1, 0) * 2).sum().backward()

        (finding,) = found(recorded(step), "gradients copied", min_share=0)
        assert "PermuteBackward0" in finding.seen


class TestCopies:
    def casts(self, count, steps=1, *, to=7, **facts):
        call = (tensor(8, 8), to, None, None, None, False, None)
        return [
            op("aten::_to_copy", 10_000 * (s * count + i), 10_000 * (s * count + i) + 1000, inputs=call, step=s, **facts)
            for s in range(steps)
            for i in range(count)
        ]

    def test_all_but_one_in_a_step_are_gained(self):
        (finding,) = found(record(self.casts(5, 2), info=SHAPES), "repeated casts")
        assert finding.gain_ns == 2 * 4 * 1000
        assert finding.evidence[0].shapes == [[8, 8], [], [], [], [], [], []]

    def test_once_in_every_step_is_not_again(self):
        assert found(record(self.casts(1, 20), info=SHAPES), "repeated casts", min_share=0) == []

    def test_a_copy_of_the_same_dtype_is_no_cast(self):
        assert found(record(self.casts(8, to=6), info=SHAPES), "repeated casts", min_share=0) == []

    def test_each_module_has_tensors_of_its_own(self):
        names = [f"nn.Module: Layer_{i}" for i in range(8)]
        for modules, findings in ((names, 0), (names[:1] * 8, 1)):
            events = [
                python_function(name, cast.start_ns - 100, cast.end_ns + 100, cast)
                for name, cast in zip(modules, self.casts(8), strict=True)
            ]
            assert len(found(record(events, info=SHAPES), "repeated casts", min_share=0)) == findings

    ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}

    def test_tensors_are_told_apart_where_memory_was_recorded(self):
        rule = "repeated copies of non-contiguous tensors"
        one, several = torch.randn(6, 6).t(), [torch.randn(6, 6).t() for _ in range(8)]
        with profile(**self.ALL) as prof:
            for _ in several:
                one.contiguous()
        (finding,) = found(prof, rule, min_share=0)
        assert finding.seen == "The same tensor was copied into another order in memory 8 times."
        with profile(**self.ALL) as prof:
            for x in several:
                x.contiguous()
        assert found(prof, rule, min_share=0) == []

    def test_memory_that_is_used_again_is_another_tensor(self):
        with profile(**self.ALL) as prof:
            for _ in range(8):
                torch.ones(6, 6).t().contiguous()  # likely at the same address
        assert found(prof, "repeated copies of non-contiguous tensors", min_share=0) == []

    def test_what_operators_copy_inside_is_theirs(self):
        clone = (tensor(8, 8, strides=(1, 8)), 0)
        inside = row_of("aten::clone", 8, first=100, inputs=clone)
        session = record([op("aten::bmm", 0, 20_000, *inside)], info=SHAPES)
        assert found(session, "repeated copies of non-contiguous tensors", min_share=0) == []
        session = record(inside, info=SHAPES)
        assert len(found(session, "repeated copies of non-contiguous tensors", min_share=0)) == 1

    def test_strides_of_dims_of_extent_one_mean_nothing(self):
        session = record(row_of("aten::clone", 8, inputs=(tensor(1, 8, strides=(1, 1)), 0)), info=SHAPES)
        assert found(session, "repeated copies of non-contiguous tensors", min_share=0) == []


class TestBiasBeforeNorm:
    def test_in_evaluation_the_bias_counts(self):
        net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).eval()
        assert found(recorded(lambda: net(torch.ones(1, 1, 5, 5))), "bias before batch norm", min_share=0) == []

    def test_something_between_makes_it_count(self):
        net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.BatchNorm2d(2))
        assert found(recorded(lambda: net(torch.ones(1, 1, 5, 5))), "bias before batch norm", min_share=0) == []


class TestLoops:
    def test_an_interrupted_call_is_no_gain(self):
        events = row_of("aten::exp", 99, inputs=(tensor(4),))
        slow = op("aten::exp", 10_000_000, 19_000_000, inputs=(tensor(4),))
        (finding,) = found(record([*events, slow], info=SHAPES), "tiny operators", min_share=0)
        between = 1000 - facts.PLAIN_NS - facts.SHAPES_NS
        assert finding.gain_ns == 99 * (1000 + between)  # one call stays
        assert finding.evidence[0].time_ns == 99_000 + 9_000_000  # what was seen is told as it was

    def test_work_is_no_overhead(self):
        assert found(record(row_of("aten::exp", 100, inputs=(tensor(5000),)), info=SHAPES), "tiny operators", min_share=0) == []

    def test_recurrent_cells_depend_on_each_other(self):
        call = (tensor(4, 8), tensor(4, 8), tensor(24, 8), tensor(24, 8), None, None)
        session = record(row_of("aten::gru_cell", 50, inputs=call), info=SHAPES)
        assert found(session, "tiny operators", min_share=0) == []

    def test_nothing_is_counted_twice(self):
        x = torch.randn(60, 8)
        prof = recorded(lambda: [(x[i] * 2).sum().item() for i in range(60)])
        about_the_program = [rule for rule in RULES if not rule.startswith("recording")]
        rows = np.concatenate([finding.rows for finding in advise(prof, min_share=0, rules=about_the_program)])
        assert len(rows) == len(set(rows.tolist()))

    def test_backward_passes_are_part_of_the_gain(self):
        forward = row_of("aten::exp", 40, inputs=(tensor(4),))
        made = [event._replace(sequence=i) for i, event in enumerate(forward)]
        name = "autograd::engine::evaluate_function: ExpBackward0"
        back = [op(name, 10**6 + i * 4000, 10**6 + i * 4000 + 3000, sequence=39 - i) for i in range(40)]
        (alone,) = found(record(made, info=SHAPES), "tiny operators", min_share=0)
        (both,) = found(record([*made, *back], info=SHAPES), "tiny operators", min_share=0)
        assert both.gain_ns - alone.gain_ns == 39 * (
            3000 + 1000 - facts.PLAIN_NS - facts.SHAPES_NS
        )  # the engine's time between the nodes is saved too


class TestRecordingCost:
    @pytest.mark.parametrize(("operator_seconds", "share"), [(1e-7, 1), (3e-7, 0.5), (1e-5, 0)])
    def test_a_program_of_operators_that_take_so_long(self, operator_seconds, share):
        x = torch.ones(2, 2)
        real, ticks = recorder.clock, itertools.count()
        recorder.set_clock(lambda: next(ticks) * operator_seconds)
        try:
            with profile() as prof:
                for _ in range(100):
                    x + x  # two readings of the clock
        finally:
            recorder.set_clock(real)
        found = advise(prof, rules=["recording takes much of the time"])
        assert [round(finding.gain_share, 1) for finding in found] == [share] * (share > 0)

    def test_events_close_together(self):
        events = [op("aten::add", i * 300, i * 300 + 200) for i in range(100)]
        (finding,) = advise(record(events), rules=["recording takes much of the time"])
        assert finding.gain_share > 0.3

    def test_events_far_apart(self):
        events = [op("aten::add", i * 30_000, i * 30_000 + 20_000) for i in range(100)]
        assert advise(record(events), rules=["recording takes much of the time"]) == []


class TestSteps:
    def test_steps_of_the_program(self):
        with profile(schedule=schedule(wait=1, warmup=1, active=3)) as prof:
            for _ in range(5):
                for x in torch.arange(20):
                    x.item()
                prof.step()
        (finding,) = found(prof, "item() in a loop", min_share=0)
        assert advise(prof).steps == 3
        assert finding.evidence[0].steps == (2, 3, 4)

    def test_steps_of_the_optimizer_where_the_program_has_none(self):
        events = []
        for i in range(4):
            at = i * 10_000
            events += [
                *row_of("aten::item", 12, first=at, took=100, pitch=200),
                scope("Optimizer.step#SGD.step", at + 5000, at + 6000),
            ]
        found = advise(record([*events, op("aten::sin", 50_000, 50_100)]))
        assert found.steps == 4
        assert found[0].gain_ns_per_step == found[0].gain_ns / 4
        assert found[0].evidence[0].steps == (0, 1, 2, 3)
        assert "in 4 steps of the optimizer" in str(found)

    def test_what_follows_the_last_step_of_a_program_is_no_step(self):
        events = []
        for i in range(4):
            at = i * 10_000
            events += [event._replace(step=i) for event in row_of("aten::item", 12, first=at, took=100, pitch=200)]
            events.append(scope("Optimizer.step#SGD.step", at + 5000, at + 6000, step=i))
        found = advise(record([*events, op("aten::sin", 50_000, 50_100, step=4)]))
        assert found.steps == 4
        assert found[0].evidence[0].steps == (0, 1, 2, 3)
        assert not found.steps_are_counted_by_optimizer

    def test_what_passed_between_cycles_is_not_recorded_time(self):
        events = [op("aten::sin", 0, 10, step=1), op("aten::sin", 20, 30, step=2), op("aten::sin", 1000, 1010, step=7)]
        info = Info(started_ns=0, stopped_ns=1020, collected=((0, 30), (1000, 1010)))
        assert advise(record(events, info=info)).recorded_ns == 30 + 10


class TestAdvise:
    def test_takes_a_profile_a_session_or_its_file(self, tmp_path):
        prof = recorded(lambda: [x.item() for x in torch.arange(20)])
        prof.session.save(tmp_path / "run.session")
        found = [
            advise(each, min_share=0).as_dict()
            for each in (prof, prof.session, tmp_path / "run.session", str(tmp_path / "run.session"))
        ]
        assert found[0]["findings"]
        assert found[1:] == found[:1] * 3

    def test_takes_the_older_profile_too(self):
        with torch.autograd.profiler.profile() as prof:
            for x in torch.arange(20):
                x.item()
        assert [finding.rule for finding in advise(prof, min_share=0)] == ["item() in a loop"]

    def test_refusals(self):
        with pytest.raises(TypeError, match="finished profile, a Session or the path"):
            advise(3)
        with pytest.raises(ValueError, match="no rule 'unknown'; there are item"):
            advise(record([]), rules=["unknown"])
        with pytest.raises(ValueError, match="between 0 and 1"):
            advise(record([]), min_share=2)

    def test_rules_that_could_not_be_asked_are_told(self):
        with profile() as prof:
            torch.ones(2).sin()
        without = {missed.rule: missed.needs for missed in advise(prof).not_checked}
        assert without["tiny operators"] == ("record_shapes",)
        assert "item() in a loop" not in without
        assert "needs record_shapes=True: " in str(advise(prof))
        with profile(record_shapes=True, with_stack=True, profile_memory=True) as prof:
            torch.ones(2).sin()
        assert advise(prof).not_checked == []
        assert "Not checked" not in str(advise(prof))

    def test_nothing_recorded(self):
        found = advise(record([]))
        assert (found, found.steps, found.recorded_ns) == ([], 0, 0)
        assert str(found) == "\n".join(["Nothing was recorded.", "", *str(found).splitlines()[2:]])

    def test_largest_gain_first_and_small_ones_left_out(self):
        items = row_of("aten::item", 20, took=10_000, pitch=20_000)
        masked = [op("aten::nonzero", 10**6, 2 * 10**6)]
        session = record([*items, *masked])
        both = advise(session)
        assert [finding.rule for finding in both] == ["result sized by values", "item() in a loop"]
        assert [finding.rule for finding in advise(session, min_share=0.3)] == ["result sized by values"]

    def test_places_are_the_program_s(self):
        stack = (Frame("/lib/mindtorch_v2/nn/modules/linear.py", 9, "forward"), Frame("/home/train.py", 12, "main"))
        info = Info(with_stack=True, source_roots=("/lib/",))
        (finding,) = found(record(row_of("aten::item", 20, stack=stack), info=info), "item() in a loop")
        assert finding.evidence[0].place == "/home/train.py:12:main"
        assert "train.py:12 (main)" in str(finding)

    def test_json_and_text(self):
        prof = recorded(lambda: [x.item() for x in torch.arange(20)])
        found = advise(prof, min_share=0, rules=["item() in a loop", "tiny operators"])
        written = json.loads(json.dumps(found.as_dict()))
        assert written["findings"][0]["rule"] == "item() in a loop"
        assert written["findings"][0]["evidence"][0]["count"] == 80
        assert written["steps"] == 4
        text = str(found)
        assert text.startswith(f"{len(found)} finding")
        assert "80 times (20 a step)" in text
        assert "Estimate: the time of these calls" in text
        assert found.table(max_evidence=0).count("\n") < text.count("\n")

    def test_long_lists_are_cut_short_in_text_only(self):
        call = ([tensor(16, 16)] * 100,)
        session = record(row_of("aten::item", 20, inputs=call), info=SHAPES)
        (finding,) = found(session, "item() in a loop")
        assert finding.evidence[0].shapes == [[[16, 16]] * 100]
        assert "[[[16, 16], [16, 16], [16, 16], [16, 16], ..." in str(finding)

    def test_a_session_stays_as_it_is(self):
        session = recorded(lambda: [x.item() for x in torch.arange(20)]).session
        before = session.label.copy(), session.end_ns.copy()
        advise(session)
        assert (session.label == before[0]).all()
        assert (session.end_ns == before[1]).all()


class TestRulesOfOnesOwn:
    @pytest.fixture(autouse=True)
    def rules_as_they_were(self):
        before = dict(RULES)
        yield
        RULES.clear()
        RULES.update(before)

    def test_a_rule_is_a_function(self):
        @advice.rule("sine", needs=("record_shapes",))
        def sine(facts):
            rows = facts.find("aten::sin")
            yield Match(rows=rows, gain_ns=facts.time_ns(rows) / 2, seen="Sines.", instead="Use a table.", estimate="a guess.")

        with profile(record_shapes=True) as prof:
            torch.ones(3).sin()
        (finding,) = [finding for finding in advise(prof, min_share=0) if finding.rule == "sine"]
        assert finding.message == "Sines. Use a table."
        assert finding.evidence[0].shapes == [[3]]
        with pytest.raises(ValueError, match="a rule 'sine' already"):
            advice.rule("sine")(sine)

    def test_a_rule_needs_what_can_be_recorded(self):
        with pytest.raises(ValueError, match="needs sound, which is no argument of profile"):
            Rule(name="loud", check=lambda facts: [], needs=("sound",))

    def test_only_some_rules(self):
        calls = []
        mine = Rule(name="mine", check=lambda facts: calls.append(facts.step_count) or [])
        assert (
            advise(Session(**vars(record([op("aten::sin", 0, 1)]))), rules=[mine, "tiny operators"]).not_checked[0].rule
            == "tiny operators"
        )
        assert calls == [1]


def test_scopes_do_not_hide_loops():
    x = torch.randn(40)

    def step():
        with record_function("reading"):
            return [x[i].item() for i in range(40)]

    assert len(found(recorded(step), "item() in a loop", min_share=0)) == 1


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_recording_can_be_asked_about(data):
    names = sorted(
        {f"aten::{name}" for name in "item select is_nonzero gt zero_ fill_ add_ clone copy_ _to_copy nonzero index conv2d".split()}
    )
    names += [
        "torch::autograd::AccumulateGrad",
        "autograd::engine::evaluate_function: AddBackward0",
        "aten::addcdiv_",
        "aten::batch_norm",
    ]
    scopes = [
        "Optimizer.step#Adam.step",
        "Optimizer.zero_grad#SGD.zero_grad",
        LOADER.format("SingleProcess"),
        "aten::_to_copy",
        "mine",
    ]
    full = (tensor(3, 4), 7, tensor(4), None, None, True)

    def event(start, end, depth):
        children, at = [], start + 1
        while depth and end - at > 4 and data.draw(st.booleans()):
            until = data.draw(st.integers(at, end - 1))
            children.append(event(at, until, depth - 1))
            at = until + 1
        if data.draw(st.booleans()):
            return scope(data.draw(st.sampled_from(scopes)), start, end, *children)
        facts = {"sequence": data.draw(st.integers(-1, 3)), "inputs": full if shapes else None}
        return op(data.draw(st.sampled_from(names)), start, end, *children, **facts)

    shapes, events = data.draw(st.booleans()), []
    for i in range(data.draw(st.integers(0, 12))):
        events.append(event(i * 100, i * 100 + data.draw(st.integers(1, 100)), 3)._replace(step=i // 5, tid=1))
    session = record(events, info=Info(record_shapes=shapes))
    found = advise(session, min_share=0)
    assert all(finding.gain_ns > 0 and finding.evidence for finding in found)
    assert json.dumps(found.as_dict())
    assert str(found)
