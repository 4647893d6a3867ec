"""Loaders without workers: batches, lengths, refusals, and what a profile shows of them."""

import multiprocessing
import pickle
from itertools import chain

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.utils import data
from mindtorch_v2.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset


class Stream(IterableDataset):
    def __init__(self, n, told=None):
        self.n, self.told = n, told

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n if self.told is None else self.told


def lists(loader):
    return [batch.tolist() for batch in loader]


def test_batches_in_order():
    assert lists(DataLoader(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert lists(DataLoader(range(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert lists(DataLoader(range(2))) == [[0], [1]]
    assert [len(DataLoader(range(5), 2)), len(DataLoader(range(5), 2, drop_last=True)), len(DataLoader(range(5)))] == [3, 2, 5]


def test_without_batches_samples_are_as_they_are():
    samples = [np.arange(2), "text", 3]
    got = list(DataLoader(samples, batch_size=None))
    assert got[0].tolist() == [0, 1]
    assert got[1:] == ["text", 3]


def test_several_tensors():
    loader = DataLoader(TensorDataset(torch.arange(6.0).reshape(3, 2), torch.arange(3)), batch_size=2)
    rows, labels = next(iter(loader))
    assert (rows.tolist(), labels.tolist()) == ([[0, 1], [2, 3]], [0, 1])


def test_shuffling_is_decided_by_the_seed():
    torch.manual_seed(0)
    loader = DataLoader(range(20), 5, shuffle=True)
    first, second = lists(loader), lists(loader)
    assert first != second
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(20))
    torch.manual_seed(0)
    assert lists(loader) == first
    generator = torch.Generator().manual_seed(7)
    own = lists(DataLoader(range(20), 5, shuffle=True, generator=generator))
    assert lists(DataLoader(range(20), 5, shuffle=True, generator=generator.manual_seed(7))) == own


def test_samplers():
    assert lists(DataLoader(range(10), 2, sampler=[9, 8, 7])) == [[9, 8], [7]]
    assert lists(DataLoader(range(10), batch_sampler=[[1], [2, 3]])) == [[1], [2, 3]]
    assert len(DataLoader(range(10), batch_sampler=[[1], [2, 3]])) == 2


def test_a_function_of_one_s_own_makes_the_batch():
    assert list(DataLoader("abcd", 3, collate_fn="".join)) == ["abc", "d"]


def test_samples_can_come_many_at_once():
    class Many(Dataset):
        def __getitems__(self, indices):
            return [10 * i for i in indices]

        def __len__(self):
            return 4

    assert lists(DataLoader(Many(), 2)) == [[0, 10], [20, 30]]


def test_streams():
    assert lists(DataLoader(Stream(5), 2)) == [[0, 1], [2, 3], [4]]
    assert lists(DataLoader(Stream(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    assert [len(DataLoader(Stream(5), 2)), len(DataLoader(Stream(5), 2, drop_last=True)), len(DataLoader(Stream(5), None))] == [
        3,
        2,
        5,
    ]


def test_a_stream_longer_than_it_said_is_warned_of():
    loader = DataLoader(Stream(3, told=2), batch_size=None)
    assert list(loader) == [0, 1, 2]  # nobody asked for the length
    assert len(loader) == 2
    with pytest.warns(
        UserWarning, match=r"was reported to be 2\(when accessing len\(dataloader\)\), but 3 samples have been fetched"
    ):
        list(loader)


def test_pinned_memory_needs_an_accelerator():
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found"):
        iter(DataLoader(range(2), pin_memory=True))
    with (
        pytest.warns(UserWarning, match="no accelerator is found"),
        pytest.warns(UserWarning, match="pin_memory_device is deprecated, .*,ignore pin_memory_device='cuda'"),
    ):
        iter(DataLoader(range(2), pin_memory=True, pin_memory_device="cuda"))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"num_workers": -1},
            ValueError,
            "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.",
        ),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified in multiprocessing."),
        ({"num_workers": 1, "prefetch_factor": -1}, ValueError, "prefetch_factor option should be non-negative"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
        ({"sampler": [1], "shuffle": True}, ValueError, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, ValueError, "batch_sampler option is mutually exclusive with batch_size"),
        ({"batch_sampler": [[1]], "drop_last": True}, ValueError, "batch_sampler option is mutually exclusive with batch_size"),
        ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None option disables auto-batching"),
        ({"batch_size": 0}, ValueError, "batch_size should be a positive integer value, but got batch_size=0"),
        ({"multiprocessing_context": "fork"}, ValueError, r"can only be used with multi-process loading \(num_workers > 0\)"),
        ({"num_workers": 1, "multiprocessing_context": "thread"}, ValueError, "should specify a valid start method in"),
        ({"num_workers": 1, "multiprocessing_context": 3}, TypeError, "should be a valid context object or a string specifying"),
    ],
)
def test_what_is_refused(options, error, text):
    with pytest.raises(error, match=text):
        DataLoader(range(3), **options)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}])
def test_what_a_stream_refuses(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}="):
        DataLoader(Stream(3), **options)


def test_what_cannot_change_later():
    loader = DataLoader(range(3))
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, None)
    loader.num_workers = 0
    with pytest.raises(AssertionError, match="_SingleProcessDataLoaderIter requires timeout == 0"):
        iter(DataLoader(range(3), timeout=1))


def test_contexts_can_be_named_or_given():
    given = multiprocessing.get_context("spawn")
    assert DataLoader(range(3), num_workers=1, multiprocessing_context=given).multiprocessing_context is given
    assert (
        DataLoader(range(3), num_workers=1, multiprocessing_context="spawn").multiprocessing_context.get_start_method() == "spawn"
    )


def test_too_many_workers_are_warned_of():
    with pytest.warns(UserWarning, match="This DataLoader will create 100000 worker processes in total. Our suggested max"):
        DataLoader(range(3), num_workers=100_000)


def test_an_iterator_cannot_be_pickled():
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(DataLoader(range(3))))


def test_an_error_of_a_sample_comes_through():
    class Bad(Dataset):
        def __getitem__(self, i):
            raise KeyError(i)

        def __len__(self):
            return 1

    with pytest.raises(KeyError) as caught:
        next(iter(DataLoader(Bad())))
    assert caught.value.args == (0,)


def test_the_main_process_is_no_worker():
    assert data.get_worker_info() is None


def test_a_profile_shows_each_batch():
    with profile() as prof:
        lists(DataLoader(TensorDataset(torch.zeros(4)), 2, collate_fn=lambda batch: torch.stack([x for (x,) in batch])))
    scopes = [e for e in prof.events() if e.name.startswith("enumerate(DataLoader)#")]
    assert [e.name for e in scopes] == [
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    ] * 3  # the last one finds the end
    assert "aten::stack" in {child.name for child in scopes[0].cpu_children}


def test_data_pipes_are_refused_by_name():
    with pytest.raises(AttributeError, match=r"torch\.utils\.data\.IterDataPipe: data pipes are not part of this library"):
        data.IterDataPipe  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        data.Nothing  # noqa: B018


def test_every_name_is_there():
    assert all(hasattr(data, name) for name in data.__all__)
    assert data.__all__ == sorted(data.__all__)
