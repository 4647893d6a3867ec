"""Every row of a profile with memory has the bytes that torch's profiler gives it."""

import collections
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

# Rows of which torch has more, for the work of its kernels and composites, and for variants with `out=` that operators call of themselves
# (`arange` over `arange`): there is no telling which of them is which of ours.
OF_TORCH_MORE = {
    "aten::" + name
    for name in (
        "clone contiguous empty empty_like expand fill_ narrow reshape resize_ slice to _to_copy transpose view zero_ abs arange linspace"
    ).split()
}

# What differs for a reason.
DIFFERENT = {
    # torch's `_safe_softmax` has `where` write over the softmax, which it reads; ours makes a result
    "examples/gpt.py": {"aten::where"},
    "examples/cnn.py": set(),
    "examples/mlp.py": set(),
    "examples/profile_training.py": set(),
}

COMPARED = {
    "examples/gpt.py": "add addmm bmm cat div embedding gelu layer_norm mm mul _softmax sum",
    "examples/cnn.py": "add addmm batch_norm cat conv2d convolution convolution_backward max_pool2d mm mul relu sum",
    "examples/mlp.py": "addmm mm relu _log_softmax nll_loss_forward nll_loss_backward sum threshold_backward",
    "examples/profile_training.py": "add addmm conv1d convolution convolution_backward div mm mul relu sum",
}


def without_frees_of_what_lived_before(prof):
    """The events as torch would see them, which does not know memory that was made before the recording."""
    from mindtorch_v2.profiler.output.event_list import EventList

    log, made, kept = prof.session.memory, set(), []
    for i, (address, size) in enumerate(zip(log.address.tolist(), log.size_bytes.tolist(), strict=True)):
        if size > 0 or address in made:
            kept.append(i)
        made ^= {address} if size > 0 or address in made else set()
    return EventList.of(prof.session.replace(memory=type(log)(*(None if column is None else column[kept] for column in log))))


def usage(events):
    """The bytes of all rows of a name, in order."""
    found = collections.defaultdict(list)
    for event in events:
        found[event.name].append(event.cpu_memory_usage)
    return dict(found)


# torch remembers the addresses of what lived at the end of a recording, and later counts the free of anything that came to lie there:
# each of its recordings is the first of a process.
PROFILE_IN_TORCH = """
import collections, json, sys, warnings
import torch
from profile_comparison import EXAMPLES, plain_torch, profile_example
with plain_torch():
    prof = profile_example(torch, EXAMPLES[sys.argv[1]], profile_memory=True)
found = collections.defaultdict(list)
for event in prof.events():
    found[event.name].append(event.cpu_memory_usage)
print(json.dumps(found))
"""


def usage_in_torch(example):
    path = os.pathsep.join(str(p) for p in (Path(__file__).parent, *sys.path))
    run = [sys.executable, "-c", PROFILE_IN_TORCH, example]
    text = subprocess.run(run, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True).stdout
    return json.loads(text.splitlines()[-1])


@pytest.mark.parametrize("example", DIFFERENT)
def test_rows_of_an_example_have_the_same_bytes(example):
    from profile_comparison import EXAMPLES, profile_example

    import mindtorch_v2

    prof = profile_example(mindtorch_v2, EXAMPLES[example], profile_memory=True)
    ours, theirs = usage(without_frees_of_what_lived_before(prof)), usage_in_torch(example)
    more = {name for name in ours if len(ours[name]) != len(theirs.get(name, []))}
    assert more <= OF_TORCH_MORE
    compared = ours.keys() - OF_TORCH_MORE
    assert compared >= {f"aten::{name}" for name in COMPARED[example].split()}
    assert {name for name in compared if ours[name] != theirs[name]} == DIFFERENT[example]
    # operators themselves free nothing that lived before: they have these bytes in either view
    all_of_ours = usage(prof.events())
    assert {n for n in compared if n.startswith("aten::") and all_of_ours[n] != theirs[n]} == DIFFERENT[example]


def record_changes_outside(lib):
    x = lib.ones(8, 8)
    with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU], profile_memory=True) as prof:
        y = x + x
        z = y.exp()
        del y
        with lib.profiler.record_function("scope"):
            z = z.t() @ z
        w = z.sum()
        del z, w
    return prof


def test_changes_outside_of_operators_are_the_same_events():
    import torch

    import mindtorch_v2

    ours, theirs = (record_changes_outside(lib) for lib in (mindtorch_v2, torch))
    facts = "name cpu_memory_usage self_cpu_memory_usage trace_name thread fwd_thread device_index activity_type scope sequence_nr"
    facts += (
        " external_id linked_correlation_id count cpu_children cpu_parent input_shapes stack kernels is_async is_user_annotation"
    )

    def changes(prof):
        return [{fact: getattr(e, fact) for fact in facts.split()} for e in prof.events() if e.name == "[memory]"]

    assert changes(ours) == changes(theirs)
    assert len(changes(ours)) == 3
    assert [e.time_range.elapsed_us() for e in ours.events() if e.name == "[memory]"] == [0, 0, 0]
    (row,), (other,) = ([r for r in prof.key_averages() if r.key == "[memory]"] for prof in (ours, theirs))
    assert (row.count, row.cpu_memory_usage, row.self_cpu_memory_usage) == (
        other.count,
        other.cpu_memory_usage,
        other.self_cpu_memory_usage,
    )
