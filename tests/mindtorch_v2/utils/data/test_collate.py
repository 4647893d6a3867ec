"""Batches made of samples."""

import collections
import types

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.data import default_collate, default_convert
from mindtorch_v2.utils.data._utils.collate import collate, default_collate_fn_map

Point = collections.namedtuple("Point", "x y")


def test_numbers_and_tensors_are_stacked():
    assert default_collate([1, 2]).dtype is torch.int64
    assert default_collate([1.5, 2.0]).dtype is torch.float64
    assert default_collate([True, False]).dtype is torch.bool
    assert default_collate([np.float32(1), np.float32(2)]).dtype is torch.float32
    assert default_collate([torch.zeros(2, 3), torch.ones(2, 3)]).shape == (2, 2, 3)
    assert default_collate([np.zeros(2, np.int16), np.ones(2, np.int16)]).tolist() == [[0, 0], [1, 1]]


def test_texts_stay():
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a", b"b"]) == [b"a", b"b"]


def test_collections_are_collated_part_by_part():
    batch = default_collate([{"a": 1, "b": [1.0, "x"]}, {"a": 2, "b": [2.0, "y"]}])
    assert batch["a"].tolist() == [1, 2]
    assert batch["b"][0].tolist() == [1.0, 2.0]
    assert batch["b"][1] == ("x", "y")
    point = default_collate([Point(0, 1), Point(2, 3)])
    assert isinstance(point, Point)
    assert point.y.tolist() == [1, 3]
    assert [t.tolist() for t in default_collate([(1, 2), (3, 4)])] == [[1, 3], [2, 4]]
    assert default_collate([[], []]) == []


def test_other_collections_keep_their_type_and_what_they_know():
    class Named(collections.UserDict):
        name = ""

    sample = Named(a=1)
    sample.name = "first"
    batch = default_collate([sample, Named(a=2)])
    assert (type(batch), batch.name, batch["a"].tolist()) == (Named, "first", [1, 2])
    assert sample["a"] == 1
    frozen = default_collate([types.MappingProxyType({"a": 1})])
    assert type(frozen) is types.MappingProxyType
    queue = default_collate([collections.deque([1, 2]), collections.deque([3, 4])])
    assert type(queue) is collections.deque
    assert queue[1].tolist() == [2, 4]
    assert [t.tolist() for t in default_collate([range(2), range(2)])] == [[0, 0], [1, 1]]


def test_what_cannot_be_collated():
    with pytest.raises(
        TypeError,
        match=r"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'object'>",
    ):
        default_collate([object()])
    with pytest.raises(TypeError, match="found <U1"):
        default_collate([np.array(["a"])])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(RuntimeError, match="Batches of sparse tensors are not currently supported by the default collate_fn"):
        default_collate([torch.eye(2).to_sparse()])
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        default_collate([torch.zeros(1), torch.zeros(2)])


def test_functions_for_other_types():
    class Word(str):
        __slots__ = ()

    functions = {**default_collate_fn_map, Word: lambda batch, *, collate_fn_map: " ".join(batch)}
    assert collate([Word("a"), Word("b")], collate_fn_map=functions) == "a b"
    assert collate([{"w": Word("a")}], collate_fn_map=functions) == {"w": "a"}


def test_converting_leaves_what_is_no_array():
    x = torch.ones(1)
    assert default_convert(x) is x
    assert default_convert(np.arange(2)).tolist() == [0, 1]
    assert default_convert(np.float32(1.5)).dtype is torch.float32
    assert default_convert("a") == "a"
    assert default_convert(3) == 3
    names = np.array(["a"])
    assert default_convert(names) is names
    assert default_convert(np.str_("a")) == "a"
    converted = default_convert({"a": (np.zeros(1), "b"), "p": Point(np.ones(1), 2)})
    assert type(converted["a"]) is list
    assert converted["p"].x.tolist() == [1]
    assert [x.tolist() for x in default_convert([np.zeros(1), np.ones(1)])] == [[0], [1]]
