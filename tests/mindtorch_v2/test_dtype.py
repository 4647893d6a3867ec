"""Element types: facts, limits, promotion."""

from __future__ import annotations

import copy
import itertools
import pickle
import re

import pytest

import mindtorch_v2 as torch

NAMES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_are_singletons_by_name(name):
    d = getattr(torch, name)
    assert repr(d) == f"torch.{name}"
    assert pickle.loads(pickle.dumps(d)) is d
    assert copy.deepcopy(d) is d


def test_facts():
    assert torch.float16.is_floating_point
    assert not torch.int8.is_floating_point
    assert torch.complex64.is_complex
    assert torch.int8.is_signed
    assert not torch.uint8.is_signed
    assert not torch.bool.is_signed
    assert torch.bfloat16.itemsize == 2
    assert torch.float64.to_complex() is torch.complex128
    assert torch.complex64.to_real() is torch.float32
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Long"):
        torch.int64.to_complex()
    assert (torch.half, torch.float, torch.double, torch.long) == (torch.float16, torch.float32, torch.float64, torch.int64)


def test_limits():
    info = torch.finfo(torch.float32)
    assert (info.bits, info.eps, info.dtype) == (32, 2.0**-23, "float32")
    assert torch.finfo(torch.bfloat16).eps == 2.0**-7
    assert torch.finfo(torch.complex64) == info
    assert torch.finfo().dtype == "float32"
    assert repr(torch.iinfo(torch.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
    assert torch.iinfo(torch.uint64).max == 2**64 - 1
    for call, text in (
        (lambda: torch.finfo(torch.int8), "requires a floating point input type"),
        (lambda: torch.iinfo(torch.float32), "requires an integer input type"),
        (lambda: torch.iinfo(torch.bool), "torch.bool is not supported"),
    ):
        with pytest.raises(TypeError, match=text):
            call()


def test_default_dtype_must_be_floating():
    with pytest.raises(TypeError, match="only floating-point types"):
        torch.set_default_dtype(torch.int64)
    assert torch.get_default_dtype() is torch.float32


def test_promotion():
    assert torch.promote_types(torch.uint8, torch.int8) is torch.int16
    assert torch.promote_types(torch.float16, torch.bfloat16) is torch.float32
    assert torch.promote_types(torch.int64, torch.float16) is torch.float16
    assert torch.result_type(torch.tensor([1]), 1.5) is torch.float32
    assert torch.result_type(torch.tensor(1.0, dtype=torch.float64), torch.tensor([1.0])) is torch.float32
    assert not torch.can_cast(torch.float32, torch.int32)
    assert torch.can_cast(torch.float64, torch.float16)


def _outcome(call):
    """The result, or the error's text. There is no complex32 here: what it would be is complex64."""
    try:
        return str(call()).replace("complex32", "complex64")
    except RuntimeError as error:
        return str(error).splitlines()[0]


def _promotions(library, a, b):
    """What the two dtypes give in every way that promotion can be asked for."""
    x, y = getattr(library, a), getattr(library, b)
    found = [_outcome(lambda: library.promote_types(x, y)), _outcome(lambda: library.can_cast(x, y))]
    for first, second in itertools.product([(), (1,)], repeat=2):
        found.append(_outcome(lambda f=first, s=second: library.result_type(library.zeros(f, dtype=x), library.zeros(s, dtype=y))))
    for number, shape in itertools.product([True, 1, 1.5, 1j], [(), (1,)]):
        found.append(_outcome(lambda n=number, s=shape: library.result_type(library.zeros(s, dtype=x), n)))
    return found


@pytest.mark.parity
@pytest.mark.parametrize("a", NAMES)
@pytest.mark.parametrize("b", NAMES)
def test_promotion_tables_are_those_of_torch(a, b):
    import torch as theirs

    assert _promotions(torch, a, b) == _promotions(theirs, a, b)


@pytest.mark.parity
@pytest.mark.parametrize("name", NAMES)
def test_limits_are_those_of_torch(name):
    import torch as theirs

    for info in ("finfo", "iinfo"):
        ours, expected = ([], [])
        for library, found in ((torch, ours), (theirs, expected)):
            try:
                found.append(repr(getattr(library, info)(getattr(library, name))))
            except TypeError as error:
                found.append(str(error))
        assert ours == expected


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("bool", "bool"),
        ("uint8", "unsigned char"),
        ("int16", "short int"),
        ("uint16", "short unsigned int"),
        ("uint32", "unsigned int"),
        ("int64", "long int"),
        ("uint64", "long unsigned int"),
        ("bfloat16", "c10::BFloat16"),
        ("complex64", "c10::complex<float>"),
    ],
)
def test_messages_about_mixed_types_spell_them_as_cpp_does(name, spelling):
    x, y = torch.zeros(2, 2, dtype=getattr(torch, name)), torch.ones(2, 2)
    for call, text in (
        (lambda: torch.mm(x, y), f"got: {spelling} != float"),
        (lambda: torch.lerp(y, x, 0.5), f"got dtype {spelling}"),
        (lambda: torch.linalg.multi_dot([x, y]), f"tensor 0 is {spelling} and tensor 1 float"),
        (lambda: torch.nn.functional.scaled_dot_product_attention(x, y, y), f"query.dtype: {spelling} key.dtype: float"),
        (lambda: torch.max(y, 0, out=(x, x)), f"but got {spelling} instead"),
        (lambda: setattr(torch.ones(2, 2, requires_grad=True), "grad", x), f"a gradient with dtype '{spelling}'"),
    ):
        with pytest.raises(RuntimeError, match=re.escape(text)):
            call()
