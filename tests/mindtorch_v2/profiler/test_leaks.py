"""What is alive at the end of a recording that was made inside: `prof.leaks()` and `torch.cpu.memory.leaks()`."""

import gc
import random

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._storage import UntypedStorage
from mindtorch_v2.profiler import Session, profile
from mindtorch_v2.profiler.model.leaks import Leak, Leaks, Place, Survivor

memory = torch.cpu.memory


@pytest.fixture(autouse=True)
def _history_off():
    gc.collect()
    yield
    memory._record_memory_history(enabled=None)


def named(leaks, operator):
    return [row for row in leaks if row.operator == operator]


# --- what a recording left behind -----------------------------------------------------------------------------------------------------


def test_what_was_made_inside_and_lives_is_listed_by_operator_largest_first():
    before = torch.ones(1000)
    with profile(profile_memory=True) as prof:
        kept = torch.ones(10) * 2
        more = [torch.zeros(100) for _ in range(3)]
        del before
    leaks = prof.leaks()
    assert [(row.operator, row.size_bytes, row.count) for row in leaks] == [("aten::zeros", 1200, 3), ("aten::mul", 40, 1)]
    assert (leaks.total_bytes, leaks.total_count) == (1240, 4)
    assert all(row.stack == () and row.module == "" and row.role == "" for row in leaks)
    assert len(more) == 3
    assert kept.nbytes == 40


def test_it_is_the_end_of_the_recording_that_counts():
    with profile(profile_memory=True) as prof:
        kept = torch.ones(10)
    del kept
    later = torch.ones(20)
    assert [row.size_bytes for row in prof.leaks()] == [40]
    assert later.nbytes == 80


def test_memory_that_was_freed_and_made_again_at_its_address_counts_once():
    with profile(profile_memory=True) as prof:
        for _ in range(20):
            kept = None
            kept = torch.ones(50)
    (row,) = prof.leaks()
    assert (row.size_bytes, row.count) == (200, 1)
    assert kept is not None


def test_views_hold_all_of_their_memory():
    with profile(profile_memory=True) as prof:
        corner = torch.ones(100, 100)[:1, :1]
    (row,) = prof.leaks()
    assert (row.size_bytes, row.operator) == (40000, "aten::ones")
    assert corner.numel() == 1


def test_stacks_tell_who_made_it():
    def makes(kept):
        kept.append(torch.ones(7))

    kept = []
    with profile(profile_memory=True, with_stack=True) as prof:
        makes(kept)
        makes(kept)
    leaks = prof.leaks()
    assert [(row.count, row.size_bytes) for row in leaks] == [(1, 28), (1, 28)]  # two lines called
    line = makes.__code__.co_firstlineno + 1
    assert all(row.stack[0].endswith(f"test_leaks.py({line}): makes") for row in leaks)
    assert "test_stacks_tell_who_made_it" in leaks[0].stack[1]
    (row,) = prof.leaks(group_by_stack_n=1)
    assert (row.count, len(row.stack)) == (2, 1)
    (row,) = prof.leaks(group_by_stack_n=0)
    assert (row.count, row.stack) == (2, ())


def test_modules_are_told_when_recorded():
    layer = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh())
    with profile(profile_memory=True, with_modules=True) as prof:
        out = layer(torch.ones(2, 4))
    assert {row.operator: row.module for row in prof.leaks()}["aten::tanh"] == "Sequential.1"
    assert out.shape == (2, 3)


def test_what_the_runtime_knows_of_memory_is_told():
    with profile(profile_memory=True) as prof:
        model = torch.nn.Linear(8, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        out = model(torch.ones(2, 8))
        out.sum().backward()
        optimizer.step()
    roles = {}
    for row in prof.leaks():
        roles[row.role] = roles.get(row.role, 0) + row.size_bytes
    parameters = (8 * 4 + 4) * 4
    assert roles["parameter"] == roles["gradient"] == roles["optimizer state"] == parameters
    assert roles[""] >= out.nbytes


def test_a_tensor_that_another_thread_is_making_is_no_obstacle():
    with profile(profile_memory=True) as prof:
        half_made = object.__new__(torch.Tensor)
        kept = torch.ones(5)
    assert [row.size_bytes for row in prof.leaks()] == [20]
    assert kept is not half_made


def test_buffers_of_modules_are_told():
    with profile(profile_memory=True) as prof:
        norm = torch.nn.BatchNorm1d(8)
    sizes = {}
    for row in prof.leaks():
        sizes[row.role] = sizes.get(row.role, 0) + row.size_bytes
    assert sizes == {"parameter": 64, "buffer": 8 * 4 * 2 + 8}  # mean and variance, and the count of batches
    assert norm.num_features == 8


@pytest.mark.parametrize("seed", range(3))
def test_after_any_program_the_list_has_what_is_there_and_was_not_before(seed):
    generator, kept = random.Random(seed), [torch.ones(n) for n in range(1, 20)]
    before = {id(s): s for s in storages()}
    with profile(profile_memory=True) as prof:
        for _ in range(300):
            match generator.randrange(8):
                case 0 | 1:
                    kept.append(torch.ones(generator.randrange(1, 50)))
                case 2:
                    kept.append(kept[-1][:1] * 2 if kept else torch.zeros(3))
                case 3:
                    kept.append(kept[-1].data if kept else torch.zeros(3))
                case 4:
                    kept.append(torch.tensor([1.0] * generator.randrange(1, 9)))
                case 5:
                    kept.append(torch.from_numpy(np.zeros(generator.randrange(5))))
                case 6:
                    kept.append(torch.ones(3).resize_(generator.randrange(1, 90)))
                case _:
                    del kept[generator.randrange(len(kept) + 1) :]
    known = {id(s.array) for s in before.values()}
    expected = {id(s.array): s.nbytes() for s in storages() if id(s) not in before and id(s.array) not in known and s.nbytes()}
    assert (prof.leaks().total_count, prof.leaks().total_bytes) == (len(expected), sum(expected.values()))


def storages():
    return [s for s in gc.get_objects() if type(s) is UntypedStorage]


# --- steps ----------------------------------------------------------------------------------------------------------------------------


def test_what_each_step_leaves_behind_grows():
    kept, last = [], None
    with profile(profile_memory=True) as prof:
        for _ in range(5):
            kept.append(torch.ones(10))
            last = torch.zeros(20)
            prof.step()
    grows, stays = named(prof.leaks(), "aten::ones"), named(prof.leaks(), "aten::zeros")
    assert [(row.step_bytes, row.grows, row.bytes_per_step) for row in grows] == [(dict.fromkeys(range(5), 40), True, 40.0)]
    assert [(row.step_bytes, row.grows, row.bytes_per_step) for row in stays] == [({4: 80}, False, 0.0)]
    assert last is not None


def test_a_list_of_the_last_few_does_not_grow():
    kept = []
    with profile(profile_memory=True) as prof:
        for _ in range(8):
            kept = [*kept[-3:], torch.ones(10)]
            prof.step()
    (row,) = prof.leaks()
    assert (list(row.step_bytes), row.grows) == ([4, 5, 6, 7], False)


def test_what_is_made_once_does_not_grow():
    with profile(profile_memory=True) as prof:
        kept = torch.ones(10)
        for _ in range(5):
            kept.mul_(2)
            prof.step()
    (row,) = prof.leaks()
    assert (row.step_bytes, row.grows) == ({0: 40}, False)


def test_steps_are_those_of_the_schedule():
    kept = []
    with profile(profile_memory=True, schedule=torch.profiler.schedule(wait=1, warmup=1, active=3)) as prof:
        for _ in range(5):
            kept.append(torch.ones(10))
            prof.step()
    (row,) = prof.leaks()
    assert (list(row.step_bytes), row.count) == ([2, 3, 4], 3)


def test_over_several_cycles_what_was_freed_in_a_later_one_is_not_alive():
    kept = []
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    with profile(profile_memory=True, acc_events=True, schedule=schedule) as prof:
        for step in range(4):
            if step == 1:
                kept += [torch.ones(10), torch.ones(20), torch.zeros(5)]
            if step == 3:
                del kept[0]
                kept.append(torch.zeros(7))
            prof.step()
    assert [(row.operator, row.step_bytes) for row in prof.leaks()] == [("aten::ones", {1: 80}), ("aten::zeros", {1: 20, 3: 28})]


# --- garbage --------------------------------------------------------------------------------------------------------------------------


class Ring:
    def __init__(self, tensor):
        self.ring, self.tensor = self, tensor


def test_collecting_gives_the_same_answer_each_time():
    gc.disable()
    try:
        with profile(profile_memory=True) as prof:
            for _ in range(8):
                cycle = [torch.ones(10)]
                cycle.append(cycle)
            del cycle
        assert prof.leaks().total_count == 8
        assert [prof.leaks(collect=True).total_count for _ in range(3)] == [0, 0, 0]
        assert prof.leaks().total_count == 8  # they were alive at the end
    finally:
        gc.enable()


def test_garbage_is_alive_until_it_is_collected_on_request():
    gc.disable()
    try:
        with profile(profile_memory=True) as prof:
            Ring(torch.ones(100))
            kept = Ring(torch.zeros(10))
        assert {row.operator for row in prof.leaks()} == {"aten::ones", "aten::zeros"}
        assert {row.operator for row in prof.leaks()} == {"aten::ones", "aten::zeros"}  # nothing was collected by asking
        assert {row.operator for row in prof.leaks(collect=True)} == {"aten::zeros"}
        assert kept.tensor.numel() == 10
    finally:
        gc.enable()


def test_what_the_program_freed_since_is_no_garbage():
    with profile(profile_memory=True) as prof:
        kept = torch.ones(100)
    del kept
    assert [row.operator for row in prof.leaks(collect=True)] == ["aten::ones"]


# --- edges ----------------------------------------------------------------------------------------------------------------------------


def test_nothing_alive_is_an_empty_list():
    with profile(profile_memory=True) as prof:
        torch.ones(10)
    assert prof.leaks() == []
    assert "Alive: 0 B in 0 storages" in prof.leaks().table()


def test_nothing_recorded_is_an_empty_list():
    with profile(profile_memory=True) as prof:
        pass
    assert prof.leaks() == []


def test_memory_made_outside_of_operators_is_listed():
    with profile(profile_memory=True) as prof:
        kept = torch.from_numpy(np.zeros(5))
    (row,) = prof.leaks()
    assert (row.operator, row.size_bytes) == ("", 40)
    assert "(no operator)" in str(prof.leaks())
    assert kept.numel() == 5


def test_memory_made_outside_of_operators_has_its_own_stack():
    def makes():
        return torch.tensor([1.0, 2.0]), torch.from_numpy(np.zeros(5))

    with profile(profile_memory=True, with_stack=True) as prof:
        kept = makes()
        with torch.profiler.record_function("scope"):
            more = makes()
    line = makes.__code__.co_firstlineno + 1
    leaks = prof.leaks()
    assert [(row.count, row.size_bytes) for row in leaks] == [(2, 48), (2, 48)]  # two lines called
    assert all(row.stack[0].endswith(f"test_leaks.py({line}): makes") for row in leaks)
    assert [(row.count, row.size_bytes) for row in prof.leaks(group_by_stack_n=1)] == [(4, 96)]
    assert len(kept) == len(more) == 2


def test_stacks_of_several_cycles_are_joined():
    kept = []
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    with profile(profile_memory=True, with_stack=True, acc_events=True, schedule=schedule) as prof:
        for _ in range(4):
            kept.append(torch.tensor([1.0]))
            prof.step()
    (row,) = prof.leaks()
    assert list(row.step_bytes) == [1, 3]
    assert "test_stacks_of_several_cycles_are_joined" in row.stack[0]


def test_without_memory_recorded_it_says_what_to_do():
    with profile() as prof:
        torch.ones(2)
    with pytest.raises(ValueError, match="profile_memory=True"):
        prof.leaks()


def test_a_saved_session_has_them_too(tmp_path):
    with profile(profile_memory=True, with_stack=True) as prof:
        model = torch.nn.Linear(3, 3)
    prof.session.save(tmp_path / "s.session")
    assert Leaks.of(Session.load(tmp_path / "s.session")) == prof.leaks()
    assert {row.role for row in prof.leaks()} == {"parameter"}
    assert model.bias.numel() == 3


# --- the table ------------------------------------------------------------------------------------------------------------------------


def leaks_by_hand():
    train = Place("aten::sum", ("train.py(12): step", "train.py(30): <module>"), "")
    start = Place("aten::zeros_like", ("optim/adam.py(105): _state_of",), "")
    alive = [Survivor(4, train, step=k) for k in range(3)]
    alive += [Survivor(2048, start, "optimizer state", 0), Survivor(2048, start, "optimizer state", 0)]
    return Leaks.grouped(alive, {train: {0, 1, 2}, start: {0}})


def test_the_table():
    assert leaks_by_hand().table() == (
        "-------------------------------------------------------------------------------------------------\n"
        "  Bytes  Count    Growth  Steps  Role             Operator          Source Location\n"
        "-------------------------------------------------------------------------------------------------\n"
        "4.00 KB      2            0      optimizer state  aten::zeros_like  optim/adam.py(105): _state_of\n"
        "   12 B      3  4 B/step  0-2                     aten::sum         train.py(12): step\n"
        "                                                                    train.py(30): <module>\n"
        "-------------------------------------------------------------------------------------------------\n"
        "Alive: 4.01 KB in 5 storages\n"
    )


def test_the_table_in_another_order_of_a_few_rows_and_of_narrow_places():
    text = leaks_by_hand().table(sort_by="count", row_limit=1, max_src_column_width=12)
    assert "aten::sum" in text
    assert "zeros_like" not in text
    assert "...12): step" in text
    assert "Alive: 4.01 KB in 5 storages" in text
    assert leaks_by_hand().table(row_limit=-1) == leaks_by_hand().table() == str(leaks_by_hand())


def test_rows_are_facts_that_can_be_computed_with():
    first, second = leaks_by_hand()
    assert first == Leak(4096, 2, "aten::zeros_like", ("optim/adam.py(105): _state_of",), "", "optimizer state", {0: 4096}, False)
    assert (second.bytes_per_step, second.step_bytes) == (4.0, {0: 4, 1: 4, 2: 4})


# --- a history ------------------------------------------------------------------------------------------------------------------------


def test_a_history_lists_what_was_made_since_its_start_and_is_alive_now():
    before = torch.ones(1000)
    memory._record_memory_history()

    def makes():
        return torch.ones(10) + 1

    kept = makes()
    (row,) = memory.leaks()
    assert (row.operator, row.size_bytes, row.count, row.step_bytes, row.grows) == ("aten::add", 40, 1, {}, False)
    line = makes.__code__.co_firstlineno + 1
    assert row.stack[0].endswith(f"test_leaks.py({line}): makes")
    del kept
    assert memory.leaks() == []
    assert before.numel() == 1000


def test_a_history_knows_roles_and_groups_by_frames():
    memory._record_memory_history("state", stacks="python")
    models = [torch.nn.Linear(4, 4, bias=False) for _ in range(3)]
    (row,) = memory.leaks(group_by_stack_n=1)
    assert (row.role, row.operator, row.count, row.size_bytes) == ("parameter", "aten::empty", 3, 192)
    assert "linear.py" in row.stack[0]
    assert len(models) == 3


def test_a_history_collects_garbage_on_request():
    memory._record_memory_history()
    gc.disable()
    try:
        Ring(torch.ones(100))
        assert memory.leaks().total_bytes == 400
        assert memory.leaks(collect=True) == []
    finally:
        gc.enable()


def test_without_a_history_it_says_what_to_do():
    with pytest.raises(RuntimeError, match="_record_memory_history"):
        memory.leaks()
