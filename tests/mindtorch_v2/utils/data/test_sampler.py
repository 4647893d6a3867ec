"""Samplers: orders, lengths, and what they refuse."""

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


def test_a_sampler_without_indices_says_so():
    with pytest.raises(NotImplementedError):
        iter(Sampler())


def test_in_order():
    sampler = SequentialSampler("abc")
    assert (list(sampler), len(sampler)) == ([0, 1, 2], 3)


def test_random_orders_are_permutations_that_a_seed_decides():
    torch.manual_seed(3)
    first = list(RandomSampler(range(50)))
    second = list(RandomSampler(range(50)))
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    torch.manual_seed(3)
    assert list(RandomSampler(range(50))) == first


def test_a_generator_of_its_own_leaves_the_default_one_alone():
    state = torch.get_rng_state()
    generator = torch.Generator().manual_seed(1)
    first = list(RandomSampler(range(9), generator=generator))
    assert torch.equal(torch.get_rng_state(), state)
    assert list(RandomSampler(range(9), generator=generator.manual_seed(1))) == first


def test_more_and_fewer_samples_than_there_are():
    torch.manual_seed(0)
    assert sorted(RandomSampler(range(3), num_samples=6)) == [0, 0, 1, 1, 2, 2]
    drawn = list(RandomSampler(range(3), replacement=True, num_samples=100))
    assert len(drawn) == 100
    assert set(drawn) == {0, 1, 2}
    assert len(RandomSampler(range(3), num_samples=2)) == 2


def test_a_data_set_may_grow():
    data = [1, 2]
    sampler = RandomSampler(data)
    data.append(3)
    assert len(sampler) == 3
    assert sorted(sampler) == [0, 1, 2]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: RandomSampler("ab", replacement=1), TypeError, "replacement should be a boolean value, but got replacement=1"),
        (lambda: RandomSampler([]), ValueError, "num_samples should be a positive integer value, but got num_samples=0"),
        (
            lambda: RandomSampler("ab", num_samples=1.5),
            ValueError,
            "num_samples should be a positive integer value, but got num_samples=1.5",
        ),
        (lambda: WeightedRandomSampler([1.0], True), ValueError, "num_samples should be a positive integer value"),
        (lambda: WeightedRandomSampler([1.0], 1, replacement=0), ValueError, "replacement should be a boolean value"),
        (
            lambda: WeightedRandomSampler([[1.0]], 1),
            ValueError,
            r"weights should be a 1d sequence but given weights have shape \(1, 1\)",
        ),
        (lambda: BatchSampler([1], 0, False), ValueError, "batch_size should be a positive integer value, but got batch_size=0"),
        (lambda: BatchSampler([1], True, False), ValueError, "batch_size should be a positive integer value"),
        (lambda: BatchSampler([1], 1, 0), ValueError, "drop_last should be a boolean value, but got drop_last=0"),
        (lambda: DistributedSampler([1]), ValueError, "Default process group has not been initialized"),
        (lambda: DistributedSampler([1], 2, 2), ValueError, r"Invalid rank 2, rank should be in the interval \[0, 1\]"),
    ],
)
def test_what_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_of_a_list_of_indices():
    torch.manual_seed(0)
    sampler = SubsetRandomSampler([5, 7, 9])
    assert sorted(sampler) == [5, 7, 9]
    assert len(sampler) == 3


def test_by_weight():
    torch.manual_seed(0)
    assert set(WeightedRandomSampler([0.0, 1.0, 0.0, 3.0], 50)) == {1, 3}
    assert sorted(WeightedRandomSampler([1.0, 1.0, 1.0], 3, replacement=False)) == [0, 1, 2]


@pytest.mark.parametrize(("drop_last", "batches"), [(False, [[0, 1], [2, 3], [4]]), (True, [[0, 1], [2, 3]])])
def test_in_batches(drop_last, batches):
    sampler = BatchSampler(range(5), 2, drop_last)
    assert list(sampler) == batches
    assert len(sampler) == len(batches)


def test_each_process_has_its_part():
    parts = [list(DistributedSampler(range(7), 3, rank, shuffle=False)) for rank in range(3)]
    assert parts == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    parts = [list(DistributedSampler(range(7), 3, rank, shuffle=False, drop_last=True)) for rank in range(3)]
    assert parts == [[0, 3], [1, 4], [2, 5]]
    assert list(DistributedSampler(range(1), 4, 3)) == [0]


def test_an_epoch_has_an_order_of_its_own():
    sampler = DistributedSampler(range(20), 2, 0)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first
