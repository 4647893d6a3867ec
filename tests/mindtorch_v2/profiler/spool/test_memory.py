"""Changes of memory in spools."""

import random
import threading

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.capture import capture, draining
from mindtorch_v2.profiler.capture.memory.storages import Storages
from mindtorch_v2.profiler.capture.stacks import stack_walk
from mindtorch_v2.profiler.spool import frames, memory, writer
from mindtorch_v2.profiler.spool.reader import read_spool
from mindtorch_v2.profiler.spool.writer import Spool

ALL = {"profile_memory": True, "with_stack": True, "record_shapes": True}


def write_some():
    """Have the recorder's thread do its work now."""
    capture.active._draining._work()


def train(steps):
    """Memory of every kind: results, gradients, state, arrays that are shared and replaced, of threads and of the collector."""
    model = torch.nn.Linear(64, 32)
    optimizer = torch.optim.Adam(model.parameters())
    kept = []
    for step in range(steps):
        optimizer.zero_grad()
        model(torch.ones(16, 64)).sum().backward()
        optimizer.step()
        array = np.ones(100 + step)
        kept.append((torch.from_numpy(array), torch.from_numpy(array)))
        if step % 2:
            kept.pop(0)
            model.weight.data = model.weight.data * 1
        thread = threading.Thread(target=lambda size: kept.append(torch.ones(size) + 1), args=(step + 1,))
        thread.start()
        thread.join()
        write_some()


def changes(session):
    log = session.memory
    return list(zip(log.time_ns.tolist(), log.address.tolist(), log.size_bytes.tolist(), log.total_bytes.tolist(), strict=True))


@pytest.fixture(scope="module", params=[{"profile_memory": True}, ALL], ids=["plain", "all"])
def recorded(request, tmp_path_factory):
    """The bytes of a spool, and the session."""
    path = tmp_path_factory.mktemp("spools") / "run.spool"
    with profile(spool=path, **request.param) as prof:
        train(8)
    return path.read_bytes(), prof.session


def test_memory_adds_up_wherever_the_file_is_cut_off(recorded, tmp_path):
    content, session = recorded
    whole, path, counts = changes(session), tmp_path / "cut.spool", []
    chance = random.Random(3)
    for size in sorted(chance.randrange(len(content) // 20, len(content)) for _ in range(30)):
        path.write_bytes(content[:size])
        found = read_spool(path).session
        if found.info.profile_memory:
            # the changes of the recording, in order, with the same live bytes after each: none is left out before the last
            assert changes(found) == whole[: len(found.memory.time_ns)]
            assert found.info.live_bytes == session.info.live_bytes
            counts.append(len(found.memory.time_ns))
    assert counts == sorted(counts)
    assert counts[-1] > len(whole) / 2


@pytest.mark.parametrize("skipped", range(6))
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (memory, "joined"),
        (memory.roles, "noted"),
        (Storages, "since"),
        (Spool, "_places"),
        (stack_walk, "resolve"),
        (writer, "to_json"),
    ],
)
def test_a_piece_that_could_not_be_made_is_in_the_next(owner, name, skipped, tmp_path, monkeypatch):
    """Of tables, too."""
    path, left = tmp_path / "run.spool", iter([False] * skipped + [True])
    real = getattr(owner, name)

    def fail(*args, **kwargs):
        if next(left, False):
            raise RuntimeError("no")
        return real(*args, **kwargs)

    monkeypatch.setattr(draining, "INTERVAL_S", 1e6)
    prof = profile(spool=path, exclude=["*ones"], **ALL)
    prof.start()
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, fail)
        train(6)
    with pytest.warns(UserWarning, match="the recorder failed 1 times while the program went on, first by RuntimeError: no"):
        prof.stop()
    found = read_spool(path).session
    assert changes(found) == changes(prof.session)
    assert [found.labels[i] for i in found.label.tolist()] == [prof.session.labels[i] for i in prof.session.label.tolist()]
    for table in ("input_table", "frames", "stack_table"):
        assert getattr(found, table) == getattr(prof.session, table), table


def test_what_operators_made_that_are_left_out_counts(tmp_path):
    path = tmp_path / "run.spool"
    with profile(spool=path, exclude=["*addmm", "*ones"], max_events=5, profile_memory=True) as prof:
        train(4)
    assert changes(read_spool(path).session) == changes(prof.session)


def test_memory_before_its_first_piece_is_not_told(tmp_path):
    path = tmp_path / "run.spool"
    with profile(spool=path, profile_memory=True):
        train(1)
    content = path.read_bytes()
    with open(path, "rb") as file:
        first = next(frame for frame in frames.read_frames(file) if frame.kind == frames.MEMORY)
    path.write_bytes(content[: content.index(frames.frame_bytes(*first)[24:50]) - 24])
    found = read_spool(path).session
    assert len(found)
    assert (found.memory, found.info.profile_memory) == (None, False)


def test_memory_that_was_given_up_is_not_told(tmp_path):
    path = tmp_path / "run.spool"
    prof = profile(spool=path, profile_memory=True)
    prof.start()
    train(1)
    storages = next(source for source in capture.active._sources if isinstance(source, Storages))
    assert storages.make_room()
    train(1)
    with pytest.warns(UserWarning, match="changes of memory could not be kept"):
        prof.stop()
    found = read_spool(path).session
    assert len(found) == len(prof.session)
    assert (found.memory, found.info.profile_memory) == (None, False)
