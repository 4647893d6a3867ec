"""What `advise` claims, added up by hand: the recorder's cost is taken off, what stays after the fix is not claimed, and what cannot be known is a bound."""

import itertools
import sys

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import advise, profile
from mindtorch_v2.profiler.advice import Facts, outside
from mindtorch_v2.profiler.advice.rules import layers, optimizers
from mindtorch_v2.profiler.capture import event_costs
from mindtorch_v2.profiler.model.session import CALL_IN_C, Info, TensorInput

from .by_hand import op, python_function, record, scope

EVALUATE = "autograd::engine::evaluate_function: "
OP_NS, FUNCTION_NS, CALL_NS = 300, 1000, 200
COSTS = (("op", OP_NS), ("python_function", FUNCTION_NS))
SLOWED = (*COSTS, (CALL_IN_C, CALL_NS))  # as on Python 3.11


def info(costs=COSTS, *, stopped_ns=10**7, with_stack=False):
    return Info(record_shapes=True, with_stack=with_stack, started_ns=0, stopped_ns=stopped_ns, event_costs_ns=costs)


def tensor(*shape, strides=None):
    return TensorInput(shape, strides or tuple(np.cumprod((1, *shape[:0:-1]))[::-1].tolist()), "float32")


def found(session, rule):
    return [finding for finding in advise(session, min_share=0) if finding.rule == rule]


class TestCostOfRecording:
    def test_reading_elements_without_what_recording_took(self):
        events = []
        for i in range(20):
            at = i * 10_000
            events += [op("aten::select", at, at + 1000), op("aten::item", at + 2000, at + 3000)]
        (finding,) = found(record(events, info=info()), "item() in a loop")
        assert finding.gain_ns == 20 * 2000 + 20 * (1000 - OP_NS)

    def test_describing_new_inputs_is_the_recorders(self):
        def session(inputs):
            turns = range(40)
            return record([op("aten::exp", i * 9000, i * 9000 + 1000, inputs=inputs(i)) for i in turns], info=info())

        again, anew = (Facts(session(inputs)).outside.time_ns for inputs in (lambda i: (tensor(4),), lambda i: (tensor(4), i)))
        assert (again[:39] == 8000 - OP_NS).all()
        assert (anew[:39] == 8000 - OP_NS - outside.NEW_INPUTS * OP_NS).all()


class TestSlowedByTheTracer:
    """Where the tracer is told of calls in C, Python takes longer while it is recorded."""

    def test_python_between_operators_is_what_is_usual_without(self):
        events = []
        for i in range(20):
            at = i * 10_000
            events += [op("aten::select", at, at + 1000), op("aten::item", at + 3000, at + 4000)]
        (finding,) = found(record(events, info=info(SLOWED)), "item() in a loop")
        assert finding.gain_ns == round(20 * 2000 + 20 * outside.IN_LOOP * CALL_NS)

    def test_writing_an_element_takes_more(self):
        events = []
        for i in range(20):
            at, call = i * 10_000, (tensor(20, 4), 0, i)
            events += [
                op("aten::select", at, at + 1000, inputs=call),
                op("aten::fill_", at + 3000, at + 4000, inputs=(tensor(4),)),
            ]
        (finding,) = found(record(events, info=info(SLOWED)), "indexing in a loop")
        between = 20 * outside.IN_SETITEM + 19 * outside.IN_LOOP  # the second to the next turn
        assert finding.gain_ns == round(19 * 2000 + between * CALL_NS)  # one call of each stays

    def session(self, calls, costs):
        inside = [python_function("copy.py(259): _deepcopy_tuple", 5000 + i * 5000, 8000 + i * 5000) for i in range(calls)]
        copy = python_function("copy.py(128): deepcopy", 3000, 900_000, *inside)
        return record([op("aten::mul", 0, 1000), copy], info=info(costs, stopped_ns=10**6, with_stack=True))

    @pytest.mark.parametrize(("costs", "is_bound"), [(COSTS, False), (SLOWED, True)])
    def test_many_small_calls_are_a_bound(self, costs, is_bound):
        (finding,) = found(self.session(100, costs), "deepcopy")
        assert finding.is_upper_bound == is_bound
        assert finding.as_dict()["is_upper_bound"] == is_bound
        assert str(finding).startswith(f"deepcopy: {'up to' if is_bound else 'about'} ")
        assert ("Python 3.12 or later" in finding.estimate) == is_bound

    def test_one_long_call_in_c_is_known(self):
        listing = python_function("mindtorch_v2/_creation.py(143): tensor", 3000, 900_000)
        session = record([op("aten::mul", 0, 1000), listing], info=info(SLOWED, stopped_ns=10**6, with_stack=True))
        (finding,) = found(session, "tensors made of Python lists")
        assert not finding.is_upper_bound
        assert finding.gain_ns == 897_000 - 2 * round(outside.CALLEE * FUNCTION_NS / 2)

    def test_the_hint_is_to_record_without(self):
        (part, *_) = advise(record([op("aten::mul", 0, 1000)], info=info(SLOWED, with_stack=True))).unexplained
        assert part.hint == "Stacks make Python itself slower here: record without them to see how much it is."

    def test_calls_in_c_cost_something_where_the_tracer_is_told_of_them(self, monkeypatch):
        """Before Python 3.12; since then two measurements that differ by chance are no cost."""
        longer = itertools.count(1)
        monkeypatch.setattr(event_costs, "_known", {})
        monkeypatch.setattr(event_costs, "_shortest", lambda loop, running=None: next(longer) / 1e6)
        with profile(with_stack=True) as prof:
            torch.ones(2).sin()
        costs = dict(prof.session.info.event_costs_ns)
        assert costs["python_function"] > 0
        assert (CALL_IN_C in costs) == (sys.version_info < (3, 12))

    @pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring is not told of calls in code that is switched off")
    def test_what_indexing_and_reductions_call_is_not_reported(self, monkeypatch):
        from mindtorch_v2.profiler.capture.stacks import python311

        x, reported, on_call = torch.randn(3, 4), [], python311.on_call
        monkeypatch.setattr(python311, "on_call", lambda frame, code: reported.append(code.co_filename) or on_call(frame, code))
        with profile(with_stack=True):
            for _ in range(2):
                x[1], x[1, 2], x[None], x[torch.tensor([0, 1])], x.sum(), x.mean(), x.max(), x.any()
                del reported[:]
            x[1], x[1, 2], x[None], x[torch.tensor([0, 1])], x.sum(), x.mean(), x.max(), x.any()
            kernels = [file for file in reported if "_backends" in file]
        assert kernels == []


class TestOptimizer:
    CALLS = 4  # of operators, for a parameter

    def step(self, at, sizes, *, last="aten::addcdiv_"):
        """A step that takes 1 us for each call, 2 us from one to the next, and as long before and after."""
        events, start = [], at
        for size in sizes:
            for name in ["aten::lerp_", "aten::mul_", "aten::addcmul_", last]:
                start += 2000
                events.append(op(name, start, start + 1000, inputs=(tensor(size),)))
                start += 1000
        return scope("Optimizer.step#Adam.step", at, start + 2000, *events)

    def gains(self, sizes, costs=(("op", 0),)):
        steps = [self.step(i * 10**6, sizes) for i in range(3)]
        return [finding.gain_ns for finding in found(record(steps, info=info(costs)), "optimizer step not fused")]

    def test_calls_and_python_between_less_those_of_the_beginning(self):
        calls = 20 * self.CALLS
        between, calling = 3 * (calls + 1) * 2000, (3 * calls - 3) * 1000
        assert self.gains([16] * 20) == [round((between + calling) * (20 - optimizers.BEGINNING) / 20)]

    def test_large_parameters_gain_nothing(self):
        assert self.gains([optimizers.FEW_ELEMENTS + 1] * 20) == []
        (some,), (all_small,) = self.gains([16] * 12 + [4096] * 8), self.gains([16] * 20)
        assert some / all_small == pytest.approx((12 - optimizers.BEGINNING) / (20 - optimizers.BEGINNING))

    def test_a_few_small_ones_gain_nothing(self):
        assert self.gains([16] * optimizers.BEGINNING) == []

    def test_python_that_the_tracer_makes_longer(self):
        calls = 20 * self.CALLS
        between, calling = 3 * calls * outside.IN_STEP * 100, (3 * calls - 3) * 1000
        gained = self.gains([16] * 20, (("op", 0), (CALL_IN_C, 100)))
        assert gained == [round((between + calling) * (20 - optimizers.BEGINNING) / 20)]


class TestBias:
    def test_three_times_its_sum_and_one_parameter_of_the_engine(self):
        image, weight, bias = tensor(2, 3, 8, 8), tensor(3, 3, 3, 3), tensor(3)
        norm = (image, bias, bias, bias, bias, True, 0.1, 1e-5, True)
        backward = op(
            f"{EVALUATE}ConvolutionBackward0", 50_000, 70_000, op("aten::sum", 52_000, 56_000, inputs=(image,)), sequence=3
        )
        events = [
            op("aten::conv2d", 0, 10_000, inputs=(image, weight, bias), sequence=3),
            op("aten::batch_norm", 20_000, 30_000, inputs=norm, sequence=4),
            backward,
            op(f"{EVALUATE}torch::autograd::AccumulateGrad", 80_000, 82_500),
        ]
        (finding,) = found(record(events, info=info()), "bias before batch norm")
        assert finding.gain_ns == layers.OF_SUMMING * 4000 + 2500


class TestGradientsCopied:
    def test_the_operator_that_reads_across_takes_longer(self):
        across, along = tensor(40, 30, strides=(1, 40)), tensor(40, 30)
        accumulate = "torch::autograd::AccumulateGrad"
        events = [
            op("aten::transpose", 0, 1000, inputs=(tensor(30, 40), 0, 1), sequence=1),
            op("aten::mul", 2000, 12_000, inputs=(across, along), sequence=2),
            op("aten::add", 20_000, 24_000, inputs=(along, along)),
            op(f"{EVALUATE}MulBackward0", 30_000, 36_000, sequence=2),
            op(f"{EVALUATE}TransposeBackward0", 40_000, 42_000, sequence=1),
            op(f"{EVALUATE}{accumulate}", 50_000, 60_000, op(accumulate, 51_000, 59_000, op("aten::clone", 52_000, 57_000))),
        ]
        (finding,) = found(record(events, info=info()), "gradients copied")
        copy, views, longer = 5000, 1000 + 2000, 10_000 - 4000
        assert finding.gain_ns == copy + views + longer


class TestGraph:
    NAME = f"{EVALUATE}MulBackward0"

    def test_nodes_of_before_the_recording_are_of_earlier_steps(self):
        events = []
        for step in range(3):
            at = step * 100_000
            events += [
                op("aten::mul", at, at + 1000, sequence=100 + step, step=step),
                op(self.NAME, at + 5000, at + 7000, sequence=100 + step, step=step),
                op(self.NAME, at + 60_000, at + 62_000, sequence=7, step=step),
            ]
        (finding,) = found(record(events, info=info()), "graph kept alive")
        assert finding.gain_ns == 2 * 2000  # in the first step, it may have been made just before
