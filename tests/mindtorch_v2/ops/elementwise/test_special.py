"""Special functions and complex numbers: known values, large arrays, views."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

import mindtorch_v2 as torch


def array(t):
    return np.asarray(t._array)


@pytest.mark.parametrize(
    ("ours", "reference"),
    [
        (torch.erf, scipy.special.erf),
        (torch.sigmoid, scipy.special.expit),
        (torch.log1p, np.log1p),
        (torch.exp, np.exp),
    ],
)
@pytest.mark.parametrize("size", [100, 5001])
def test_float32_kernels_against_float64(ours, reference, size):
    """Large arrays take other code than small ones; both must be right to a few units in the last place."""
    x = np.concatenate([np.linspace(-0.99, 6, size), [1e-20, 1e-9, -1e-9, 0.0]])
    got = array(ours(torch.from_numpy(x.astype(np.float32))))
    np.testing.assert_allclose(got, reference(x.astype(np.float32).astype(np.float64)), rtol=1.5e-6, atol=1e-30)


@pytest.mark.parametrize("size", [4, 4000])
def test_limits(size):
    x = torch.tensor([math.inf, -math.inf, math.nan, -1.0] * (size // 4))
    assert str(array(x.log1p())[:4].tolist()) == "[inf, nan, nan, -inf]"
    assert str(array(x.sigmoid())[:3].tolist()) == "[1.0, 0.0, nan]"
    assert str(array(x.erf())[:3].tolist()) == "[1.0, -1.0, nan]"


def test_known_values():
    assert array(torch.lgamma(torch.tensor([5.0])))[0] == pytest.approx(math.log(24), rel=1e-6)
    assert array(torch.digamma(torch.tensor([1.0])))[0] == pytest.approx(-0.5772157, rel=1e-6)
    assert str(array(torch.digamma(torch.tensor([0.0, -0.0, -1.0]))).tolist()) == "[-inf, inf, nan]"
    assert array(torch.polygamma(1, torch.tensor([1.0])))[0] == pytest.approx(math.pi**2 / 6, rel=1e-6)
    assert array(torch.special.zeta(torch.tensor([2.0]), 1.0))[0] == pytest.approx(math.pi**2 / 6, rel=1e-6)
    assert array(torch.special.chebyshev_polynomial_t(torch.tensor([0.5]), 3))[0] == pytest.approx(-1.0)
    assert array(torch.special.hermite_polynomial_h(torch.tensor([2.0]), 2))[0] == pytest.approx(14.0)
    assert array(torch.special.legendre_polynomial_p(torch.tensor([0.5]), 2))[0] == pytest.approx(-0.125)
    assert array(torch.special.multigammaln(torch.tensor([3.0]), 2))[0] == pytest.approx(
        0.5 * math.log(math.pi) + math.lgamma(3) + math.lgamma(2.5)
    )
    assert array(torch.special.xlog1py(0, torch.tensor([-1.0])))[0] == 0
    assert array(torch.sinc(torch.tensor([0.0, 0.5]))).tolist() == pytest.approx([1, 2 / math.pi])


def test_integers_become_floating():
    assert torch.exp(torch.tensor([1])).dtype is torch.float32
    assert torch.special.entr(torch.tensor([1])).dtype is torch.float32
    assert torch.special.expit(torch.tensor([True])).dtype is torch.float32


def test_every_public_name_of_special_is_a_function():
    assert {"expit", "logit", "erf", "gammaln", "psi", "log_softmax", "xlog1py", "zeta", "ndtri"} <= set(torch.special.__all__)
    assert all(callable(getattr(torch.special, name)) for name in torch.special.__all__)


def test_real_and_imaginary_parts_are_views():
    z = torch.tensor([1 + 2j, 3 - 4j])
    z.real.mul_(10)
    z.imag = torch.tensor([0.0, 1.0])
    assert array(z).tolist() == [10, 30 + 1j]
    torch.view_as_real(z)[0, 1] = 5
    assert array(z)[0] == 10 + 5j
    pairs = torch.zeros(2, 2)
    torch.view_as_complex(pairs).fill_(1 + 2j)
    assert array(pairs).tolist() == [[1, 2], [1, 2]]
    x = torch.ones(2)
    assert x.real is x
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        _ = x.imag


def test_complex_construction_and_refusals():
    assert array(torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))).tolist() == [1 + 2j]
    np.testing.assert_allclose(array(torch.polar(torch.tensor([2.0]), torch.tensor([math.pi / 2]))), [2j], atol=1e-6)
    with pytest.raises(RuntimeError, match="Expected object of scalar type Float but got scalar type Double"):
        torch.complex(torch.ones(1), torch.ones(1, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="Expected both inputs to be Half, Float or Double"):
        torch.complex(torch.tensor([1]), torch.tensor([1]))
    with pytest.raises(RuntimeError, match="complex32"):
        torch.complex(torch.ones(1, dtype=torch.float16), torch.ones(1, dtype=torch.float16))
    with pytest.raises(NotImplementedError, match=r"use torch\.sgn"):
        torch.sign(torch.tensor([1j]))


def test_gradient_of_abs_is_the_direction():
    z = torch.tensor([3 + 4j], requires_grad=True)
    z.abs().sum().backward()
    np.testing.assert_allclose(array(z.grad), [0.6 + 0.8j], rtol=1e-6)


def test_rounding():
    x = torch.tensor([0.5, 1.5, -0.5, 2.345])
    assert array(x.round()).tolist() == [0, 2, -0.0, 2]
    np.testing.assert_allclose(array(x.round(decimals=2))[3], 2.34, atol=6e-3)
    i = torch.tensor([1, 2])
    assert i.floor().dtype is torch.int64
    assert array(torch.tensor([-1.7]).frac())[0] == pytest.approx(-0.7)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        i.frac()


def test_nan_to_num():
    x = torch.tensor([math.nan, math.inf, -math.inf, 1.0])
    top = float(np.finfo(np.float32).max)
    assert array(x.nan_to_num()).tolist() == [0, top, -top, 1]
    assert array(x.nan_to_num(nan=2.0, posinf=3.0, neginf=4.0)).tolist() == [2, 3, 4, 1]
    assert array(torch.tensor(complex(math.nan, 1)).nan_to_num()) == 1j


def test_frexp():
    mantissa, exponent = torch.frexp(torch.tensor([8.0]))
    assert (array(mantissa)[0], array(exponent)[0]) == (0.5, 4)
    assert exponent.dtype is torch.int32
