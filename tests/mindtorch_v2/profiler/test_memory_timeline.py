"""Memory timelines: what each piece of memory is for, at each point in time."""

import gc
import gzip
import itertools
import json

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import _memory_profiler, profile
from mindtorch_v2.profiler._memory_profiler import Action, Category, MemoryProfile, MemoryProfileTimeline, TensorKey

ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}
INDEX = {name: i for i, name in enumerate(["PARAMETER", "OPTIMIZER_STATE", "INPUT", "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL", "UNKNOWN"])}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_garbage_of_others():
    gc.collect()


class Training:
    """Two steps of a small network, and its timeline."""

    def __init__(self):
        self.x, self.y = torch.ones(8, 16), torch.zeros(8, 4)
        self.net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)
        with profile(**ALL) as self.prof:
            for _ in range(2):
                self.optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(self.net(self.x), self.y)
                loss.backward()
                self.optimizer.step()
        self.loss = loss


@pytest.fixture(scope="module")
def training():
    return Training()


def category(prof, tensor, version=None):
    """What the memory of a tensor is at last, or in one version."""
    changes = prof._memory_profile()._timeline
    (number,) = [i for i, s in enumerate(changes.graph.storages) if s.address == id(tensor._storage.array) and s.freed_ns is None]
    version = len(changes.graph.storages[number].writes) if version is None else version
    return changes.category(number, version)


def bytes_of(tensors):
    return sum(t.nbytes for t in tensors)


# --- categories ------------------------------------------------------------------------------------------------------


def test_what_the_runtime_knows(training):
    parameters = list(training.net.parameters())
    assert {category(training.prof, p) for p in parameters} == {Category.PARAMETER}
    assert {category(training.prof, p.grad) for p in parameters} == {Category.GRADIENT}
    momenta = [state["momentum_buffer"] for state in training.optimizer.state.values()]
    assert {category(training.prof, m) for m in momenta} == {Category.OPTIMIZER_STATE}


def test_what_the_data_flow_says(training):
    assert category(training.prof, training.x) is Category.INPUT
    assert category(training.prof, training.y) is Category.INPUT
    assert category(training.prof, training.loss) is Category.ACTIVATION


def test_the_sums_at_the_end(training):
    times, sizes = MemoryProfileTimeline(training.prof._memory_profile())._coalesce_timeline("cpu")
    # what else lives in the process counts from the first to the last
    added = {name: b - a for name, a, b in zip(INDEX, sizes[0][1:], sizes[-1][1:], strict=True)}
    parameters = bytes_of(training.net.parameters())
    assert parameters == 4 * (16 * 32 + 32 + 32 * 4 + 4)
    assert sizes[0][1 + INDEX["PARAMETER"]] >= parameters
    assert added["PARAMETER"] == added["TEMPORARY"] == added["AUTOGRAD_DETAIL"] == 0
    assert added["GRADIENT"] == added["OPTIMIZER_STATE"] == parameters
    assert added["ACTIVATION"] == training.loss.nbytes
    assert len(times) == len(sizes)


def test_the_sum_of_all_categories_is_the_memory_in_use(training):
    memory = training.prof.session.memory
    _, sizes = MemoryProfileTimeline(training.prof._memory_profile())._coalesce_timeline("cpu")
    assert sum(sizes[0]) == memory.total_bytes[0] - memory.size_bytes[0]
    assert sum(sizes[-1]) == memory.total_bytes[-1]
    assert max(map(sum, sizes)) <= memory.total_bytes.max()


def test_memory_in_a_forward_and_backward_pass():
    """By hand: y = w·x of 100 elements each, and the sum of it."""
    w, x = torch.nn.Parameter(torch.ones(100)), torch.ones(100)
    with profile(**ALL) as prof:
        y = w * x
        z = y.sum()
        z.backward()
    assert [category(prof, t) for t in (w, x, y, z, w.grad)] == [
        Category.PARAMETER,
        Category.INPUT,
        Category.ACTIVATION,
        Category.ACTIVATION,
        Category.GRADIENT,
    ]


def test_gradients_that_autograd_adds_up_are_its_detail():
    w = torch.nn.Parameter(torch.ones(50))
    with profile(**ALL) as prof:
        y = w * torch.ones(50)
        (y.exp() + y.sin()).sum().backward()
    kinds = {prof._memory_profile()._timeline.category(change.storage, change.version) for change in backward_changes(prof)}
    assert None not in kinds
    assert Category.AUTOGRAD_DETAIL in kinds


def backward_changes(prof):
    timeline = prof._memory_profile()._timeline
    evaluation, storages = timeline.graph.evaluation, timeline.graph.storages
    made_in_backward = {i for i, s in enumerate(storages) if s.made_by >= 0 and evaluation[s.made_by] >= 0}
    return [change for change in timeline.changes if change.storage in made_in_backward]


def test_parameters_by_hand_are_found_by_what_updates_them():
    w = torch.ones(3, 3, requires_grad=True)  # no Parameter, in no module, known to no optimizer
    x = torch.ones(2, 3)
    with profile(**ALL) as prof:
        for _ in range(2):
            (x @ w).sum().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad = None
    assert category(prof, w) is Category.PARAMETER
    assert category(prof, x) is Category.INPUT


def test_an_input_that_gets_a_gradient_stays_an_input():
    model, x = torch.nn.Linear(3, 1), torch.ones(2, 3, requires_grad=True)
    with profile(**ALL) as prof:
        model(x).sum().backward()
    assert category(prof, x) is Category.INPUT
    assert category(prof, x.grad) is Category.GRADIENT


def test_an_in_place_write_gives_a_new_version():
    model = torch.nn.Linear(4, 4)
    with profile(**ALL) as prof:
        hidden = model(torch.ones(2, 4))
        hidden.mul_(2)
        hidden.t().relu_()
        hidden.sum().backward()
    assert [category(prof, hidden, version) for version in range(3)] == [Category.ACTIVATION] * 3
    actions = [(a, v) for _, a, (key, v), _ in prof._memory_profile().timeline if key.storage.ptr == id(hidden._storage.array)]
    assert actions == [(Action.CREATE, 0), (Action.INCREMENT_VERSION, 0), (Action.INCREMENT_VERSION, 1)]


def test_what_lives_inside_one_operator_or_one_optimizer_step_is_temporary():
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters())
    with profile(**ALL) as prof:
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        torch.nn.functional.dropout(torch.ones(4), 0.5)
    timeline = prof._memory_profile()._timeline
    step = timeline.graph.optimizer_step
    in_step = [i for i, s in enumerate(timeline.graph.storages) if s.made_by >= 0 and step[s.made_by] >= 0]
    kinds = {timeline.category(i, 0) for i in in_step}
    assert kinds == {Category.TEMPORARY, Category.OPTIMIZER_STATE}


def test_what_is_live_and_never_used_is_in_the_sum_and_unknown():
    unused = torch.ones(1000)
    with profile(**ALL) as prof:
        torch.ones(2).neg()
    assert category(prof, unused) is None
    _, sizes = MemoryProfileTimeline(prof._memory_profile())._coalesce_timeline("cpu")
    assert sizes[0][1 + INDEX["UNKNOWN"]] >= 4000


def test_inference_has_activations():
    model, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), torch.ones(2, 4)
    with profile(**ALL) as prof, torch.no_grad():
        y = model(x)
    assert category(prof, y) is Category.ACTIVATION
    assert category(prof, x) is Category.INPUT


def test_several_cycles():
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    kept = []
    with profile(**ALL, schedule=schedule, acc_events=True) as prof:
        for _ in range(4):
            kept.append(torch.ones(100).neg())
            prof.step()
    _, sizes = MemoryProfileTimeline(prof._memory_profile())._coalesce_timeline("cpu")
    # what the warm-up between the two recorded steps made is there when the second begins
    assert sum(sizes[-1]) - sum(sizes[0]) == 3 * 400
    assert len(kept) == 4


# --- files -----------------------------------------------------------------------------------------------------------


def test_json(training, tmp_path):
    path = tmp_path / "timeline.json"
    training.prof.export_memory_timeline(str(path))
    times, sizes = json.loads(path.read_text())
    assert times == sorted(times)
    assert all(len(row) == 9 and row[0] == 0 and min(row) >= 0 for row in sizes)
    assert training.prof.mem_tl.timeline == training.prof._memory_profile().timeline
    started, stopped = training.prof.session.info.started_ns // 1000, training.prof.session.info.stopped_ns // 1000
    assert started <= times[0] <= times[-1] <= stopped + 1


def test_gzipped_json_is_the_same(training, tmp_path):
    training.prof.export_memory_timeline(str(tmp_path / "timeline.json"))
    training.prof.export_memory_timeline(str(tmp_path / "timeline.json.gz"), device="cpu")
    assert gzip.decompress((tmp_path / "timeline.json.gz").read_bytes()) == (tmp_path / "timeline.json").read_bytes()


def test_raw_events_sum_up_to_the_timeline(training, tmp_path):
    training.prof.export_memory_timeline(str(tmp_path / "timeline.raw.json.gz"))
    events = json.loads(gzip.decompress((tmp_path / "timeline.raw.json.gz").read_bytes()))
    sums = [0] * 8
    for time, action, size, kind in events:
        assert action in (1, 2, 3, 4)
        assert (time == -1) == (action == Action.PREEXISTING.value)
        assert (size > 0) or action in (Action.INCREMENT_VERSION.value, Action.DESTROY.value)
        sums[kind] += size
    _, sizes = MemoryProfileTimeline(training.prof._memory_profile())._coalesce_timeline("cpu")
    assert sums == sizes[-1][1:]


def test_a_device_without_memory_has_an_empty_timeline(training, tmp_path):
    training.prof.export_memory_timeline(str(tmp_path / "timeline.json"), device="npu:0")
    assert json.loads((tmp_path / "timeline.json").read_text()) == [[], []]
    with pytest.raises(RuntimeError):
        training.prof.export_memory_timeline(str(tmp_path / "other.json"), device="nothing")
    assert not (tmp_path / "other.json").exists()


@pytest.mark.parametrize("missing", [some for n in (1, 2, 3) for some in itertools.combinations(sorted(ALL), n)], ids=str)
def test_what_it_needs(missing, tmp_path):
    with profile(**{flag: flag not in missing for flag in ALL}) as prof:
        torch.ones(2)
    flags = [flag for flag in ("record_shapes", "profile_memory", "with_stack") if flag in missing]
    for call in (prof._memory_profile, lambda: prof.export_memory_timeline(str(tmp_path / "timeline.html"))):
        with pytest.raises(ValueError, match=r"required for memory profiling\.$") as error:
            call()
        assert str(error.value) == f"{', '.join(f'{flag}=True' for flag in flags)} required for memory profiling."
    assert not (tmp_path / "timeline.html").exists()


def test_the_heap_of_python_has_no_timeline():
    with profile(**ALL | {"profile_memory": "tracemalloc"}) as prof:
        torch.ones(2)
    with pytest.raises(ValueError, match="not of Python's heap"):
        prof._memory_profile()


def test_before_a_recording_there_is_none():
    with pytest.raises(AssertionError, match="must be initialized"):
        profile(**ALL)._memory_profile()


def test_an_empty_recording(tmp_path):
    with profile(**ALL) as prof:
        pass
    for name in ("timeline.json", "timeline.raw.json.gz", "timeline.html"):
        prof.export_memory_timeline(str(tmp_path / name))
        assert (tmp_path / name).stat().st_size


# --- torch's names ---------------------------------------------------------------------------------------------------


def test_names_of_torch(training):
    assert torch.profiler._memory_profiler is _memory_profiler
    assert list(_memory_profiler._CATEGORY_TO_INDEX.values()) == list(range(8))
    assert _memory_profiler._CATEGORY_TO_COLORS[None] == "grey"
    assert [c.name for c in Category] == [
        "INPUT",
        "TEMPORARY",
        "ACTIVATION",
        "GRADIENT",
        "AUTOGRAD_DETAIL",
        "PARAMETER",
        "OPTIMIZER_STATE",
    ]
    found = MemoryProfile(training.prof.profiler.kineto_results)
    time, action, (key, version), size = found.timeline[0]
    assert (time, action, version) == (-1, Action.PREEXISTING, 0)
    assert size > 0
    assert isinstance(key, TensorKey)
    assert key.device == torch.device("cpu")
    keys = sorted({key for _, _, (key, _), _ in found.timeline})
    assert [key.id for key in keys] == list(range(len(keys)))
    assert found._categories.get(key, 0) in {*Category, None}
    assert found._categories.get(_memory_profiler.Key(torch.device("cpu")), 0) is None
    assert str(key.storage.allocation_id) in repr(key)
