"""Memory in profiles: bytes of live storage, exactly, counted where storages are made and freed."""

import gc
import json
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._storage import UntypedStorage
from mindtorch_v2.profiler import profile

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
