"""Arithmetic, promotion, rounding, comparison: what PyTorch's operator database does not ask for."""

from __future__ import annotations

import dis
import itertools
import math
import sys
import threading

import numpy as np
import pytest

import mindtorch_v2 as torch


def array(t):
    return np.asarray(t._array)


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        (torch.int64, 2, torch.int64),
        (torch.int64, 2.0, torch.float32),
        (torch.uint8, 300, torch.uint8),
        (torch.float16, 2.0, torch.float16),
        (torch.float32, 1j, torch.complex64),
        (torch.float64, 1j, torch.complex128),
        (torch.bool, 1, torch.int64),
        (torch.bool, True, torch.bool),
    ],
)
def test_numbers_adopt_the_tensors_dtype_unless_of_a_higher_kind(left, right, result):
    assert (torch.ones(2, dtype=left) + right).dtype is result


@pytest.mark.parametrize(
    ("with_dims", "zero_dim", "result"),
    [
        (torch.int32, torch.int64, torch.int32),
        (torch.float32, torch.float64, torch.float32),
        (torch.int32, torch.float64, torch.float64),
        (torch.uint8, torch.int8, torch.uint8),
        (torch.float16, torch.float64, torch.float16),
    ],
)
def test_zero_dim_tensors_give_way_to_tensors_with_dimensions(with_dims, zero_dim, result):
    x, y = torch.ones(2, dtype=with_dims), torch.ones((), dtype=zero_dim)
    assert (x * y).dtype is result
    assert (y * x).dtype is result


def test_integers_wrap_around():
    assert array(torch.tensor([255], dtype=torch.uint8) + 1).tolist() == [0]
    assert array(torch.tensor([100], dtype=torch.uint8) + 300).tolist() == [(100 + 300) % 256]
    assert array(torch.tensor([127], dtype=torch.int8) + torch.tensor([1], dtype=torch.int8)).tolist() == [-128]
    assert array(torch.tensor([2**63 - 1]) + 1).tolist() == [-(2**63)]


def test_a_number_out_of_the_integers_range_divides_as_it_is():
    np.testing.assert_allclose(array(torch.tensor([3], dtype=torch.uint8) / 300), [0.01], rtol=1e-6)


def test_division_and_rounding_modes():
    x, y = torch.tensor([-7, 7, -7, 7]), torch.tensor([2, 2, -2, -2])
    assert array(x / y).tolist() == [-3.5, 3.5, 3.5, -3.5]
    assert array(x // y).tolist() == [-4, 3, 3, -4]
    assert array(torch.div(x, y, rounding_mode="trunc")).tolist() == [-3, 3, 3, -3]
    assert array(x % y).tolist() == [1, 1, -1, -1]
    assert array(torch.fmod(x, y)).tolist() == [-1, 1, -1, 1]
    with pytest.raises(RuntimeError, match="rounding_mode to be one of"):
        torch.div(x, y, rounding_mode="ceil")


@pytest.mark.parametrize(
    "divide", [lambda x, y: x // y, lambda x, y: x % y, torch.fmod, lambda x, y: torch.div(x, y, rounding_mode="trunc")]
)
def test_integer_division_by_zero_raises(divide):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divide(torch.tensor([1, 2]), torch.tensor([1, 0]))


def test_float_division_by_zero_is_quiet():
    x = torch.tensor([1.0, -1.0, 0.0])
    assert str(array(x / 0).tolist()) == "[inf, -inf, nan]"
    assert str(array(x // 0.0).tolist()) == "[inf, -inf, nan]"
    assert math.isnan(array(x % 0.0)[0])


def test_floating_point_errors_never_warn():
    """Overflow, invalid values and division by zero: warnings are errors here, and none may appear in any kind of kernel."""
    big = torch.full((600,), 3e38)
    for result in (
        big + big,
        big * 2,
        big.exp(),
        (-big).sqrt(),
        (big - big).log(),
        big.to(torch.int32),
        big.double().exp().float(),
    ):
        assert result.shape == (600,)
    big.clone().addcmul_(big, big)
    big.clone().addcdiv_(big, big * 0)
    torch.lerp(big, -big, 0.5)
    big.sigmoid(), big.rsqrt(), big.pow(3), big.pow(-2.5), big.log1p(), (big * 0).reciprocal(), big.half()
    torch.tensor([1.0]) + 1e300
    torch.tensor(2.0) / torch.tensor(0.0)


def test_the_users_numpy_keeps_its_own_warnings():
    torch.ones(3) / 0
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.ones(3) / 0


def test_an_interrupt_in_an_operator_leaves_numpys_state_alone():
    """Python runs handlers of signals after calls: one raises after each call of the function that calls the kernel."""
    x, before = torch.ones(3), np.geterr()
    x.std()
    for number in itertools.count():
        calls = itertools.count()
        was_call = False

        def trace(frame, event, argument, number=number, calls=calls):
            nonlocal was_call
            frame.f_trace_opcodes = "std" in frame.f_code.co_filename
            if event == "opcode":
                after, was_call = was_call, dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("CALL")
                if after and next(calls) == number:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            x.std()
        except KeyboardInterrupt:
            pass
        else:
            break
        finally:
            sys.settrace(None)
        assert np.geterr() == before, number
    assert number >= 4


def test_quiet_in_other_threads():
    failures = []

    def work():
        try:
            torch.zeros(700).log().sigmoid()
            torch.zeros(3).lerp(torch.full((3,), math.inf), 0.1)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failures


def test_subtraction_refuses_bools():
    yes = torch.tensor([True])
    with pytest.raises(RuntimeError, match="with two bool tensors is not supported"):
        yes - yes
    with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
        torch.tensor([1]) - yes
    with pytest.raises(RuntimeError, match="on a bool tensor is not supported"):
        _ = -yes


def test_alpha():
    assert array(torch.add(torch.tensor([1, 2]), torch.tensor([3, 4]), alpha=-2)).tolist() == [-5, -6]
    assert array(torch.sub(torch.tensor([1.0]), 3, alpha=2)).tolist() == [-5.0]
    with pytest.raises(RuntimeError, match="must not be a floating point number"):
        torch.add(torch.tensor([1]), torch.tensor([1]), alpha=1.5)


def test_shapes_that_do_not_broadcast():
    with pytest.raises(
        RuntimeError, match=r"The size of tensor a \(3\) must match the size of tensor b \(2\) at non-singleton dimension 1"
    ):
        torch.ones(2, 3) + torch.ones(2, 2)
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
        torch.ones(3).add_(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.addcmul(torch.ones(2), torch.ones(3), torch.ones(3))


def test_in_place_results_keep_their_dtype():
    x = torch.tensor([1, 2])
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        x.add_(0.5)
    with pytest.raises(RuntimeError, match="result type Float can't be cast"):
        x.div_(2)
    assert x.mul_(3) is x
    assert array(x).tolist() == [3, 6]
    y = torch.tensor([1.0, 2.0], dtype=torch.float16)
    y.add_(torch.tensor([1.0, 1.0], dtype=torch.float64))
    assert y.dtype is torch.float16
    assert array(y).tolist() == [2.0, 3.0]


def test_in_place_through_a_view_and_version():
    x = torch.zeros(2, 3)
    before = x._version
    x[1].add_(1)
    assert array(x).tolist() == [[0, 0, 0], [1, 1, 1]]
    assert x._version == before + 1


def test_operators_of_the_language():
    x = torch.tensor([1.0, 2.0])
    assert array(3 - x).tolist() == [2, 1]
    assert array(3 / x).tolist() == [3, 1.5]
    assert array(2**x).tolist() == [2, 4]
    assert array(5 // x).tolist() == [5, 2]
    assert array(5 % torch.tensor([2.0, 3.0])).tolist() == [1, 2]
    assert array(x**2).tolist() == [1, 4]
    assert array(+x).tolist() == [1, 2]
    assert array(abs(-x)).tolist() == [1, 2]
    i = torch.tensor([1, 6])
    assert array(i & 3).tolist() == [1, 2]
    assert array(1 | i).tolist() == [1, 7]
    assert array(i ^ 2).tolist() == [3, 4]
    assert array(~i).tolist() == [-2, -7]
    assert array(i << 2).tolist() == [4, 24]
    assert array(1 << i).tolist() == [2, 64]
    assert array(i >> 1).tolist() == [0, 3]
    same = x
    same += 1
    same *= 2
    same -= 1
    same /= 3
    assert same is x
    np.testing.assert_allclose(array(x), [1, 5 / 3], rtol=1e-6)


def test_operators_with_other_types():
    x = torch.tensor([1.0])
    assert (x == None) is False  # noqa: E711
    assert (x == "a") is False
    with pytest.raises(TypeError):
        x + "a"
    assert array(x + np.float32(2)).tolist() == [3.0]
    assert array(np.float64(2) * x).tolist() == [2.0]


def test_integer_powers():
    x = torch.tensor([-1, 2, 3])
    assert array(x**3).tolist() == [-1, 8, 27]
    assert array(torch.pow(x, torch.tensor([-1, -1, 2]))).tolist() == [-1, 0, 9]
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
        x**-1
    assert (x**0.5).dtype is torch.float32


def test_zero_dim_tensor_as_an_exponent_then_a_vector():
    """The overload chosen for a zero-dim tensor must not be remembered for all tensors."""
    x = torch.tensor([2.0, 3.0])
    assert array(torch.pow(x, torch.tensor(2.0))).tolist() == [4, 9]
    assert array(torch.pow(x, torch.tensor([1.0, 2.0]))).tolist() == [2, 9]


def test_comparisons_and_logic():
    x = torch.tensor([1.0, math.nan, 3.0])
    assert array(x == x).tolist() == [True, False, True]
    assert array(x > 2).tolist() == [False, False, True]
    assert array(x != x).tolist() == [False, True, False]
    assert array(torch.logical_xor(x, torch.zeros(3))).tolist() == [True, True, True]
    assert x.gt_(2).dtype is torch.float32
    assert array(x).tolist() == [0, 0, 1]


def test_isclose_and_equal():
    x = torch.tensor([1.0, math.nan, math.inf])
    assert array(torch.isclose(x, x)).tolist() == [True, False, True]
    assert array(torch.isclose(x, x, equal_nan=True)).tolist() == [True, True, True]
    assert torch.allclose(torch.tensor([1.0]), torch.tensor([1.0 + 1e-7])) is True
    assert torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2])) is True
    assert torch.equal(torch.tensor([1, 2]), torch.tensor([1])) is False
    with pytest.raises(RuntimeError, match="did not match"):
        torch.isclose(torch.tensor([1.0]), torch.tensor([1]))


def test_shifts_beyond_the_width():
    x = torch.tensor([-5, 5], dtype=torch.int8)
    assert array(x << 8).tolist() == [0, 0]
    assert array(x >> 9).tolist() == [-1, 0]


def test_out_argument():
    x, out = torch.tensor([1.0, 2.0]), torch.empty(2, dtype=torch.float64)
    assert torch.add(x, 1, out=out) is out
    assert array(out).tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        torch.add(x, 1, out=torch.empty(2, dtype=torch.int64))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "rsqrt", "sigmoid", "tanh", "erf", "sinc", "lgamma", "i0", "log1p"])
def test_half_precision_is_the_rounded_single_precision(name, dtype):
    x = torch.tensor([0.25, 0.5, 1.5, 3.0], dtype=dtype)
    half, single = getattr(x, name)(), getattr(x.float(), name)()
    assert half.dtype is dtype
    np.testing.assert_allclose(array(half).astype(np.float32), array(single), rtol=1e-2, atol=1e-3)


def test_node_names():
    x = torch.ones(2, requires_grad=True)
    h = torch.ones(2)
    for expected, result in {
        "AddBackward0": x + 1,
        "SubBackward0": x - h,
        "RsubBackward1": 2 - x,
        "MulBackward0": x * 2,
        "DivBackward0": x / 2,
        "DivBackward2": x.div(2, rounding_mode="floor"),
        "PowBackward0": x**2,
        "PowBackward1": x**h,
        "PowBackward2": 2**x,
        "RemainderBackward0": x % 2,
        "RemainderBackward1": x % h,
        "FillBackward2": x.clone().fill_(1),
        "ClampBackward1": x.clamp(0, 1),
        "ClampMinBackward0": x.clamp_min(0),
        "MaskedFillBackward0": x.masked_fill(h > 0, 0),
        "WhereBackward0": torch.where(h > 0, x, 0.0),
        "ToCopyBackward0": x.double(),
        "CloneBackward0": x.clone(),
        "LerpBackward1": x.lerp(h, h),
        "XlogyBackward2": x.xlogy(2.0),
        "SpecialI0EBackward0": torch.special.i0e(x),
    }.items():
        assert result.grad_fn.name() == expected


@pytest.mark.parity
def test_promotion_against_torch():
    import torch as reference

    names = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
    for a in names:
        for b in names:
            for shape_a in ((2,), ()):
                for shape_b in ((2,), ()):
                    ours = torch.ones(shape_a, dtype=getattr(torch, a)) * torch.ones(shape_b, dtype=getattr(torch, b))
                    theirs = reference.ones(shape_a, dtype=getattr(reference, a)) * reference.ones(
                        shape_b, dtype=getattr(reference, b)
                    )
                    assert str(ours.dtype) == str(theirs.dtype), (a, b, shape_a, shape_b)


def test_numpy_numbers_and_arrays_as_operands():
    x = torch.tensor([1.0, 2.0])
    assert array(np.float64(2) - x).tolist() == [1, 0]
    assert array(np.float64(2) ** x).tolist() == [2, 4]
    assert (np.float64(2) ** x).dtype is torch.float32
    assert array(x.clamp(min=np.float32(1.5))).tolist() == [1.5, 2]
    assert array(torch.where(x > 1, x, np.float32(0))).tolist() == [0, 2]
    assert array(x == np.array([1.0, 3.0])).tolist() == [True, False]
    assert (x * np.array([1.0, 2.0])).dtype is torch.float64


def test_functions_take_a_number_first():
    x = torch.tensor([1.0, 2.0])
    assert array(torch.sub(5, x)).tolist() == [4, 3]
    assert array(torch.add(1, x, alpha=2)).tolist() == [3, 5]
    assert array(torch.div(2, x)).tolist() == [2, 1]
    assert array(torch.mul(2, 3)) == 6
    assert torch.mul(2, x.half()).dtype is torch.float16
    with pytest.raises(TypeError):
        torch.maximum(1, x)
