"""Jacobians, Hessians and gradcheck."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.autograd import Function, functional, gradcheck, gradgradcheck
from mindtorch_v2.autograd.gradcheck import GradcheckError


def double(*values, grad=False):
    return torch.tensor(list(values), dtype=torch.float64, requires_grad=grad)


def same(t, values):
    np.testing.assert_allclose(t.detach().numpy(), values, atol=1e-12)


def test_jacobian():
    x = double(1.0, 2.0)
    same(functional.jacobian(lambda x: x * x, x), [[2, 0], [0, 4]])
    a, b = functional.jacobian(lambda x, y: (x * y).sum(), (x, double(3.0, 4.0)))
    same(a, [3, 4])
    same(b, [1, 2])
    nested = functional.jacobian(lambda x: (x.sum(), x * 3), x)
    same(nested[0], [1, 1])
    same(nested[1], [[3, 0], [0, 3]])


def test_jacobian_can_be_differentiated():
    x = double(1.0, 2.0, grad=True)
    functional.jacobian(lambda x: x**3, x, create_graph=True).sum().backward()
    same(x.grad, [6, 12])


def test_jacobian_refusals():
    x = double(1.0)
    with pytest.raises(RuntimeError, match=r"does not require gradients. The outputs must be computed in a differentiable manner"):
        functional.jacobian(lambda x: torch.ones(1), x, strict=True)
    same(functional.jacobian(lambda x: torch.ones(1, dtype=torch.float64), x), [[0]])
    with pytest.raises(TypeError, match=r"The inputs given to jacobian must be either a Tensor or a tuple of Tensors"):
        functional.jacobian(lambda x: x, 3)
    with pytest.raises(NotImplementedError, match=r"forward-AD"):
        functional.jacobian(lambda x: x, x, strategy="forward-mode")


def test_hessian():
    x = double(1.0, 2.0)
    same(functional.hessian(lambda x: (x**3).sum(), x), [[6, 0], [0, 12]])
    blocks = functional.hessian(lambda x, y: (x * y * y).sum(), (x, double(3.0, 4.0)))
    same(blocks[0][0], np.zeros((2, 2)))
    same(blocks[0][1], [[6, 0], [0, 8]])
    same(blocks[1][1], [[2, 0], [0, 4]])


def test_products_with_vectors():
    x, v = double(1.0, 2.0), double(10.0, 20.0)
    out, product = functional.vjp(lambda x: x * x, x, v)
    same(out, [1, 4])
    same(product, [20, 80])
    same(functional.jvp(lambda x: x * x, x, v)[1], [20, 80])
    same(functional.vhp(lambda x: (x**3).sum(), x, v)[1], [60, 240])
    same(functional.hvp(lambda x: (x**3).sum(), x, v)[1], [60, 240])
    with pytest.raises(RuntimeError, match=r"The vector v can only be None if"):
        functional.jvp(lambda x: x * x, x)
    with pytest.raises(RuntimeError, match=r"v has invalid size"):
        functional.vjp(lambda x: x * x, x, double(1.0))


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3


def test_gradcheck_accepts_right_gradients():
    x = double(0.3, 0.7, grad=True)
    w = double(1.0, -2.0, grad=True)
    for fast in (False, True):
        assert gradcheck(lambda x, w: (x * w).exp(), (x, w), fast_mode=fast)
        assert gradgradcheck(lambda x, w: (x * w).exp(), (x, w), fast_mode=fast)
    assert x.grad is None


def test_gradcheck_of_complex_functions():
    z = torch.tensor([1 + 2j, -0.5j], dtype=torch.complex128, requires_grad=True)
    for fast in (False, True):
        assert gradcheck(lambda z: z * z.conj(), (z,), fast_mode=fast)
        assert gradcheck(lambda z: (z * z).real, (z,), fast_mode=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_finds_wrong_gradients(fast):
    x = double(1.0, 2.0, grad=True)
    with pytest.raises(GradcheckError, match=r"Jacobian mismatch for output 0 with respect to input 0,\nnumerical:"):
        gradcheck(Wrong.apply, (x,), fast_mode=fast)
    assert not gradcheck(Wrong.apply, (x,), fast_mode=fast, raise_exception=False)


def test_gradcheck_shows_both_jacobians():
    with pytest.raises(GradcheckError) as error:
        gradcheck(Wrong.apply, (double(1.0, grad=True),))
    assert "numerical:tensor([[2.0000]], dtype=torch.float64)\nanalytical:tensor([[3.]], dtype=torch.float64)\n" in str(error.value)


def test_gradcheck_finds_noise():
    noise = iter(range(100))

    class Noisy(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2 + next(noise) * 1e-9

    x = double(1.0, grad=True)
    with pytest.raises(GradcheckError, match=r"Backward is not reentrant"):
        gradcheck(Noisy.apply, (x,))


def test_gradcheck_finds_gradients_that_ignore_their_input():
    class Constant(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 0 + 2

    with pytest.raises(GradcheckError, match=r"backward not multiplied by grad_output"):
        gradcheck(Constant.apply, (double(1.0, grad=True),))


def test_gradcheck_refusals():
    with pytest.raises(ValueError, match=r"gradcheck expects at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (double(1.0),))
    with pytest.warns(UserWarning, match=r"not a double precision floating point"):
        gradcheck(lambda x: x * 1, (torch.ones(1, requires_grad=True),), eps=1e-2, atol=1e-2)
    with pytest.raises(AssertionError, match=r"requires check_forward_ad to be True"):
        gradcheck(lambda x: x, (double(1.0, grad=True),), check_batched_forward_grad=True)
