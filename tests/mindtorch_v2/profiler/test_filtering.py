"""Sessions without some of their operators."""

import numpy as np

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import keys, registry
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.model import filtering, session_check, tree
from mindtorch_v2.profiler.model.session import Info, MemoryLog
from mindtorch_v2.profiler.results import Results

from .by_hand import kernel, op, record, runtime, scope

x = torch.ones(2)


def names(session):
    return [session.labels[i].name for i in session.label]


def nested():
    inner = op("aten::addmm", 20, 90, op("aten::copy_", 30, 40), op("aten::copy_", 50, 60))
    return record([scope("step", 0, 200, op("aten::linear", 10, 100, inner)), op("aten::relu", 210, 220)])


def test_scopes_stay_and_depths_close_up():
    kept = filtering.operators(nested(), exclude=["aten::linear", "aten::addmm"])
    assert names(kept) == ["step", "aten::copy_", "aten::copy_", "aten::relu"]
    assert kept.depth.tolist() == [0, 1, 1, 0]
    assert tree.parents(kept).tolist() == [-1, 0, 0, -1]
    session_check.check(kept)


def test_include_keeps_what_matches_and_exclude_takes_from_that():
    assert names(filtering.operators(nested(), include=["aten::*m*", "aten::copy_"])) == [
        "step",
        "aten::addmm",
        "aten::copy_",
        "aten::copy_",
    ]
    assert names(filtering.operators(nested(), include=["aten::*"], exclude=["*copy_"])) == [
        "step",
        "aten::linear",
        "aten::addmm",
        "aten::relu",
    ]


def test_what_is_left_out_is_counted_and_its_time_is_its_parents():
    kept = filtering.operators(nested(), exclude=["aten::copy_"])
    assert kept.info.metadata["filter"] == {"operators left out": 2, "include": [], "exclude": ["aten::copy_"]}
    (addmm,) = [row for row in Results(kept).key_averages() if row.key == "aten::addmm"]
    assert addmm.self_cpu_time_total == addmm.cpu_time_total == 0.07


def test_a_filter_that_matches_nothing_changes_nothing():
    session = nested()
    assert filtering.operators(session, exclude=["aten::conv*"]) is session


def test_memory_goes_to_the_event_around():
    log = MemoryLog(*(np.array(column) for column in ([35, 215], [0, 0], [1, 2], [64, 8], [64, 72], [3, 5])))
    kept = filtering.operators(nested().replace(memory=log), include=["aten::linear"])
    assert names(kept) == ["step", "aten::linear"]
    assert kept.memory.event.tolist() == [1, -1]
    session_check.check(kept)


def test_kernels_know_their_launch():
    launch = op("aten::add", 0, 50, op("aten::empty", 2, 4), runtime("aclnnAdd", 10, 20, correlation=7))
    kept = filtering.operators(record([launch, kernel("Add", 60, 90, stream=2, correlation=7)]), exclude=["aten::empty"])
    assert names(kept) == ["aten::add", "aclnnAdd", "Add"]
    assert kept.launch.tolist() == [-1, -1, 1]


def test_numbers_of_recordings_stay_at_their_first_event():
    info = Info(first_ids=((0, 5), (2, 40)))
    session = record([op("a", 0, 10), op("b", 20, 30), op("c", 40, 50)], info=info)
    assert filtering.operators(session, exclude=["a"]).info.first_ids == ((0, 5), (1, 40))


def test_a_real_recording_with_everything_on():
    model = torch.nn.Linear(4, 4)
    with profile(record_shapes=True, with_stack=True, profile_memory=True, with_modules=True) as prof:
        model(torch.ones(2, 4)).sum().backward()
    kept = filtering.operators(prof.session, exclude=["aten::t", "*sum*", "*Sum*"])
    session_check.check(kept)
    assert "aten::addmm" in names(kept)
    assert not {"aten::t", "aten::sum"} & set(names(kept))
    assert len(Results(kept).events()) == len(kept)


class TestWhileRecording:
    """Operators of other names run the functions that they run unrecorded."""

    def test_the_same_function_runs(self):
        mul, key_set = registry.find("aten::mul", "Tensor"), keys.CPU
        x * x
        unrecorded = mul.table[key_set]
        with profile(exclude=["aten::mul"]) as prof:
            x * x
            assert mul.table[key_set] is unrecorded
            x + x
        with profile() as after:
            assert mul.table.get(key_set) is not unrecorded
            x * x
        assert [[e.name for e in p.events()] for p in (prof, after)] == [["aten::add"], ["aten::mul"]]
        x * x
        assert mul.table[key_set] is unrecorded

    def test_operators_inside_are_recorded(self):
        with profile(exclude=["aten::linear"]) as prof:
            torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(4))
        names = [e.name for e in prof.events()]
        assert "aten::linear" not in names
        assert "aten::addmm" in names

    def test_modes_are_entered_and_left_meanwhile(self):
        with profile(include=["aten::add"]) as prof:
            with torch.inference_mode():
                x * x
                x + x
            x * x
            x + x
        assert [e.name for e in prof.events()] == ["aten::add"] * 2
