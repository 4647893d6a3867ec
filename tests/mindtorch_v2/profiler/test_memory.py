"""Memory in profiles: bytes of live storage, exactly, counted where storages are made and freed."""

import asyncio
import gc
import json
import threading

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._storage import UntypedStorage
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.capture.memory.storages import ALWAYS, FREED, NOTHING, Noted, Notes, changes_of
from mindtorch_v2.profiler.output.event_list import EventList

KEYS = {"cpu_memory_allocated_before", "cpu_memory_allocated_after", "cpu_memory_allocated_delta"}


@pytest.fixture(autouse=True)
def _no_garbage_of_others():
    gc.collect()


def live_bytes():
    gc.collect()
    return sum(s.nbytes() for s in gc.get_objects() if type(s) is UntypedStorage)


def events_named(prof, name):
    return [e for e in prof.events() if e.name == name]


def test_every_operator_tells_the_memory_before_and_after_it_and_the_difference():
    x = torch.ones(8, 8)
    with profile(profile_memory=True) as prof:
        y = x + x
        z = y.t()
    (add,), (t,) = events_named(prof, "aten::add"), events_named(prof, "aten::t")
    assert add["cpu_memory_allocated_delta"] == 8 * 8 * 4
    assert add["cpu_memory_allocated_after"] - add["cpu_memory_allocated_before"] == 8 * 8 * 4
    assert t["cpu_memory_allocated_delta"] == 0
    assert t["cpu_memory_allocated_before"] == add["cpu_memory_allocated_after"]
    assert add.cpu_memory_usage == add.self_cpu_memory_usage == 256
    assert z.shape == (8, 8)


def test_the_same_keys_are_in_the_trace(tmp_path):
    with profile(profile_memory=True) as prof:
        kept = torch.ones(4)
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    rows = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    ops = [row for row in rows if row.get("cat") == "cpu_op"]
    assert ops
    assert all(row["args"].keys() >= KEYS for row in ops)
    changes = [row for row in rows if row["name"] == "[memory]"]
    assert [row["args"]["Bytes"] for row in changes] == [16]
    assert changes[0]["args"]["Total Allocated"] >= kept.nbytes


def test_without_the_option_no_such_key_is_anywhere(tmp_path):
    with profile() as prof:
        torch.ones(4)
    assert not any(KEYS & set(e.keys()) for e in prof.events())
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    assert "cpu_memory" not in (tmp_path / "t.json").read_text()


def test_the_total_is_what_lives_before_and_after():
    before = torch.ones(100)
    with profile(profile_memory=True) as prof:
        made = torch.ones(50) * 2
        del before
    log = prof.session.memory
    assert log.total_bytes[-1] == live_bytes()
    assert log.size_bytes.tolist().count(-400) == 1
    assert (log.total_bytes >= 0).all()
    assert made.nbytes == 200


def test_the_changes_of_each_step_add_up_to_the_change_in_live_bytes():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(4, 8)
    with profile(profile_memory=True) as prof:
        seen = [live_bytes()]
        for _ in range(3):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            seen.append(live_bytes())
            prof.step()
    log = prof.session.memory
    ends = [e["end_ns"] for e in prof.events() if e.name.startswith("Optimizer.step")]
    changed = [int(log.size_bytes[log.time_ns <= end].sum()) for end in ends]
    assert changed == [now - seen[0] for now in seen[1:]]
    assert changed[0] > 0


def test_a_composite_accounts_for_what_its_parts_made_and_keeps_none_for_itself():
    x, w, b = torch.ones(4, 8), torch.ones(2, 8), torch.ones(2)
    with profile(profile_memory=True) as prof:
        kept = torch.nn.functional.linear(x, w, b)
    (linear,), (addmm,) = events_named(prof, "aten::linear"), events_named(prof, "aten::addmm")
    assert linear.cpu_memory_usage == addmm.cpu_memory_usage == kept.nbytes
    assert (linear.self_cpu_memory_usage, addmm.self_cpu_memory_usage) == (0, kept.nbytes)


def test_frees_by_the_garbage_collector_and_in_other_threads_are_seen():
    class Ring:
        pass

    ring = Ring()
    ring.self, ring.tensor = ring, torch.ones(1000)
    box = [torch.ones(3000)]
    gc.disable()
    try:
        with profile(profile_memory=True) as prof:
            del ring
            thread = threading.Thread(target=box.clear, name="frees")
            thread.start()
            thread.join()
            gc.collect()
    finally:
        gc.enable()
    session = prof.session
    freed = dict(zip(session.memory.size_bytes.tolist(), session.memory.track.tolist(), strict=True))
    assert freed.keys() >= {-4000, -12000}
    assert session.tracks[freed[-12000]].name == "frees"


def test_views_and_other_storages_over_the_same_memory_count_once():
    with profile(profile_memory=True) as prof:
        x = torch.ones(64)
        view, data = x[2:], x.data
        del x, view
    assert prof.session.memory.size_bytes.tolist() == [256]
    assert data.numel() == 64


def test_memory_that_grows_in_place_is_counted_anew():
    x = torch.ones(4)
    with profile(profile_memory=True) as prof:
        x.resize_(100)
    assert prof.session.memory.size_bytes.sum() == 96 * 4


@pytest.mark.parametrize("raises", [False, True])
def test_counting_leaves_nothing_behind(raises):
    slot = vars(UntypedStorage)["array"]
    try:
        with profile(profile_memory=True):
            assert vars(UntypedStorage)["array"] is not slot
            if raises:
                raise KeyError
    except KeyError:
        pass
    assert vars(UntypedStorage)["array"] is slot
    assert not hasattr(UntypedStorage, "__del__")


def test_the_table_has_columns_of_memory():
    with profile(profile_memory=True) as prof:
        kept = torch.ones(1024)
    text = prof.key_averages().table()
    assert "CPU Mem" in text
    assert "4.00 KB" in text
    assert kept.nbytes == 4096


def test_what_a_node_saved_is_freed_after_its_gradients_have_got_their_shapes():
    x, scale = torch.ones(4, 5, requires_grad=True), torch.ones(5, requires_grad=True)
    grown = x * 2  # whose own node has no need of it
    loss = (grown * scale).sum()
    saved = id(grown._storage.array)
    del grown
    with profile(profile_memory=True) as prof:
        loss.backward()
    (to_the_shape_of_scale,) = events_named(prof, "aten::sum")
    log = prof.session.memory
    (freed_ns,) = log.time_ns[(log.address == saved) & (log.size_bytes < 0)]
    assert freed_ns > to_the_shape_of_scale["end_ns"]


def test_frees_are_on_their_threads_before_others_come_and_after():
    boxes = [[torch.ones(n)] for n in (10, 20, 30)]
    with profile(profile_memory=True) as prof:
        boxes[0].clear()
        thread = threading.Thread(target=boxes[1].clear, name="another")
        thread.start()
        thread.join()
        boxes[2].clear()
    log, tracks = prof.session.memory, prof.session.tracks
    main, other = threading.main_thread().native_id, thread.native_id
    assert [(size, tracks[i].tid) for size, i in zip(log.size_bytes.tolist(), log.track.tolist(), strict=True)] == [
        (-40, main),
        (-80, other),
        (-120, main),
    ]


def test_frees_in_a_task_with_scopes_are_on_its_track():
    async def work(box):
        with torch.profiler.record_function("scope"):
            await asyncio.sleep(0)
            box.clear()

    async def both():
        await asyncio.gather(*(asyncio.create_task(work([torch.ones(n)]), name=f"task {n}") for n in (10, 20)))

    with profile(profile_memory=True) as prof:
        asyncio.run(both())
    log, tracks = prof.session.memory, prof.session.tracks
    freed = {size: tracks[i].name for size, i in zip(log.size_bytes.tolist(), log.track.tolist(), strict=True) if size < 0}
    assert freed == {-40: "task 10", -80: "task 20"}
    assert [e.cpu_memory_usage for e in prof.events() if e.name == "scope"] == [-40, -80]


def test_storages_of_a_recording_are_told_apart_from_those_that_lie_where_they_lay():
    with profile(profile_memory=True) as prof:
        for _ in range(100):
            torch.ones(16) * 2
    log = prof.session.memory
    assert sorted(log.size_bytes.tolist()) == [-64] * 200 + [64] * 200
    assert len(set(log.address.tolist())) < 200
    assert log.total_bytes[-1] == prof.session.info.live_bytes[0][1]
    live = set()
    for address, size in zip(log.address.tolist(), log.size_bytes.tolist(), strict=True):
        assert (address in live) == (size < 0)
        live ^= {address}
    assert not live


def test_what_goes_without_having_come_is_ignored():
    def notes(*rows):
        columns = np.array(rows, np.int64).reshape(-1, 3).T
        return Notes(columns[0], np.zeros_like(columns[0]), columns[1], columns[2], np.full_like(columns[0], -1))

    before = notes((ALWAYS, 7, 100), (ALWAYS, 7, 100), (ALWAYS, 8, 10))
    freed = notes((5, 7, FREED), (6, 9, FREED), (10, 7, FREED), (30, 9, FREED), (40, 9, FREED), (50, 8, FREED))
    results = notes((20, 9, 1000), (45, 9, 2000))
    found = changes_of(Noted(before, NOTHING, freed), results)
    assert found.time_ns.tolist() == [10, 20, 30, 45, 50]
    assert found.size_bytes.tolist() == [-100, 1000, -1000, 2000, -10]
    assert dict(zip(found.held_address.tolist(), found.held_bytes.tolist(), strict=True)) == {7: 100, 8: 10}


def test_a_recording_that_is_cut_off_keeps_what_its_events_made():
    x = torch.ones(4)
    with profile(profile_memory=True) as prof:
        kept = [x + x for _ in range(3)]
    assert [e.cpu_memory_usage for e in EventList.of(prof.session.head(2))] == [16, 16]
    assert len(kept) == 3


def test_a_timeline_takes_storages(tmp_path):
    with profile(profile_memory="tracemalloc", record_shapes=True, with_stack=True) as prof:
        torch.ones(4)
    with pytest.raises(ValueError, match="not of Python's heap"):
        prof.export_memory_timeline(str(tmp_path / "t.json"))


def test_every_cycle_that_is_kept_begins_with_what_lived_then():
    x, kept = torch.ones(25), []
    with profile(
        profile_memory=True, acc_events=True, schedule=torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    ) as prof:
        for _ in range(4):
            lived = live_bytes()
            x.t()
            kept += [x + x, (lived, prof.step_num)]
            prof.step()
    recorded = [lived for lived, step in kept[1::2] if step % 2]
    assert [e["cpu_memory_allocated_before"] for e in events_named(prof, "aten::t")] == recorded
    assert recorded[1] == recorded[0] + 200  # an unrecorded step made something, too


def test_a_saved_session_has_the_same_memory(tmp_path):
    for source in ("storages", "tracemalloc"):
        x = torch.ones(8)
        with profile(profile_memory=source) as prof:
            y = x.t() + x
            del y
        prof.session.save(tmp_path / "session")
        saved = EventList.of(type(prof.session).load(tmp_path / "session"))
        assert [(dict(e.items()), e.cpu_memory_usage) for e in saved] == [
            (dict(e.items()), e.cpu_memory_usage) for e in prof.events()
        ]


def test_what_the_collector_does_not_show_is_not_counted_nor_its_end():
    hidden = torch.ones(1000)
    gc.freeze()
    try:
        with profile(profile_memory=True) as prof:
            kept = torch.ones(4)
            del hidden
    finally:
        gc.unfreeze()
    assert prof.session.memory.size_bytes.tolist() == [kept.nbytes]
    assert (prof.session.memory.total_bytes >= 0).all()
