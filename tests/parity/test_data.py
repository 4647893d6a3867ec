"""torch.utils.data: the same orders, batches, random numbers, warnings and errors."""

import collections
import inspect
import os
import random
import re
import signal
import types
import warnings

import numpy as np
import pytest
import torch

import mindtorch_v2 as mt

pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create 2:UserWarning"),
]

Point = collections.namedtuple("Point", "x y")
DATA_PIPES = {
    "DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation", "functional_datapipe",
    "guaranteed_datapipes_determinism", "non_deterministic", "runtime_validation", "runtime_validation_disabled",
}  # fmt: skip


def plain(value, lib):
    """A value without the library's own types."""
    if isinstance(value, lib.Tensor):
        return ("tensor", str(value.dtype).rpartition(".")[2], tuple(value.shape), value.tolist())
    if isinstance(value, collections.abc.Mapping):
        return (type(value).__name__, {key: plain(v, lib) for key, v in value.items()})
    if isinstance(value, tuple | list | collections.deque):
        return (type(value).__name__, [plain(v, lib) for v in value])
    if isinstance(value, np.ndarray):
        return ("array", value.tolist())
    return value


def outcome(lib, function):
    """What a function returns, warns of and raises, and the random numbers that follow."""
    lib.manual_seed(11)
    random.seed(11)
    np.random.seed(11)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "This process .* is multi-threaded")
        try:
            got = plain(function(lib, lib.utils.data), lib)
        except Exception as error:
            got = (type(error).__name__, str(error))
    told = [(w.category.__name__, str(w.message)) for w in caught]
    return got, told, lib.rand(2).tolist(), random.random(), float(np.random.rand())


def same(function):
    __tracebackhide__ = True
    assert outcome(mt, function) == outcome(torch, function)


# --- names ------------------------------------------------------------------------------------------------------------


def test_the_names_are_torchs_without_data_pipes():
    assert set(mt.utils.data.__all__) == set(torch.utils.data.__all__) - DATA_PIPES


@pytest.mark.parametrize("name", sorted(set(mt.utils.data.__all__) - {"_DatasetKind"}))
def test_every_signature_is_torchs(name):
    def parameters(lib):
        found = inspect.signature(getattr(lib.utils.data, name)).parameters.values()
        return [
            (p.name, p.kind, None if callable(p.default) or "Generator" in type(p.default).__name__ else p.default) for p in found
        ]

    assert parameters(mt) == parameters(torch)


def test_multiprocessing_has_torchs_names():
    assert set(mt.multiprocessing.__all__) == set(torch.multiprocessing.__all__)
    for name in ("ProcessContext", "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "spawn", "start_processes"):
        ours, theirs = getattr(mt.multiprocessing, name), getattr(torch.multiprocessing, name)
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)


# --- orders -----------------------------------------------------------------------------------------------------------

SAMPLERS = {
    "random": lambda lib, d: list(d.RandomSampler(range(50))),
    "random, twice": lambda lib, d: [list(d.RandomSampler(range(9))) for _ in range(2)],
    "with replacement": lambda lib, d: list(d.RandomSampler(range(50), replacement=True, num_samples=77)),
    "32 with replacement": lambda lib, d: list(d.RandomSampler(range(50), replacement=True, num_samples=32)),
    "more than there are": lambda lib, d: list(d.RandomSampler(range(7), num_samples=17)),
    "fewer than there are": lambda lib, d: list(d.RandomSampler(range(7), num_samples=3)),
    "generator": lambda lib, d: list(d.RandomSampler(range(50), generator=lib.Generator().manual_seed(4))),
    "subset": lambda lib, d: list(d.SubsetRandomSampler(list("abcdefgh"))),
    "subset, generator": lambda lib, d: list(d.SubsetRandomSampler(range(9), lib.Generator().manual_seed(4))),
    "weighted": lambda lib, d: list(d.WeightedRandomSampler([0.1, 0.9, 3.0, 0.0, 2.0], 40)),
    "weighted without replacement": lambda lib, d: list(d.WeightedRandomSampler(range(1, 9), 8, replacement=False)),
    "weighted, generator": lambda lib, d: list(d.WeightedRandomSampler([1, 2, 3], 9, generator=lib.Generator().manual_seed(4))),
    "batches": lambda lib, d: list(d.BatchSampler(d.RandomSampler(range(10)), 3, False)),
    "batches, last dropped": lambda lib, d: list(d.BatchSampler(d.RandomSampler(range(10)), 3, True)),
    "random split": lambda lib, d: [p.indices for p in d.random_split(range(10), [3, 7])],
    "random split, generator": lambda lib, d: [p.indices for p in d.random_split(range(9), [4, 5], lib.Generator().manual_seed(4))],
    "random split, fractions": lambda lib, d: [p.indices for p in d.random_split(range(31), [0.3, 0.3, 0.4])],
    "random split, empty": lambda lib, d: [p.indices for p in d.random_split(range(2), [0.4, 0.3, 0.3])],
    "no samples": lambda lib, d: d.RandomSampler([]),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_draw_as_torchs(name):
    same(SAMPLERS[name])


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_parts_of_processes_are_torchs(shuffle, drop_last):
    def parts(lib, d):
        samplers = [
            d.DistributedSampler(range(n), replicas, rank, shuffle, 3, drop_last)
            for n in (0, 1, 5, 12, 13)
            for replicas in (1, 2, 5)
            for rank in range(replicas)
        ]
        before = [(list(s), len(s), s.total_size) for s in samplers]
        for s in samplers:
            s.set_epoch(2)
        return [before, [list(s) for s in samplers]]

    same(parts)


# --- batches ----------------------------------------------------------------------------------------------------------

BATCHES = {
    "ints": [1, 2],
    "bools": [True, False],
    "floats": [1.5, 2.5],
    "an int and a float": [1, 2.5],
    "NumPy numbers": [np.float32(1), np.float32(2)],
    "NumPy bools": [np.bool_(True), np.bool_(False)],
    "arrays": [np.zeros((2, 2), np.int16), np.ones((2, 2), np.int16)],
    "arrays of texts": [np.array(["a"]), np.array(["b"])],
    "arrays of bytes": [np.array([b"a"]), np.array([b"b"])],
    "arrays of objects": [np.array([None]), np.array([None])],
    "NumPy texts": [np.str_("a"), np.str_("b")],
    "arrays of other lengths": [np.zeros(1), np.zeros(2)],
    "texts": ["a", "b"],
    "bytes": [b"a", b"b"],
    "lists": [[1, "a"], [2, "b"]],
    "tuples": [(1, "a"), (2, "b")],
    "named": [Point(1, 2.0), Point(3, 4.0)],
    "lists of other lengths": [[1], [2, 3]],
    "nothing in them": [[], []],
    "dicts": [{"a": 1, "b": {"c": [1.0]}}, {"a": 2, "b": {"c": [2.0]}}],
    "ordered": [collections.OrderedDict(b=1, a=2)] * 2,
    "proxies": [types.MappingProxyType({"a": 1})] * 2,
    "default dicts": [collections.defaultdict(int, a=1)] * 2,
    "deques": [collections.deque([1, 2])] * 2,
    "ranges": [range(3)] * 2,
    "None": [None, None],
    "an object": [object],
    "sets": [{1}, {2}],
    "missing key": [{"a": 1}, {"b": 1}],
}


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("function", ["default_collate", "default_convert"])
def test_batches_are_torchs(name, function):
    same(lambda lib, d: getattr(d, function)(BATCHES[name]))


def test_batches_of_tensors_are_torchs():
    same(lambda lib, d: d.default_collate([(lib.ones(2, 3), {"a": lib.tensor(i)}) for i in range(3)]))
    same(lambda lib, d: d.default_collate([lib.ones(2, dtype=lib.bfloat16), lib.zeros(2, dtype=lib.bfloat16)]))
    same(lambda lib, d: d.default_convert([lib.ones(2), (np.ones(2), "a")]))


# --- loaders ----------------------------------------------------------------------------------------------------------


def rows(lib, d):
    return d.TensorDataset(lib.arange(22.0).reshape(11, 2), lib.arange(11))


class Drawing:
    """Samples with random numbers of all three generators."""

    def __init__(self, lib, n=7):
        self.lib, self.n = lib, n

    def __getitem__(self, i):
        return i, self.lib.rand(2), random.random(), np.random.rand()

    def __len__(self):
        return self.n


def stream(lib, d, n=7, told=None, shared=True):
    class Stream(d.IterableDataset):
        def __iter__(self):
            info = d.get_worker_info()
            own = range(n) if info is None or not shared else range(info.id, n, info.num_workers)
            return ((i, lib.rand(1)) for i in own)

        def __len__(self):
            return n if told is None else told

        def __repr__(self):
            return "a stream"

    return Stream()


def twice(loader):
    return [list(loader), list(loader)]


LOADERS = {
    "in order": lambda lib, d, **w: twice(d.DataLoader(rows(lib, d), 4, **w)),
    "shuffled": lambda lib, d, **w: twice(d.DataLoader(rows(lib, d), 4, shuffle=True, **w)),
    "last dropped": lambda lib, d, **w: twice(d.DataLoader(rows(lib, d), 4, shuffle=True, drop_last=True, **w)),
    "generator": lambda lib, d, **w: twice(d.DataLoader(rows(lib, d), 4, True, generator=lib.Generator().manual_seed(3), **w)),
    "no batches": lambda lib, d, **w: twice(d.DataLoader(rows(lib, d), None, shuffle=True, **w)),
    "sampler": lambda lib, d, **w: twice(d.DataLoader(rows(lib, d), 2, sampler=d.SubsetRandomSampler([1, 3, 5]), **w)),
    "batch sampler": lambda lib, d, **w: twice(d.DataLoader(rows(lib, d), batch_sampler=[[1, 2], [0]], **w)),
    "random samples": lambda lib, d, **w: twice(d.DataLoader(Drawing(lib), 3, shuffle=True, **w)),
    "random samples, generator": lambda lib, d, **w: twice(
        d.DataLoader(Drawing(lib), 3, generator=lib.Generator().manual_seed(3), **w)
    ),
    "stream": lambda lib, d, **w: twice(d.DataLoader(stream(lib, d), 3, **w)),
    "stream, last dropped": lambda lib, d, **w: twice(d.DataLoader(stream(lib, d), 3, drop_last=True, **w)),
    "stream without batches": lambda lib, d, **w: twice(d.DataLoader(stream(lib, d), None, **w)),
    "stream for each": lambda lib, d, **w: twice(d.DataLoader(stream(lib, d, shared=False), 3, **w)),
    "concatenated": lambda lib, d, **w: list(d.DataLoader(rows(lib, d) + rows(lib, d), 5, shuffle=True, **w)),
    "stacked": lambda lib, d, **w: list(d.DataLoader(d.StackDataset(a=range(6), b=rows(lib, d).tensors[1][:6]), 4, True, **w)),
    "chained": lambda lib, d, **w: list(d.DataLoader(stream(lib, d) + stream(lib, d, 4), 3, **w)),
    "subset": lambda lib, d, **w: list(d.DataLoader(d.Subset(rows(lib, d), [3, 1, 2]), 2, **w)),
    "function": lambda lib, d, **w: list(d.DataLoader("abcde", 2, collate_fn="".join, **w)),
    "pinned": lambda lib, d, **w: list(d.DataLoader(range(3), 2, pin_memory=True, **w)),
    "pinned, device": lambda lib, d, **w: list(d.DataLoader(range(3), 2, pin_memory=True, pin_memory_device="cuda", **w)),
}


@pytest.mark.parametrize("name", LOADERS)
def test_loaders_are_torchs(name):
    same(lambda lib, d: LOADERS[name](lib, d))


@pytest.mark.parametrize("name", LOADERS)
def test_loaders_with_workers_are_torchs(name):
    same(lambda lib, d: LOADERS[name](lib, d, num_workers=2))


@pytest.mark.parametrize("name", ["shuffled", "random samples", "stream", "no batches"])
def test_loaders_with_persistent_workers_are_torchs(name):
    same(lambda lib, d: LOADERS[name](lib, d, num_workers=2, persistent_workers=True, prefetch_factor=1))


def test_what_workers_know_is_torchs():
    def describe(lib, d):
        class Describes(d.Dataset):
            def __getitem__(self, i):
                info = d.get_worker_info()
                return str((info.id, info.num_workers, info.seed, info.worker_method, info.rng, lib.initial_seed(), prepared))

            def __len__(self):
                return 2

        prepared = []
        loader = d.DataLoader(Describes(), None, num_workers=2, worker_init_fn=prepared.append)
        return [list(loader), [f.name for f in d.get_worker_info.__globals__["WorkerInfo"].__dataclass_fields__.values()]]

    same(describe)


@pytest.mark.parametrize("told", [None, 2, 9])
@pytest.mark.parametrize("workers", [0, 2])
def test_lengths_and_their_warnings_are_torchs(told, workers):
    def lengths(lib, d):
        loaders = [d.DataLoader(stream(lib, d, told=told), *options, num_workers=workers) for options in ((3,), (None,))]
        loaders.append(d.DataLoader(stream(lib, d, told=told), 3, drop_last=True, num_workers=workers))
        loaders.append(d.DataLoader(range(10), 3, num_workers=workers))
        return [(len(loader), list(loader)) for loader in loaders]

    same(lengths)


# --- errors -----------------------------------------------------------------------------------------------------------

REFUSED = [
    {"num_workers": -1},
    {"timeout": -1},
    {"prefetch_factor": 2},
    {"prefetch_factor": -2},
    {"num_workers": 1, "prefetch_factor": -2},
    {"persistent_workers": True},
    {"sampler": [1], "shuffle": True},
    {"batch_sampler": [[1]], "batch_size": 2},
    {"batch_sampler": [[1]], "shuffle": True},
    {"batch_sampler": [[1]], "sampler": [1]},
    {"batch_sampler": [[1]], "drop_last": True},
    {"batch_size": None, "drop_last": True},
    {"batch_size": 0},
    {"batch_size": 1.5},
    {"batch_size": True},
    {"drop_last": 1},
    {"multiprocessing_context": "fork"},
    {"num_workers": 1, "multiprocessing_context": "thread"},
    {"num_workers": 1, "multiprocessing_context": 3},
    {"timeout": 1},
    {"num_workers": 1, "prefetch_factor": 0},
    {"num_workers": 1000},
]


@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <function _MultiProcessingDataLoaderIter.__del__"
)  # torch's, for prefetch_factor=0
@pytest.mark.parametrize("options", REFUSED, ids=str)
def test_refusals_are_torchs(options):
    def attempt(lib, d):
        loader = d.DataLoader(range(3), **options)
        if options.get("num_workers") != 1000:
            list(loader)

    same(attempt)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"shuffle": False}, {"sampler": [1]}, {"batch_sampler": [[1]]}], ids=str)
def test_what_a_stream_refuses_is_torchs(options):
    same(lambda lib, d: len(list(d.DataLoader(stream(lib, d), **options))))


@pytest.mark.parametrize(
    "name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers", "num_workers"]
)
def test_what_cannot_change_later_is_torchs(name):
    same(lambda lib, d: setattr(d.DataLoader(range(3)), name, 0))


class TwoArgumentsError(Exception):
    def __init__(self, first, second):
        super().__init__(first, second)


@pytest.mark.parametrize(
    "error",
    [ValueError("no good"), KeyError("key"), TwoArgumentsError(1, 2), StopIteration(), OSError(2, "No such file")],
    ids=repr,
)
def test_errors_of_workers_are_torchs(error):
    def attempt(lib, d):
        class Fails(d.Dataset):
            def __getitem__(self, i):
                raise error

            def __len__(self):
                return 1

        try:
            list(d.DataLoader(Fails(), num_workers=1))
        except Exception as caught:
            lines = str(caught).splitlines()
            return [type(caught).__name__, type(caught.__cause__).__name__, lines[0], lines[1], lines[-1]]

    same(attempt)


def test_a_killed_worker_is_reported_as_by_torch():
    def attempt(lib, d):
        class Dies(d.Dataset):
            def __getitem__(self, i):
                os.kill(os.getpid(), signal.SIGKILL)

            def __len__(self):
                return 1

        try:
            list(d.DataLoader(Dies(), num_workers=1))
        except RuntimeError as caught:
            return [re.sub(r"\d+", "N", text) for text in (str(caught), str(caught.__cause__))]

    same(attempt)


# --- profiles ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 2])
def test_profiles_have_the_same_scopes(workers):
    def scopes(lib, d):
        with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU]) as prof:
            for _ in d.DataLoader(rows(lib, d), 4, shuffle=True, num_workers=workers):
                pass
        events = prof.events()
        named = [e for e in events if not e.name.startswith(("aten::", "["))]
        inside = [sorted({c.name for c in e.cpu_children} & {"aten::randperm", "aten::stack", "aten::random_"}) for e in named]
        return [[e.name for e in named], inside]

    same(scopes)
