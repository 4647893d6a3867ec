"""Advice about time outside operators: shares of wall time, what the lines between operators call, what is not explained."""

import ast
import gc
import itertools
import os
import sys
import textwrap
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import advise, profile
from mindtorch_v2.profiler.advice import Facts, facts
from mindtorch_v2.profiler.advice.outside import CALLEE, FUNCTION_NS
from mindtorch_v2.profiler.advice.parts import NOT_RECORDED, OWN, OWN_AND_WAITING, RUNTIME, WAITS
from mindtorch_v2.profiler.advice.rules.outside import ACTIVITIES
from mindtorch_v2.profiler.capture.operators import recorder
from mindtorch_v2.profiler.model.session import COMPILE, Frame, Info, Label, Track, empty_session

from .by_hand import Event, op, python_function, record, scope

EVENT_NS = facts.PLAIN_NS  # what recording an operator takes
STACK_NS = facts.PLAIN_NS + facts.STACK_NS  # with stacks
CALLEE_NS = round(CALLEE * FUNCTION_NS / 2)  # recording a function's beginning, or end, in its own time
CALLER_NS = FUNCTION_NS // 2 - CALLEE_NS


def found(session, rule, **options):
    return [finding for finding in advise(session, **options) if finding.rule == rule]


class Program:
    """A file of source, and sessions of it: operators on its lines, with so much time between."""

    def __init__(self, folder, source):
        self.file = folder / "train.py"
        self.file.write_text(textwrap.dedent(source).lstrip("\n") + "\nimport numpy as np, mindtorch_v2 as torch\n")
        self.info = Info(with_stack=True, source_roots=(f"{folder}{os.sep}",), started_ns=0, stopped_ns=1_000_000)

    def sum(self, line, start, function="step"):
        return op("aten::sum", start, start + 1000, stack=(Frame(str(self.file), line, function),))

    def call(self, *events, name="train.py(1): step", end=900_000, step=0):
        return python_function(name, events[0].start_ns - 500 if events else 0, end, *events, step=step)

    def session(self, *calls):
        return record([python_function("train.py(1): <module>", 0, 1_000_000, *calls)], info=self.info)


class TestWallTime:
    def test_shares_are_of_the_time_from_start_to_stop(self):
        info = Info(started_ns=1_000_000, stopped_ns=3_000_000)
        session = record([op("aten::nonzero", 2_000_000, 2_400_000)], info=info)
        (finding,) = advise(session)
        assert advise(session).recorded_ns == 2_000_000
        assert finding.gain_share == 400_000 / 2_000_000
        assert finding.evidence[0].share == 0.2

    def test_without_these_times_it_is_that_of_the_events(self):
        assert advise(record([op("aten::sin", 100, 400)], info=Info())).recorded_ns == 300

    def test_time_between_joined_recordings_is_left_out(self):
        info = Info(started_ns=0, stopped_ns=1000, collected=((0, 100), (800, 1000)), first_ids=((0, 1), (1, 2)))
        session = record([op("aten::sin", 0, 100), op("aten::sin", 800, 1000)], info=info)
        assert advise(session).recorded_ns == 300
        assert Facts(session).outside.time_ns.sum() == 0


class TestOwnPython:
    def test_between_operators(self):
        session = record([op("aten::sin", 0, 1000), op("aten::sin", 11_000, 12_000)])
        part = advise(session).unexplained[0]
        assert (part.name, part.time_ns, part.share) == (OWN_AND_WAITING, 10_000 - EVENT_NS, (10_000 - EVENT_NS) / 12_000)
        assert part.hint == "Record with --with-stack, or with_stack=True, to see where."
        assert part.evidence == ()

    def test_operators_that_are_not_recorded_are_among_it(self):
        info = Info(stopped_ns=12_000, dropped=(("names", 5),))
        session = record([op("aten::sin", 0, 1000), op("aten::sin", 11_000, 12_000)], info=info)
        assert advise(session).unexplained[0].name == NOT_RECORDED.format(OWN_AND_WAITING)

    def test_nothing_to_advise_is_never_said(self):
        text = str(advise(record([op("aten::sin", 0, 1000), op("aten::sin", 11_000, 12_000)])))
        assert text.startswith("No finding: 12 us recorded.")
        assert "80.8% of the wall time (9.69 us): the program's own Python and waiting, outside operators. Record with" in text

    def test_an_operator_is_named_where_it_takes_longest(self):
        part = advise(record([op("aten::mm", 0, 9000), op("aten::sin", 10_000, 11_000)])).unexplained[0]
        assert (part.name, part.time_ns) == ("aten::mm, called once", 9000)

    def test_a_backward_node_is_named_as_such(self):
        part = advise(record([op("autograd::engine::evaluate_function: MmBackward0", 0, 9000)])).unexplained[0]
        assert part.name == "the backward node MmBackward0, called once"

    def test_it_is_said_beside_findings_too(self):
        items = [op("aten::item", i * 2000, i * 2000 + 1000) for i in range(20)]
        advice = advise(record([*items, op("aten::mm", 50_000, 950_000)]))
        assert [finding.rule for finding in advice] == ["item() in a loop"]
        assert advice.unexplained[0].name == "aten::mm, called once"
        assert "Not explained:\n  94.7% of the wall time (900 us): aten::mm, called once." in str(advice)
        assert advice.as_dict()["unexplained"][0]["time_ns"] == 900_000

    def test_what_a_finding_explains_is_not_part_of_it(self):
        session = record([op("aten::nonzero", 0, 900_000), op("aten::sin", 900_000, 901_000)])
        assert [finding.rule for finding in advise(session)] == ["result sized by values"]
        assert advise(session).unexplained[0].name == "aten::sin, called once"

    def test_functions_are_named_where_stacks_are_known(self, tmp_path):
        program = Program(tmp_path, "def step():\n    x.sum()\n    heavy()\n    x.sum()\n")
        session = program.session(program.call(program.sum(2, 10_000), program.sum(4, 800_000)))
        part = advise(session).unexplained[0]
        found = {(evidence.operator, evidence.place, evidence.time_ns) for evidence in part.evidence}
        assert ("step", f"{program.file}:2:step", 789_000 - STACK_NS) in found
        assert ("step", f"{program.file}:4:step", 99_000 - STACK_NS - CALLEE_NS) in found

    def test_python_of_the_runtime_is_told_apart(self):
        info = Info(with_stack=True, stopped_ns=100_000)
        inside = (op("aten::add_", 1000, 2000), op("aten::add_", 90_000, 91_000))
        call = python_function("mindtorch_v2/optim/adam.py(9): step", 0, 100_000, *inside)
        assert advise(record([call], info=info)).unexplained[0].name == RUNTIME
        step = scope("Optimizer.step#SGD.step", 0, 100_000, *inside)
        assert advise(record([step])).unexplained[0].name == RUNTIME
        node = "autograd::engine::evaluate_function: AddBackward0"
        assert advise(record([op(node, 0, 1000), op(node, 90_000, 91_000)])).unexplained[0].name == RUNTIME

    def test_operators_of_another_thread_are_no_python(self):
        main = [op("aten::mm", 0, 40_000), op("aten::mm", 100_000, 140_000)]
        beside = op("aten::sin", 50_000, 80_000, tid=2)
        session = record([*main, beside], tracks=[Track(1, 1), Track(2, 2)])
        assert Facts(session).outside.time_ns.tolist() == [30_000 - EVENT_NS]

    def test_only_what_passed_while_the_program_was_recorded_counts(self):
        info = Info(started_ns=0, stopped_ns=90_000, collected=((10_000, 30_000), (50_000, 60_000)))
        session = record([op("aten::sin", 12_000, 13_000), op("aten::sin", 52_000, 53_000)], info=info)
        looked_at = Facts(session)
        assert looked_at.recorded_ns == 30_000
        assert looked_at.outside.time_ns.sum() == 30_000 - 2 * 1000 - 2 * EVENT_NS

    def test_compiling_an_operator_is_not_the_program_s(self):
        compilation = Event(Label(COMPILE, "compile"), 2000, 499_000)
        session = record([op("aten::sin", 0, 1000), compilation, op("aten::sin", 500_000, 501_000)])
        assert Facts(session).outside.time_ns.sum() == 2 * (1000 - EVENT_NS)

    def test_waiting_is_told_apart(self):
        wait = python_function("<built-in method acquire of _thread.lock object>", 2000, 80_000)
        info = Info(with_stack=True, stopped_ns=100_000)
        session = record([python_function("train.py(1): step", 0, 100_000, wait)], info=info)
        assert advise(session).unexplained[0].name == WAITS
        assert advise(session).unexplained[1].name == OWN

    def test_what_recording_cost_is_what_was_measured_then(self):
        info = Info(stopped_ns=12_000, event_costs_ns=(("op", 700),))
        session = record([op("aten::sin", 0, 1000), op("aten::sin", 11_000, 12_000)], info=info)
        assert Facts(session).outside.time_ns.tolist() == [10_000 - 700]


BETWEEN = {
    "sleeping": "time.sleep(1)",
    "reading files": "open(path).read()",
    "tensors made of Python lists": "x = torch.FloatTensor(rows)",
    "printing": "print(x)",
    "conversion to and from NumPy": "np.asarray(x)",
}


class TestLinesBetweenOperators:
    @pytest.mark.parametrize(("rule", "call"), BETWEEN.items())
    def test_the_gain_is_the_time_of_the_lines_that_call(self, tmp_path, rule, call):
        program = Program(tmp_path, f"def step():\n    x.sum()\n    {call}\n    x.sum()\n")
        session = program.session(program.call(program.sum(2, 10_000), program.sum(4, 511_000)))
        (finding,) = found(session, rule)
        assert finding.gain_ns == 500_000 - STACK_NS
        assert finding.gain_share == finding.gain_ns / 1_000_000
        (evidence,) = finding.evidence
        assert evidence.place == f"{program.file}:3:step"
        assert (evidence.count, evidence.time_ns) == (1, finding.gain_ns)

    def test_names_mean_what_the_file_imports(self, tmp_path):
        for imports, call, expected in (
            ("from numpy import array as made", "made(x)", 1),
            ("import mindtorch_v2 as torch", "torch.asarray(x)", 0),
            ("from elsewhere import asarray", "asarray(x)", 0),
            ("import numpy", "x.array()", 0),
        ):
            program = Program(tmp_path, f"def step():\n    x.sum()\n    {call}\n    x.sum()\n{imports}\n")
            session = program.session(program.call(program.sum(2, 10_000), program.sum(4, 511_000)))
            assert len(found(session, "conversion to and from NumPy", min_share=0.1)) == expected, call

    def test_nothing_stays_of_the_source_that_was_read(self, tmp_path):
        program = Program(tmp_path, "def step():\n    x.sum()\n    time.sleep(1)\n    x.sum()\n")
        session = program.session(program.call(program.sum(2, 10_000), program.sum(4, 511_000)))
        gc.collect()
        before = sum(isinstance(o, ast.AST) for o in gc.get_objects())
        assert found(session, "sleeping", min_share=0.1)
        assert sum(isinstance(o, ast.AST) for o in gc.get_objects()) == before

    def test_a_line_whose_operator_did_not_run_was_passed_over(self, tmp_path):
        program = Program(
            tmp_path, "def step():\n    for i in y:\n        x.sum()\n        if i % 3 == 2:\n            print(i, x.sum())\n"
        )
        turns = [program.sum(3, at) for at in range(10_000, 900_000, 100_000)]
        assert found(program.session(program.call(*turns, end=812_000)), "printing") == []
        printed = program.sum(5, 60_000)
        assert len(found(program.session(program.call(turns[0], printed, *turns[1:], end=812_000)), "printing")) == 1

    def test_calls_on_other_lines_are_not_it(self, tmp_path):
        program = Program(tmp_path, "def step():\n    x.sum()\n    f()\n    x.sum()\n    time.sleep(1)\n")
        session = program.session(program.call(program.sum(2, 10_000), program.sum(4, 511_000), end=512_500))
        assert found(session, "sleeping", min_share=0.1) == []

    def test_the_next_turn_of_a_loop(self, tmp_path):
        program = Program(
            tmp_path,
            """
            def step():
                for i in range(3):
                    x.sum()
                    x.sum()
                    time.sleep(1)
                time.sleep(2)
            """,
        )
        sums = [program.sum(line, at * 1000) for line, at in zip((3, 4) * 3, (10, 20, 200, 210, 390, 400), strict=True)]
        session = program.session(program.call(*sums, end=600_000))
        turns, last = 2 * (179_000 - STACK_NS), 199_000 - STACK_NS - CALLEE_NS
        (finding,) = found(session, "sleeping")
        assert {(evidence.count, evidence.time_ns) for evidence in finding.evidence} == {(2, turns), (1, last)}

    def test_a_call_that_is_made_at_times(self, tmp_path):
        program = Program(tmp_path, "def step():\n    for i in y:\n        x.sum()\n        if i % 3 == 2:\n            print(i)\n")
        starts = (10_000, 20_000, 30_000, 230_000, 240_000, 250_000, 450_000)
        session = program.session(program.call(*(program.sum(3, at) for at in starts), end=452_000))
        (finding,) = found(session, "printing")
        assert finding.gain_ns >= 2 * (199_000 - STACK_NS)

    def test_one_operator_in_a_loop(self, tmp_path):
        program = Program(tmp_path, "def step():\n    for i in range(3):\n        x.sum()\n        time.sleep(1)\n")
        session = program.session(program.call(*(program.sum(3, at) for at in (10_000, 200_000, 390_000)), end=392_000))
        (finding,) = found(session, "sleeping", min_share=0.1)
        assert finding.gain_ns >= 2 * (189_000 - STACK_NS)

    def test_a_loop_without_the_call_may_be_what_took_the_time(self, tmp_path):
        program = Program(
            tmp_path, "def step():\n    x.sum()\n    for i in range(9):\n        count(i)\n    print(i)\n    x.sum()\n"
        )
        session = program.session(program.call(program.sum(2, 10_000), program.sum(6, 511_000)))
        assert found(session, "printing", min_share=0) == []
        assert advise(session).unexplained[0].evidence[0].operator == "the loop in line 3, print"

    def test_what_a_function_inside_calls_is_in_its_own_time(self, tmp_path):
        program = Program(tmp_path, "def step():\n    x.sum()\n    f = lambda: time.sleep(1)\n    x.sum()\n")
        session = program.session(program.call(program.sum(2, 10_000), program.sum(4, 511_000)))
        assert found(session, "sleeping", min_share=0) == []

    def test_what_else_may_have_taken_the_time_is_told_and_nothing_is_claimed(self, tmp_path):
        for other, claimed in (
            ("print(x)", 0),
            ("y = sorted(z)", 0),
            ("z.sort()", 0),
            ("np.linalg.svd(z)", 0),
            ("y = len(z)", 1),
            ("y = time.time()", 1),
            ("y = model(z)", 1),  # of Python: an event of its own
        ):
            program = Program(
                tmp_path,
                f"def step():\n    x.sum()\n    time.sleep(1)\n    {other}\n    x.sum()\nimport time\nimport numpy as np\n",
            )
            session = program.session(program.call(program.sum(2, 10_000), program.sum(5, 511_000)))
            assert len(found(session, "sleeping", min_share=0.1)) == claimed, other
            if not claimed:
                title = advise(session).unexplained[0].evidence[0].operator
                assert title.startswith("time.sleep, ")
                assert title.removeprefix("time.sleep, ") in other

    def test_a_comprehension_is_a_function_or_part_of_one(self, tmp_path):
        program = Program(tmp_path, "def step():\n    x.sum()\n    y = [open(p).read() for p in paths]\n    x.sum()\n")
        if sys.version_info < (3, 12):
            inner = python_function("train.py(3): <listcomp>", 20_000, 500_000)
            call = program.call(program.sum(2, 10_000), inner, program.sum(4, 511_000))
        else:
            call = program.call(program.sum(2, 10_000), program.sum(4, 511_000))
        (finding,) = found(program.session(call), "reading files")
        assert finding.gain_ns > 470_000
        assert {evidence.place for evidence in finding.evidence} >= {
            f"{program.file}:3:<listcomp>" if sys.version_info < (3, 12) else f"{program.file}:3:step"
        }

    def test_of_a_function_that_began_before_the_recording_only_the_block_counts(self, tmp_path):
        program = Program(
            tmp_path,
            """
            import time
            time.sleep(1)
            with profile() as prof:
                x.sum()
                f()
                x.sum()
            print(prof)
            """,
        )
        sums = [program.sum(line, at, "<module>") for line, at in ((4, 10_000), (6, 511_000))]
        session = program.session(*sums)
        assert [finding.rule for finding in advise(session, min_share=0)] == []

    def test_without_its_source_the_function_is_named(self, tmp_path):
        program = Program(tmp_path, "def step():\n    x.sum()\n    time.sleep(1)\n    x.sum()\n")
        session = program.session(program.call(program.sum(2, 10_000), program.sum(4, 511_000)))
        for text in (None, "def step(:"):
            program.file.unlink() if text is None else program.file.write_text(text)
            assert found(session, "sleeping", min_share=0) == []
            assert advise(session).unexplained[0].evidence[0].operator == "step"

    def test_these_rules_need_stacks(self):
        missed = {each.rule: each.needs for each in advise(record([op("aten::sin", 0, 10)])).not_checked}
        assert all(missed[activity.name] == ("with_stack",) for activity in ACTIVITIES)


class TestFunctionsThatAreEvents:
    def deepcopy(self, start, end, inside=3):
        inner = [python_function("copy.py(201): _deepcopy_list", start + i * 2000, start + i * 2000 + 1000) for i in range(inside)]
        return python_function("copy.py(128): deepcopy", start, end, *inner)

    def test_deepcopy(self, tmp_path):
        program = Program(tmp_path, "def step():\n    copy.deepcopy(x)\n")
        call = program.call(self.deepcopy(100_000, 300_000))
        (finding,) = found(program.session(call), "deepcopy")
        # of the whole and of three inside; before the first of these there is nothing
        assert finding.gain_ns == 200_000 - CALLEE_NS - 3 * 2 * (CALLEE_NS + CALLER_NS) + CALLER_NS
        assert finding.gain_share == finding.gain_ns / 1_000_000
        assert finding.evidence[0].operator == "copy.py(128): deepcopy"
        assert finding.evidence[0].place == f"{program.file}:1:step"

    def test_what_is_inside_is_explained(self, tmp_path):
        program = Program(tmp_path, "def step():\n    copy.deepcopy(x)\n")
        session = program.session(program.call(self.deepcopy(1000, 880_000), end=890_000))
        names = [evidence.operator for evidence in advise(session).unexplained[0].evidence]
        assert not any("copy.py" in name for name in names)

    def test_logging(self, tmp_path):
        program = Program(tmp_path, "def step():\n    logging.info(x)\n")
        call = program.call(python_function("logging/__init__.py(2140): info", 100_000, 300_000))
        (finding,) = found(program.session(call), "printing")
        assert finding.gain_ns == 200_000 - 2 * CALLEE_NS
        assert "(info)" in finding.seen

    @pytest.mark.parametrize(
        ("rule", "name"),
        [
            ("sleeping", "<built-in function sleep>"),
            ("reading files", "<built-in method read of _io.TextIOWrapper object>"),
            ("tensors made of Python lists", "mindtorch_v2/_creation.py(143): tensor"),
            ("printing", "mindtorch_v2/_printing.py(185): tensor_text"),
            ("conversion to and from NumPy", "mindtorch_v2/_interop.py(45): numpy_of"),
        ],
    )
    def test_others(self, tmp_path, rule, name):
        program = Program(tmp_path, "def step():\n    f(x)\n")
        (finding,) = found(program.session(program.call(python_function(name, 100_000, 300_000))), rule)
        assert finding.gain_ns == 200_000 - 2 * CALLEE_NS
        other = (
            name.replace("sleep>", "wait>").replace("read of", "acquire of").replace("tensor", "other").replace("numpy_of", "other")
        )
        assert found(program.session(program.call(python_function(other, 100_000, 300_000))), rule, min_share=0) == []

    def test_reading_with_pathlib(self, tmp_path):
        program = Program(tmp_path, "def step():\n    path.read_text()\n")
        call = program.call(python_function("pathlib.py(1054): read_text", 100_000, 300_000), end=301_000)
        (finding,) = found(program.session(call), "reading files", min_share=0.1)
        assert finding.gain_ns == pytest.approx(200_000, rel=0.01)


class TestRecordings:
    """Programs under a clock that only they advance, so that the claimed numbers are known."""

    @pytest.fixture
    def slept(self, monkeypatch):
        """Sleeping is adding to this list, which takes no time."""
        ticks, real, slept = itertools.count(), recorder.clock, []
        monkeypatch.setattr(time, "sleep", slept.append)
        # its file is one of the package's: as a function of the program, the clock would be an event
        code = compile("lambda: sum(slept) + next(ticks) * 1e-6", "<mindtorch_v2 clock>", "eval")
        recorder.set_clock(eval(code, {"slept": slept, "ticks": ticks}))
        yield slept
        recorder.set_clock(real)

    def test_sleeping(self, slept):
        x = torch.ones(3)

        def step():
            x.sum()
            time.sleep(0.25)
            x.sum()

        with profile(with_stack=True) as prof:
            for _ in range(4):
                step()
        (finding,) = found(prof, "sleeping")
        assert finding.gain_share == pytest.approx(1.0, abs=1e-3)
        assert finding.gain_ns == pytest.approx(1e9, rel=1e-4)
        assert "time.sleep" in finding.seen
        assert "4 times" in finding.seen
        assert finding.evidence[0].place.endswith(":step")

    def test_half_asleep(self, slept):
        x = torch.ones(3)

        def work():
            slept.append(0.25)

        with profile(with_stack=True) as prof:
            for _ in range(4):
                x.sum()
                time.sleep(0.25)
                x.sum()
                work()
                x.sum()
        (finding,) = found(prof, "sleeping")
        assert finding.gain_share == pytest.approx(0.5, abs=1e-3)
        part = advise(prof).unexplained[0]
        assert part.share == pytest.approx(0.5, abs=1e-3)
        assert part.evidence[0].operator == "work"

    def test_without_stacks(self, slept):
        x = torch.ones(3)
        with profile() as prof:
            for _ in range(4):
                x.sum()
                slept.append(0.25)
        part = advise(prof).unexplained[0]
        assert (part.name, part.share) == (OWN_AND_WAITING, pytest.approx(1.0, abs=1e-3))


def test_nothing_was_recorded():
    assert list(advise(empty_session(Info(with_stack=True, record_shapes=True, profile_memory=True, stopped_ns=10)))) == []
