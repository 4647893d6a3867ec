"""torch.cpu.memory: the history of storages, from their making to their end."""

import gc
import os
import random
import threading
import time

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._storage import UntypedStorage
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.capture.memory import history
from mindtorch_v2.profiler.capture.memory.storage_hooks import array_slot

from .memory_snapshots import ALLOCATION, FREE, actions, address, functions, memory, segment_of, trace

pytestmark = pytest.mark.usefixtures("history_off")


# --- what is recorded ---------------------------------------------------------------------------------------------------------------


def test_a_storage_is_in_the_trace_from_its_making_to_its_end():
    memory._record_memory_history()
    x = torch.ones(100)
    of = address(x)
    assert actions(of) == ALLOCATION
    del x
    entries = trace()
    assert actions(of, entries) == ALLOCATION + FREE
    assert all(entry["size"] == 400 for entry in entries if entry.get("addr") == of)


def test_times_rise_and_are_those_of_the_unix_clock():
    before = time.time_ns() // 1000
    memory._record_memory_history()
    kept = [torch.ones(3) for _ in range(5)]
    times = [entry["time_us"] for entry in trace()]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= time.time_ns() // 1000
    assert len(kept) == 5


def test_stacks_are_the_programs_and_begin_with_the_operators():
    memory._record_memory_history()

    def makes():
        return torch.ones(7, 7)

    def multiplies(x):
        return x @ x

    product = multiplies(makes())
    frames = segment_of(product)["blocks"][0]["frames"]
    assert functions(frames)[:4] == [
        "aten::mm",
        "aten::matmul",
        "multiplies",
        "test_stacks_are_the_programs_and_begin_with_the_operators",
    ]
    assert frames[2]["filename"] == __file__
    assert frames[2]["line"] == multiplies.__code__.co_firstlineno + 1
    package = os.path.dirname(torch.__file__)
    assert not any(frame["filename"].startswith(package) for frame in frames)


def test_frames_of_modules_are_shown_and_operators_only_when_asked():
    memory._record_memory_history(stacks="python")
    layer = torch.nn.Linear(4, 4)
    result = layer(torch.ones(2, 4))
    frames = segment_of(result)["frames"]
    assert not any("::" in name for name in functions(frames))
    assert "forward" in functions(frames)


def test_frees_have_the_stack_of_the_free():
    memory._record_memory_history()
    box = [torch.ones(50)]
    of = address(box[0])

    def lets_go():
        box.clear()

    lets_go()
    (freed,) = [entry for entry in trace() if entry["action"] == "free_completed" and entry["addr"] == of]
    assert functions(freed["frames"])[0] == "lets_go"


@pytest.mark.parametrize(
    ("context", "block", "allocation", "free"),
    [(None, False, False, False), ("state", True, False, False), ("alloc", True, True, False), ("all", True, True, True)],
)
def test_context_says_what_has_stacks(context, block, allocation, free):
    memory._record_memory_history(context=context)
    x, y = torch.ones(10), torch.ones(10)
    freed = address(y)
    del y
    snapshot = memory._snapshot()
    assert bool(segment_of(x, snapshot)["blocks"][0]["frames"]) == block
    entries = {entry["action"]: entry for entry in trace(snapshot) if entry.get("addr") == freed}
    assert bool(entries["alloc"].get("frames")) == allocation
    assert bool(entries["free_completed"].get("frames")) == free


def test_state_alone_keeps_no_trace():
    memory._record_memory_history("state")
    x = torch.ones(10)
    snapshot = memory._snapshot()
    assert trace(snapshot) == []
    assert snapshot["dropped_entries"] == 0
    assert "aten::ones" in functions(segment_of(x, snapshot)["frames"])


def test_actions_can_be_left_out():
    memory._record_memory_history(skip_actions=["segment_alloc", "segment_free", "snapshot"])
    of = address(torch.ones(10))
    assert {entry["action"] for entry in trace()} == {"alloc", "free_requested", "free_completed"}
    assert actions(of) == ["alloc", "free_requested", "free_completed"]


def test_what_lived_before_is_in_the_snapshot_without_a_stack_and_its_free_in_the_trace():
    x = torch.ones(1000)
    of = address(x)
    memory._record_memory_history()
    assert segment_of(x)["blocks"][0]["frames"] == []
    del x
    assert actions(of) == FREE


def test_views_and_storages_over_one_array_are_one_block_that_lives_as_long_as_any():
    memory._record_memory_history()
    x = torch.ones(64)
    view, data = x[2:], x.data
    of = address(x)
    del x, view
    assert actions(of) == ALLOCATION
    assert segment_of(data)["total_size"] == 256
    del data
    assert actions(of) == ALLOCATION + FREE


def test_memory_shared_before_the_start_is_freed_once():
    x = torch.ones(64)
    data, of = x.data, address(x)
    memory._record_memory_history()
    del x
    assert actions(of) == []
    del data
    assert actions(of) == FREE


def test_memory_that_grows_in_place_is_freed_and_made():
    memory._record_memory_history()
    x = torch.ones(4)
    before = address(x)
    x.resize_(1000)
    assert actions(before)[:5] == ALLOCATION + FREE
    assert segment_of(x)["total_size"] == 4000


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((4, 5))[1:, ::2], np.array(7.0), np.zeros(0), np.ma.zeros(2)])
def test_the_two_ways_to_an_address_agree(array):
    assert history._address_by_layout(array) == history._address_by_interface(array)


def test_tensors_without_memory_are_not_in_it():
    memory._record_memory_history()
    kept = [torch.empty(1 << 40, device="meta"), torch.empty(0), torch.ones(4, 4).to_sparse()]
    snapshot = memory._snapshot()
    assert sum(segment["total_size"] for segment in snapshot["segments"]) < 1 << 30
    assert all(entry["size"] for entry in trace(snapshot)[:-1])
    values = address(kept[2]._values())
    del kept
    assert actions(values) == ALLOCATION + FREE


def test_frees_by_the_garbage_collector_are_seen():
    class Ring:
        pass

    memory._record_memory_history()
    ring = Ring()
    ring.self, ring.tensor = ring, torch.ones(1000)
    of = address(ring.tensor)
    del ring
    gc.collect()
    assert actions(of) == ALLOCATION + FREE


def test_an_exception_frees_what_it_held():
    memory._record_memory_history()

    def fails():
        x = torch.ones(500)
        addresses.append(address(x))
        raise KeyError

    addresses = []
    with pytest.raises(KeyError) as caught:
        fails()
    assert actions(addresses[0]) == ALLOCATION
    del caught
    assert actions(addresses[0]) == ALLOCATION + FREE


def test_threads_are_seen_and_nothing_is_lost():
    memory._record_memory_history(context=None)
    started = threading.Barrier(4)

    def work():
        started.wait()
        for _ in range(200):
            torch.ones(16)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = [entry["action"] for entry in trace() if entry["size"] == 64]
    assert found.count("alloc") == found.count("free_completed") == 800


def live_memory():
    """Address and bytes of what lives, found without a history."""
    arrays = {id(s.array): s for s in gc.get_objects() if type(s) is UntypedStorage}
    return sorted((s.data_ptr(), s.nbytes()) for s in arrays.values() if s.nbytes())


@pytest.mark.parametrize("seed", range(3))
def test_after_any_program_on_several_threads_the_history_knows_what_lives(seed):
    stop = threading.Event()

    def work(number):
        generator, kept = random.Random(f"{seed} {number}"), []
        while not stop.is_set() or len(kept) < 5:
            match generator.randrange(7):
                case 0 | 1:
                    kept.append(torch.ones(generator.randrange(1, 50)))
                case 2:
                    kept.append(kept[-1][:1] if kept else torch.zeros(3))
                case 3:
                    kept.append(kept[-1].data if kept else torch.zeros(3))
                case 4:
                    kept.append(torch.ones(4).resize_(generator.randrange(1, 200)))
                case 5:
                    ring = [torch.ones(5)]
                    ring.append(ring)
                case _:
                    del kept[generator.randrange(len(kept) + 1) :]
        results[number] = kept

    results = {}
    workers = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    memory._record_memory_history(context=None)  # while they work
    time.sleep(0.05)
    stop.set()
    for worker in workers:
        worker.join()
    gc.collect()
    snapshot = memory._snapshot()
    assert [(segment["address"], segment["total_size"]) for segment in snapshot["segments"]] == live_memory()
    balance = dict.fromkeys((address for address, _ in live_memory()), 0)
    for entry in trace(snapshot):
        if entry["action"] in ("alloc", "free_completed"):
            balance[entry["addr"]] = balance.get(entry["addr"], 0) + (1 if entry["action"] == "alloc" else -1)
    known_before = {a for a, count in balance.items() if count == -1}
    assert all(-1 <= count <= 1 for count in balance.values()), "an address is made twice, or freed twice"
    assert not known_before & {address for address, _ in live_memory()}
    results.clear()
    assert [(segment["address"], segment["total_size"]) for segment in memory._snapshot()["segments"]] == live_memory()


# --- the bound ----------------------------------------------------------------------------------------------------------------------


def test_the_trace_keeps_the_latest_entries_and_tells_how_many_were_dropped():
    memory._record_memory_history(max_entries=7, skip_actions=["snapshot"])
    for n in range(1, 6):
        torch.ones(n)
    snapshot = memory._snapshot()
    # five storages of five entries each
    assert len(trace(snapshot)) == 7
    assert snapshot["dropped_entries"] == 5 * 5 - 7
    assert [(entry["action"], entry["size"]) for entry in trace(snapshot)][-5:] == [(action, 20) for action in ALLOCATION + FREE]


def test_what_is_dropped_is_counted_over_changes_of_settings():
    memory._record_memory_history(skip_actions=["snapshot"])
    kept = [torch.ones(3) for _ in range(4)]
    memory._record_memory_history(max_entries=3, skip_actions=["snapshot", "segment_alloc"])
    assert (len(trace()), memory._snapshot()["dropped_entries"]) == (3, 1)
    memory._record_memory_history("state", max_entries=3, skip_actions=["snapshot"])
    kept.append(torch.ones(3))
    assert (len(trace()), memory._snapshot()["dropped_entries"]) == (3, 8 - 3)


def test_nothing_is_dropped_without_a_bound():
    memory._record_memory_history()
    for _ in range(50):
        torch.ones(3)
    snapshot = memory._snapshot()
    assert snapshot["dropped_entries"] == 0
    assert len(trace(snapshot)) == 50 * 5 + 1


# --- starting, changing, stopping ---------------------------------------------------------------------------------------------------


def test_off_nothing_is_watched_and_a_snapshot_shows_what_lives():
    assert vars(UntypedStorage)["array"] is array_slot
    assert "__del__" not in vars(UntypedStorage)
    x = torch.ones(300)
    snapshot = memory._snapshot()
    assert segment_of(x, snapshot)["total_size"] == 1200
    assert trace(snapshot) == []


def test_stopping_forgets_and_stopping_twice_is_harmless():
    memory._record_memory_history()
    x = torch.ones(10)
    memory._record_memory_history(enabled=None)
    memory._record_memory_history(enabled=None)
    snapshot = memory._snapshot()
    assert trace(snapshot) == []
    assert segment_of(x, snapshot)["frames"] == []


def test_starting_again_changes_settings_and_keeps_the_trace_unless_told():
    memory._record_memory_history()
    x = torch.ones(10)
    memory._record_memory_history(context=None)
    y = torch.ones(10)
    assert actions(address(x)) == ALLOCATION
    assert segment_of(x)["frames"]
    assert not segment_of(y)["frames"]
    memory._record_memory_history(clear_history=True)
    assert actions(address(x)) == []
    assert segment_of(x)["frames"]
    z = torch.ones(10)
    assert actions(address(z)) == ALLOCATION


@pytest.mark.parametrize(
    "wrong",
    [
        {"enabled": True},
        {"enabled": "some"},
        {"context": "free"},
        {"stacks": "cpp"},
        {"max_entries": -1},
        {"skip_actions": ["nothing"]},
    ],
)
def test_what_is_not_known_is_refused(wrong):
    ((name, _),) = wrong.items()
    with pytest.raises(ValueError, match=name):
        memory._record_memory_history(**wrong)


@pytest.mark.parametrize("history_first", [True, False])
@pytest.mark.parametrize("history_last", [True, False])
def test_with_a_profiler_at_the_same_time_both_see_everything(history_first, history_last):
    prof = profile(profile_memory=True, with_stack=True)
    if history_first:
        memory._record_memory_history()
    prof.start()
    if not history_first:
        memory._record_memory_history()
    x = torch.ones(321)
    of = address(x)
    y = x * 2
    del x
    snapshot = memory._snapshot()
    if history_last:
        prof.stop()
    else:
        memory._record_memory_history(enabled=None)
        prof.stop()
    assert actions(of, trace(snapshot)) == ALLOCATION + FREE
    assert "aten::mul" in functions(segment_of(y, snapshot)["frames"])
    sizes = prof.session.memory.size_bytes.tolist()
    assert (sizes.count(1284), sizes.count(-1284)) == (2, 1)
    if history_last:
        z = torch.ones(5)
        assert actions(address(z)) == ALLOCATION


def test_a_forked_process_begins_without_it(tmp_path):
    memory._record_memory_history(oom_snapshot=tmp_path / "parent.pickle")
    kept = torch.ones(10)
    child = os.fork()
    if not child:
        try:
            found = trace() == [] and vars(UntypedStorage)["array"] is array_slot
            try:
                torch.empty(1 << 60)
            except RuntimeError:
                found = found and not (tmp_path / "parent.pickle").exists()
        finally:
            os._exit(0 if found else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert actions(address(kept)) == ALLOCATION


def test_a_program_that_ends_while_recording_says_nothing(run_python):
    done = run_python(
        """
        import mindtorch_v2 as torch
        torch.cpu.memory._record_memory_history()
        x = torch.ones(4)
        ring = [x]
        ring.append(ring)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
