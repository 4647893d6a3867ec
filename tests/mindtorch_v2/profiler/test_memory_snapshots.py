"""Snapshots of memory in files: dumped, written when an allocation fails, and read by torch's own tool."""

import os
import pickle

import pytest

import mindtorch_v2 as torch

from .memory_snapshots import ALLOCATION, actions, address, functions, memory, segment_of, trace

pytestmark = pytest.mark.usefixtures("history_off")


# --- files --------------------------------------------------------------------------------------------------------------------------


def test_a_dumped_snapshot_is_a_pickle_of_plain_values(tmp_path):
    memory._record_memory_history()
    x = torch.ones(10)
    memory._dump_snapshot(tmp_path / "s.pickle")
    with open(tmp_path / "s.pickle", "rb") as file:
        snapshot = pickle.load(file)
    assert actions(address(x), trace(snapshot)) == ALLOCATION

    def kinds(value):
        yield type(value)
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
            yield from kinds(inner)

    assert set(kinds(snapshot)) <= {dict, list, tuple, str, int, bool}


def test_a_dump_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "s.pickle"
    path.write_bytes(b"old")

    def fails(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pickle, "dump", fails)
    with pytest.raises(OSError, match="No space left"):
        memory._dump_snapshot(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["s.pickle"]


# --- failed allocations -------------------------------------------------------------------------------------------------------------


def test_a_failed_allocation_writes_a_snapshot_that_ends_with_it(tmp_path):
    memory._record_memory_history(oom_snapshot=tmp_path / "oom.pickle")
    x = torch.ones(10)

    def asks_for_too_much():
        return torch.empty(1 << 60)

    with pytest.raises(RuntimeError, match=f"you tried to allocate {1 << 62} bytes") as caught:
        asks_for_too_much()
    assert caught.value.__notes__ == [f"A snapshot of the memory was written to {tmp_path / 'oom.pickle'}"]
    with open(tmp_path / "oom.pickle", "rb") as file:
        snapshot = pickle.load(file)
    (failed,) = [entry for entry in trace(snapshot) if entry["action"] == "oom"]
    assert failed["size"] == 1 << 62
    assert failed["device_free"] > 0
    assert "addr" not in failed
    assert "asks_for_too_much" in functions(failed["frames"])
    assert functions(failed["frames"])[0] == "aten::empty"
    assert segment_of(x, snapshot)["total_size"] == 40
    assert [entry["action"] for entry in trace(snapshot)][-2:] == ["oom", "snapshot"]


def test_the_file_has_a_name_of_its_own_when_none_is_chosen_and_stays_where_recording_began(tmp_path, monkeypatch):
    memory._record_memory_history()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(RuntimeError):
        torch.empty(1 << 60)
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "oom_snapshot.pickle"]


def test_no_file_is_written_when_none_is_wanted_or_nothing_recorded(tmp_path):
    with pytest.raises(RuntimeError):
        torch.empty(1 << 60)
    memory._record_memory_history(oom_snapshot=None)
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60)
    assert not hasattr(caught.value, "__notes__")
    memory._record_memory_history(enabled=None)
    with pytest.raises(RuntimeError):
        torch.empty(1 << 60)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("reason", [OSError(28, "No space left on device"), MemoryError()])
def test_when_the_snapshot_cannot_be_written_the_programs_error_comes_through(reason, monkeypatch):
    memory._record_memory_history()

    def fails(*args):
        raise reason

    monkeypatch.setattr(pickle, "dump", fails)
    with pytest.raises(RuntimeError, match="DefaultCPUAllocator") as caught:
        torch.ones(1 << 20, 1) @ torch.ones(1, 1 << 24)
    assert caught.value.__notes__[0].startswith(f"No snapshot of the memory could be written: {type(reason).__name__}")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a disk that is always full is a device of Linux")
def test_a_full_disk_does_not_hide_the_programs_error():
    memory._record_memory_history(oom_snapshot="/dev/full")
    with pytest.raises(RuntimeError, match="DefaultCPUAllocator") as caught:
        torch.empty(1 << 60)
    (note,) = caught.value.__notes__
    assert note.startswith("No snapshot of the memory could be written: OSError: [Errno 28] No space left on device")


LEAKING = """
import resource, sys
import mindtorch_v2 as torch

torch.cpu.memory._record_memory_history(oom_snapshot=sys.argv[1])
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), -1))
kept = []

def leaks():
    kept.append(torch.ones(4 << 20))

try:
    while True:
        leaks()
except RuntimeError as error:
    print(len(kept), *error.__notes__)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads its own size from Linux")
def test_a_program_that_really_runs_out_of_memory_leaves_a_snapshot_of_what_filled_it(tmp_path, run_python):
    done = run_python(LEAKING, tmp_path / "oom.pickle")
    assert done.returncode == 0, done.stderr
    count, note = done.stdout.split(maxsplit=1)
    assert "was written to" in note
    with open(tmp_path / "oom.pickle", "rb") as file:
        snapshot = pickle.load(file)
    filled = [segment for segment in snapshot["segments"] if segment["total_size"] == 16 << 20]
    assert len(filled) == int(count) > 5
    assert all(functions(segment["frames"]) == ["aten::ones", "leaks", "<module>"] for segment in filled)
    (failed,) = [entry for entry in trace(snapshot) if entry["action"] == "oom"]
    assert failed["size"] == 16 << 20


def test_recording_goes_on_after_a_failed_allocation():
    memory._record_memory_history()
    for _ in range(2):
        with pytest.raises(RuntimeError):
            torch.empty(1 << 60)
    x = torch.ones(10)
    assert actions(address(x)) == ALLOCATION
    assert [entry["action"] for entry in trace()].count("oom") == 2


# --- torch's own reader -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def viewer():
    import torch.cuda._memory_viz as found

    return found


def dumped(path):
    memory._dump_snapshot(path)
    with open(path, "rb") as file:
        return pickle.load(file)


@pytest.mark.parity
def test_torchs_tool_counts_the_same_bytes(viewer, tmp_path):
    memory._record_memory_history()
    kept = torch.ones(1 << 23)
    text = viewer.segsum(dumped(tmp_path / "s.pickle"))
    live = sum(segment["total_size"] for segment in memory._snapshot()["segments"])
    assert f"total_allocated: {viewer.Bytes(live)}" in text
    assert "[aa] 32.0MiB allocated, 0.0B free" in text
    assert kept.nbytes == 1 << 25


@pytest.mark.parity
def test_torchs_tool_tells_the_trace(viewer, tmp_path):
    memory._record_memory_history(skip_actions=["snapshot"], max_entries=1000)
    torch.ones(256)
    with pytest.raises(RuntimeError):
        torch.empty(1 << 60)
    lines = viewer.trace(dumped(tmp_path / "s.pickle")).splitlines()
    assert lines[:2] == ["Device 0 ----------------", "6 entries"]
    assert lines[3:7] == ["b = a[0:1.0KiB]", "del b # 1.0KiB", "# free completed for b 1.0KiB", "cudaFree(a) # 1.0KiB"]
    assert lines[7].startswith("raise OutOfMemoryError # 4.0EiB requested, ")


@pytest.mark.parity
def test_torchs_tool_draws_stacks_and_compares(viewer, tmp_path, capsys):
    memory._record_memory_history(stacks="python")
    before = dumped(tmp_path / "before.pickle")

    def grows():
        return torch.ones(25)

    kept = grows()
    after = dumped(tmp_path / "after.pickle")
    lines = viewer.memory(after, format_flamegraph=str).splitlines()
    assert any(line.endswith(":grows 100") and line.startswith("stream_0;active_allocated;") for line in lines)
    text = viewer.compare(before["segments"], after["segments"], format_flamegraph=str)
    assert f"seg_{address(kept)}" in text
    assert "only_before = []" in capsys.readouterr().out


@pytest.mark.parity
def test_torchs_tool_pairs_frees_with_allocations(viewer, tmp_path, capsys):
    memory._record_memory_history(skip_actions=["snapshot", "segment_alloc", "segment_free"])
    kept = torch.ones(10)
    for _ in range(3):
        torch.ones(20)
    left = viewer.filter_alloc_free_pairs(dumped(tmp_path / "s.pickle"))
    assert [(entry["action"], entry["addr"]) for entry in trace(left)] == [("alloc", address(kept))]
    assert capsys.readouterr().out == ""
    assert "Active Memory Timeline" in viewer.trace_plot(dumped(tmp_path / "s.pickle"))


@pytest.mark.parity
def test_the_names_and_arguments_are_torchs():
    import inspect

    import torch.xpu.memory as reference

    for name in ("_record_memory_history", "_dump_snapshot", "_snapshot"):
        theirs = inspect.signature(getattr(reference, name)).parameters
        ours = inspect.signature(getattr(memory, name)).parameters
        shared = [n for n in ours if n != "oom_snapshot"]
        assert [n for n in theirs if n not in ("device", "augment_with_fx_traces")] == shared
        assert {n: theirs[n].default for n in shared} == {n: ours[n].default for n in shared}
