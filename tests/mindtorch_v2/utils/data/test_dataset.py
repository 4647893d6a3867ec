"""Data sets, and what is made of other data sets."""

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Letters(Dataset):
    def __init__(self, text):
        self.text = text

    def __getitem__(self, i):
        return self.text[i]

    def __len__(self):
        return len(self.text)


class ManyAtOnce(Letters):
    def __getitems__(self, indices):
        return [self.text[i].upper() for i in indices]


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


def test_a_data_set_without_samples_says_so():
    with pytest.raises(NotImplementedError, match="Subclasses of Dataset should implement __getitem__"):
        Dataset()[0]


def test_rows_of_tensors():
    data = TensorDataset(torch.arange(6).reshape(3, 2), torch.tensor([7, 8, 9]))
    assert len(data) == 3
    row, label = data[1]
    assert (row.tolist(), label.item()) == ([2, 3], 8)
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(torch.zeros(2), torch.zeros(3))


def test_stacks_are_tuples_or_dicts():
    a, b = Letters("abc"), ManyAtOnce("xyz")
    assert StackDataset(a, b)[1] == ("b", "y")
    assert StackDataset(a, b).__getitems__([0, 2]) == [("a", "X"), ("c", "Z")]
    assert StackDataset(left=a, right=b)[2] == {"left": "c", "right": "z"}
    assert StackDataset(left=a, right=b).__getitems__([1]) == [{"left": "b", "right": "Y"}]
    assert len(StackDataset(a, b)) == 3


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, "At least one dataset should be passed"),
        (("ab",), {"b": "ab"}, "but both types are given"),
        (("ab", "abc"), {}, "Size mismatch between datasets"),
        ((), {"a": "ab", "b": "abc"}, "Size mismatch between datasets"),
    ],
)
def test_what_cannot_be_stacked(args, kwargs, text):
    with pytest.raises(ValueError, match=text):
        StackDataset(*args, **kwargs)


def test_too_few_samples_at_once_are_noticed():
    class Few(Letters):
        def __getitems__(self, indices):
            return []

    with pytest.raises(ValueError, match=r"Nested dataset's output size mismatch\. Expected 2, got 0"):
        StackDataset(Few("abc")).__getitems__([0, 1])


def test_data_sets_one_after_the_other():
    data = Letters("ab") + Letters("") + Letters("cde")
    assert isinstance(data, ConcatDataset)
    assert [data[i] for i in range(len(data))] == list("abcde")
    assert data[-1] == "e"
    assert data[-5] == "a"
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        data[-6]
    with pytest.warns(FutureWarning, match="renamed to `cumulative_sizes`"):
        assert ConcatDataset([Letters("ab"), Letters("c")]).cummulative_sizes == [2, 3]


def test_what_cannot_be_concatenated():
    with pytest.raises(AssertionError, match="datasets should not be an empty iterable"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="ConcatDataset does not support IterableDataset"):
        ConcatDataset([Stream(2)])


def test_streams_one_after_the_other():
    data = Stream(2) + Stream(3)
    assert isinstance(data, ChainDataset)
    assert list(data) == [0, 1, 0, 1, 2]
    assert len(data) == 5
    with pytest.raises(AssertionError, match="ChainDataset only supports IterableDataset"):
        list(ChainDataset([Letters("ab")]))
    with pytest.raises(AssertionError, match="ChainDataset only supports IterableDataset"):
        len(ChainDataset([Letters("ab")]))


def test_subsets():
    part = Subset(Letters("abcd"), [3, 1])
    assert [part[0], part[1], len(part)] == ["d", "b", 2]
    assert part.__getitems__([1, 0]) == ["b", "d"]
    assert Subset(ManyAtOnce("abcd"), [3, 1]).__getitems__([0]) == ["D"]
    assert Subset(np.arange(10), [4, 6])[[1, 0]].tolist() == [6, 4]


def test_a_subset_with_other_samples_has_to_have_them_at_once_as_well():
    class Loud(Subset):
        def __getitem__(self, i):
            return super().__getitem__(i).upper()

    with pytest.raises(NotImplementedError, match="Loud overrides __getitem__ but not __getitems__"):
        Loud(Letters("ab"), [0])


def test_random_splits():
    torch.manual_seed(0)
    parts = random_split(range(10), [3, 7])
    assert sorted(i for part in parts for i in part.indices) == list(range(10))
    assert [len(part) for part in random_split(range(10), [0.5, 0.25, 0.25])] == [6, 2, 2]
    generator = torch.Generator().manual_seed(1)
    first = [p.indices for p in random_split(range(8), [4, 4], generator)]
    assert [p.indices for p in random_split(range(8), [4, 4], generator.manual_seed(1))] == first
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0. This might result in an empty dataset"):
        random_split(range(1), [0.5, 0.5])
    with pytest.raises(ValueError, match="Sum of input lengths does not equal the length of the input dataset"):
        random_split(range(3), [1, 1])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        random_split(range(3), [-0.5, 1.5])
