"""Broadcasting: values, gradients and errors, against NumPy's rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mindtorch_v2 as torch

shapes = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4)


def filled(shape):
    return np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.float64).reshape(shape)


@given(shapes)
def test_values(pair):
    a, b = (filled(s) for s in pair.input_shapes)
    result = torch.from_numpy(a) * torch.from_numpy(b)
    assert tuple(result.shape) == pair.result_shape
    np.testing.assert_array_equal(result.numpy(), a * b)


@given(shapes)
def test_gradients_are_summed_to_the_operands_shapes(pair):
    a, b = (torch.from_numpy(filled(s)).requires_grad_() for s in pair.input_shapes)
    (a * b).sum().backward()
    whole_a, whole_b = (np.broadcast_to(x.detach().numpy(), pair.result_shape) for x in (a, b))
    np.testing.assert_allclose(a.grad.numpy(), reduced(whole_b, a.shape))
    np.testing.assert_allclose(b.grad.numpy(), reduced(whole_a, b.shape))


def reduced(x, shape):
    """Sum over what broadcasting added to a shape."""
    lead = x.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1 and x.shape[i + lead] != 1)
    return x.sum(axes).reshape(shape)


@given(shapes)
def test_broadcast_shapes_and_tensors_agree(pair):
    made = torch.broadcast_tensors(*(torch.from_numpy(filled(s)) for s in pair.input_shapes))
    assert all(tuple(t.shape) == pair.result_shape for t in made)
    assert tuple(torch.broadcast_shapes(*pair.input_shapes)) == pair.result_shape


@given(st.integers(2, 5), st.integers(2, 5))
def test_sizes_that_differ_are_named(n, m):
    if n == m:
        m += 1
    with pytest.raises(
        RuntimeError, match=rf"size of tensor a \({n}\) must match the size of tensor b \({m}\) at non-singleton dimension 1"
    ):
        torch.ones(1, n) + torch.ones(1, m)


def test_in_place_never_grows_its_target():
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
        x.add_(torch.ones(2, 3))
    assert x.tolist() == [1.0, 1.0, 1.0]
