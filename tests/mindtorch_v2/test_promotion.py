"""Type promotion: the lattice, and how numbers and zero-dim tensors give way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mindtorch_v2 as torch

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
DTYPES = [torch.bool, *INTEGERS, *FLOATS, *COMPLEX]

dtypes = st.sampled_from(DTYPES)
numbers = st.sampled_from([True, 3, 2.5, 1j])


def category(d):
    return next(i for i, group in enumerate(([torch.bool], INTEGERS, FLOATS, COMPLEX)) if d in group)


def of(value):
    return {bool: torch.bool, int: torch.int64, float: torch.float32, complex: torch.complex64}[type(value)]


@given(dtypes, dtypes)
def test_promotion_is_symmetric_and_never_loses_a_category(a, b):
    joined = torch.promote_types(a, b)
    assert joined is torch.promote_types(b, a)
    assert category(joined) == max(category(a), category(b))
    assert torch.promote_types(joined, a) is joined


@given(dtypes, dtypes)
def test_results_have_the_promoted_dtype(a, b):
    x, y = torch.ones(2, dtype=a), torch.ones(2, dtype=b)
    assert (x + y).dtype is torch.promote_types(a, b)
    assert (x == y).dtype is torch.bool
    assert torch.result_type(x, y) is torch.promote_types(a, b)


@given(dtypes, numbers)
def test_a_number_matters_only_by_its_category(d, value):
    result = (torch.ones(2, dtype=d) * value).dtype
    if category(of(value)) <= category(d):
        assert result is d
    elif category(d) == 2:  # a floating tensor and a complex number keep the tensor's precision
        assert result is (torch.complex128 if d is torch.float64 else torch.complex64)
    else:
        assert result is of(value)


@given(dtypes, dtypes)
def test_a_zero_dim_tensor_matters_only_by_its_category(a, b):
    result = (torch.ones(2, dtype=a) + torch.ones((), dtype=b)).dtype
    if category(b) <= category(a):
        assert result is a
    else:
        assert category(result) == category(b)


@given(dtypes)
def test_division_of_integers_is_floating(d):
    result = (torch.ones(2, dtype=d) / torch.ones(2, dtype=d)).dtype
    assert result is (d if category(d) >= 2 else torch.float32)


@given(dtypes, dtypes)
def test_in_place_keeps_the_dtype_or_refuses(a, b):
    x = torch.ones(2, dtype=a)
    if category(b) > category(a):
        with pytest.raises(RuntimeError, match="can't be cast"):
            x.add_(torch.ones(2, dtype=b))
    else:
        assert x.add_(torch.ones(2, dtype=b)).dtype is a


def test_unsigned_and_signed_bytes_meet_in_a_wider_type():
    assert torch.promote_types(torch.uint8, torch.int8) is torch.int16
    assert torch.promote_types(torch.float16, torch.bfloat16) is torch.float32


def test_the_default_dtype_decides_what_integers_become():
    torch.set_default_dtype(torch.float64)
    try:
        assert (torch.ones(2, dtype=torch.int32) / 2).dtype is torch.float64
        assert (torch.ones(2, dtype=torch.int32) * 0.5).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("other", ["a", None, [1]])
def test_what_is_neither_tensor_nor_number_has_no_result_type(other):
    with pytest.raises(TypeError, match=rf"not {type(other).__name__}$"):
        torch.result_type(torch.ones(2), other)
