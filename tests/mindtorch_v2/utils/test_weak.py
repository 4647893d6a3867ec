"""Weak references to tensors."""

from __future__ import annotations

import copy
import gc

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary


def test_references_compare_by_identity():
    x, y = torch.ones(2), torch.ones(2)
    assert WeakIdRef(x) == WeakIdRef(x)
    assert WeakIdRef(x) != WeakIdRef(y)
    assert hash(WeakIdRef(x)) == id(x)
    first = WeakIdRef(x)
    other = WeakIdRef(x, lambda reference: None)
    del x
    gc.collect()
    assert first() is other() is None
    assert first != other  # nobody knows any more what they were


def test_a_dictionary_forgets():
    x, y = torch.ones(2), torch.ones(2)
    d = WeakTensorKeyDictionary({x: 1})
    d[y] = 2
    assert (len(d), d[x], d[y], x in d, torch.ones(2) in d, 3 in d) == (2, 1, 2, True, False, False)
    assert [id(key) for key in d] == [id(x), id(y)]
    del x
    gc.collect()
    assert list(d.values()) == [2]
    assert len(d.keyrefs()) == 1
    assert d.pop(y) == 2
    with pytest.raises(KeyError):
        d.pop(y)


def test_as_a_dictionary():
    x, y = torch.ones(1), torch.ones(1)
    d = WeakIdKeyDictionary({x: 1})
    assert d.setdefault(x, 5) == 1
    assert d.get(y) is None
    merged = d | {y: 2}
    assert (merged[x], merged[y], len(d)) == (1, 2, 1)
    assert ({y: 3} | d)[y] == 3
    d |= {y: 4}
    assert d == {x: 1, y: 4}
    assert d.copy() == d == copy.copy(d)
    values = copy.deepcopy(WeakIdKeyDictionary({x: [1]}))
    assert values[x] == [1]
    assert d.popitem()[1] == 4


def test_a_reference_to_a_tensor():
    x = torch.ones(2)
    reference = TensorWeakRef(x)
    assert reference() is x
    del x
    gc.collect()
    assert reference() is None
    with pytest.raises(AssertionError, match=r"expected torch\.Tensor"):
        TensorWeakRef([1])
