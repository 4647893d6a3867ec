"""How tensors print."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mindtorch_v2 as torch


@pytest.fixture(autouse=True)
def _default_options():
    torch.set_printoptions(profile="default")
    yield
    torch.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (torch.tensor(3), "tensor(3)"),
        (torch.tensor(3.0), "tensor(3.)"),
        (torch.tensor(True), "tensor(True)"),
        (torch.tensor(1.5, dtype=torch.float64), "tensor(1.5000, dtype=torch.float64)"),
        (torch.tensor([1.0, 2.0]), "tensor([1., 2.])"),
        (torch.tensor([1.5, -2.25]), "tensor([ 1.5000, -2.2500])"),
        (torch.tensor([1, 20]), "tensor([ 1, 20])"),
        (torch.tensor([True, False]), "tensor([ True, False])"),
        (torch.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
        (torch.tensor([1e10]), "tensor([1.0000e+10])"),
        (torch.tensor([math.nan, math.inf, 1.0]), "tensor([nan, inf, 1.])"),
        (torch.tensor([1 + 2j, -1.5j]), "tensor([1.+2.0000j, -0.-1.5000j])"),
        (torch.tensor([[1, 2], [3, 4]]), "tensor([[1, 2],\n        [3, 4]])"),
        (torch.zeros(1, 1, 2), "tensor([[[0., 0.]]])"),
        (torch.zeros(2, 1, 1), "tensor([[[0.]],\n\n        [[0.]]])"),
        (torch.tensor([]), "tensor([])"),
        (torch.zeros(2, 0), "tensor([], size=(2, 0))"),
        (torch.zeros(0, dtype=torch.int64), "tensor([], dtype=torch.int64)"),
        (torch.ones(2, requires_grad=True), "tensor([1., 1.], requires_grad=True)"),
        (torch.ones(2, requires_grad=True) * 2, "tensor([2., 2.], grad_fn=<MulBackward0>)"),
        (torch.empty(2, 3, device="meta"), "tensor(..., device='meta', size=(2, 3))"),
        (torch.empty(2, dtype=torch.int32, device="meta"), "tensor(..., device='meta', size=(2,), dtype=torch.int32)"),
        (torch.ones(2, dtype=torch.bfloat16), "tensor([1., 1.], dtype=torch.bfloat16)"),
    ],
)
def test_known_texts(tensor, text):
    assert repr(tensor) == text
    assert str(tensor) == text


def test_a_summary_reads_the_edges_alone():
    rows = ["[1., 1., 1.,  ..., 1., 1., 1.]"] * 3
    assert str(torch.ones(1).expand(2**30, 2**30)) == "tensor([" + ",\n        ".join([*rows, "...", *rows]) + "])"


def test_large_tensors_are_summarised():
    assert repr(torch.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    torch.set_printoptions(threshold=5, edgeitems=1)
    assert repr(torch.arange(6)) == "tensor([0,  ..., 5])"


def test_options():
    x = torch.tensor([1.23456])
    torch.set_printoptions(precision=2)
    assert repr(x) == "tensor([1.23])"
    torch.set_printoptions(sci_mode=True)
    assert repr(x) == "tensor([1.23e+00])"
    torch.set_printoptions(profile="short")
    assert repr(x) == "tensor([1.23])"
    torch.set_printoptions(profile="full")
    assert "..." not in repr(torch.arange(2000))
    with pytest.raises(ValueError, match="unknown print profile"):
        torch.set_printoptions(profile="tiny")


def test_lines_break_at_the_width():
    torch.set_printoptions(linewidth=20)
    assert repr(torch.arange(6)) == "tensor([0, 1, 2, 3,\n        4, 5])"
    torch.set_printoptions(linewidth=30)
    assert repr(torch.ones(2, requires_grad=True)) == "tensor([1., 1.],\n       requires_grad=True)"


def test_format_of_one_element_is_its_number():
    assert f"{torch.tensor(3.14159):.2f}" == "3.14"
    assert f"{torch.tensor(7):03d}" == "007"
    assert f"{torch.tensor([1.0])}" == "tensor([1.])"
    with pytest.raises(TypeError):
        format(torch.tensor([1.0]), ".2f")


def test_subclasses_print_their_name():
    class Mine(torch.Tensor):
        pass

    assert repr(torch.ones(2).as_subclass(Mine)) == "Mine([1., 1.])"


_ARRAYS = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.float16, np.int64, np.uint8, np.bool_, np.complex64]),
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=7),
)


@pytest.mark.parity
@settings(max_examples=300, deadline=None)
@given(
    array=_ARRAYS,
    options=st.fixed_dictionaries(
        {},
        optional={
            "precision": st.integers(0, 6),
            "threshold": st.integers(0, 50),
            "edgeitems": st.integers(1, 4),
            "linewidth": st.integers(20, 120),
            "sci_mode": st.booleans(),
            "profile": st.sampled_from(["default", "short", "full"]),
        },
    ),
)
def test_prints_as_torch(array, options):
    import torch as theirs

    array = np.array(array)
    for library in (torch, theirs):
        library.set_printoptions(profile="default")
        library.set_printoptions(**options)
    assert repr(torch.from_numpy(array)) == repr(theirs.from_numpy(array))


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(30,), (3, 4), (1001,), (50, 50), (3, 1, 400), (12, 12, 12)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64", "complex128"])
@pytest.mark.parametrize("scale", [1, 1e-6, 1e5, 1e9])
def test_prints_random_numbers_as_torch(shape, dtype, scale):
    import torch as theirs

    theirs.set_printoptions(profile="default")
    rng = np.random.default_rng(0)
    values = rng.normal(size=shape) * (scale if dtype[0] in "fc" else 40)
    if dtype[0] == "c":
        values = values + 1j * rng.normal(size=shape)
    with np.errstate(all="ignore"):
        array = np.abs(values).astype(dtype) if dtype == "uint8" else values.astype(dtype)
    assert repr(torch.from_numpy(array)) == repr(theirs.from_numpy(array))
