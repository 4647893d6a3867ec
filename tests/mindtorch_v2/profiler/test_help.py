"""`help()` describes every argument of what people call."""

import inspect
import re

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import _ExperimentalConfig, profile, record_function, schedule, tensorboard_trace_handler
from mindtorch_v2.profiler.bounds import BoundOptions
from mindtorch_v2.profiler.output.event_list import EventList

DESCRIBED = {
    "profile": profile,
    "schedule": schedule,
    "record_function": record_function,
    "_ExperimentalConfig": _ExperimentalConfig,
    "tensorboard_trace_handler": tensorboard_trace_handler,
    "EventList.table": EventList.table,
    "EventList.key_averages": EventList.key_averages,
    "profile.key_averages": profile.key_averages,
}


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_argument_is_described_in_order(name):
    what = DESCRIBED[name]
    arguments = [argument for argument in inspect.signature(what).parameters if argument != "self"]
    if arguments[-1] == "bounds":  # keywords of their own
        arguments[-1:] = BoundOptions.__annotations__
    text = inspect.getdoc(what)
    described = re.findall(r"^    (\w+): (.+)$", text.partition("Args:\n")[2], re.MULTILINE)
    assert [argument for argument, _ in described] == arguments
    assert all(len(sentence.split()) >= 2 for _, sentence in described)


@pytest.mark.parametrize("name", [name for name in dir(profile) if not name.startswith("_")])
def test_every_method_of_a_profiler_has_a_docstring(name):
    assert inspect.getdoc(getattr(profile, name))


@pytest.mark.parametrize("name", [name for name in dir(torch.profiler.Results) if not name.startswith("_")])
def test_every_method_of_results_has_a_docstring(name):
    assert inspect.getdoc(getattr(torch.profiler.Results, name))
