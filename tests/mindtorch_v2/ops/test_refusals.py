"""Arguments that operators refuse, with torch's type of error; and neighbours of these that they take."""

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

COMPLEX = torch.ones(3, dtype=torch.complex64)
BOOLS = torch.ones(3, dtype=torch.bool)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.maximum(COMPLEX, COMPLEX), RuntimeError, "maximum not implemented for complex tensors"),
        (lambda: torch.fmin(COMPLEX, COMPLEX), RuntimeError, "fmin not implemented for complex tensors"),
        (lambda: torch.bitwise_left_shift(torch.ones(3), torch.ones(3)), NotImplementedError, "\"lshift_cpu\".*'Float'"),
        (lambda: F.threshold(BOOLS, 0, 1, inplace=True), NotImplementedError, "\"threshold_cpu\".*'Bool'"),
        (lambda: F.rrelu(COMPLEX, training=True), NotImplementedError, "rrelu_with_noise_out_cpu"),
        (lambda: torch.bernoulli(torch.ones(3, dtype=torch.int64)), NotImplementedError, "bernoulli_tensor_cpu_p_"),
        (lambda: torch.isin(BOOLS, BOOLS), RuntimeError, r"isin\(\): Bool"),
        (lambda: torch.searchsorted(BOOLS, BOOLS), NotImplementedError, "searchsorted_out_cpu"),
        (lambda: torch.clamp(BOOLS, BOOLS, BOOLS), NotImplementedError, "clamp_cpu"),
        (lambda: torch.kl_div(torch.ones(3), torch.ones(3, dtype=torch.int64)), RuntimeError, "Integral inputs not supported"),
        (lambda: torch.cosine_similarity(COMPLEX, COMPLEX, 0), RuntimeError, "common dtype is ComplexFloat"),
        (lambda: F.conv2d(torch.ones(1, 1, 3, 3).bool(), torch.ones(1, 1, 2, 2).bool()), NotImplementedError, "slow_conv2d_cpu"),
        (lambda: F.embedding_bag(torch.tensor([[0]]), torch.ones(2, 2).bool()), RuntimeError, "scalar types"),
        (lambda: F.rms_norm(BOOLS, (3,)), NotImplementedError, "\"rms_norm\".*'Bool'"),
        (lambda: torch.tensor([1j]).deg2rad_(), RuntimeError, "deg2rad is not supported for complex tensors"),
        (lambda: COMPLEX.clone().random_(3), RuntimeError, "integral, floating-point and boolean"),
    ],
)
def test_kinds_of_dtype(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.huber_loss(torch.ones(3).long(), torch.ones(3)), "can't be cast to the desired output type Long"),
        (lambda: torch.linalg.vecdot(torch.ones(2, 3), torch.ones(2, 3).double()), "same dtype"),
        (lambda: F.bilinear(torch.ones(2), torch.ones(2), torch.ones(1, 2, 2), torch.ones(1).double()), "same dtype"),
        (lambda: torch.histogram(torch.ones(3), torch.tensor([0.0, 1.0]).double()), "same dtype"),
        (lambda: F.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2), torch.ones(1).double()), "bias type"),
    ],
)
def test_mixed_dtypes(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


@pytest.mark.parametrize("name", ["copy_", "floor_divide_", "remainder_", "pow_", "xlogy_"])
def test_a_leading_dimension_of_one_is_not_dropped_in_place(name):
    with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match the broadcast shape \[1, 2\]"):
        getattr(torch.ones(2), name)(torch.ones(1, 2))


@pytest.mark.parametrize("name", ["addcmul_", "addcdiv_"])
def test_shapes_that_do_not_broadcast_in_place(name):
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        getattr(torch.ones(3), name)(torch.ones(2), torch.ones(2))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: torch.baddbmm(torch.ones(1), torch.tensor(1.0), torch.ones(1, 1, 1)), IndexError),
        (lambda: torch.ops.aten.slice(torch.tensor(1.0), 0, 0, 1), IndexError),
        (lambda: F.nll_loss(torch.ones(2, 3), torch.tensor(1)), ValueError),
        (lambda: torch.ones(2).index_fill_(0, torch.zeros(1, 1).long(), 0), RuntimeError),
        (lambda: torch.cdist(torch.ones(2, 2), torch.ones(2, 2), compute_mode="fast"), ValueError),
        (lambda: torch.fft.fftfreq(-3), RuntimeError),
        (lambda: torch._foreach_norm([]), RuntimeError),
        (lambda: torch._foreach_mm([torch.ones(1, 1)], []), RuntimeError),
        (lambda: torch.rnn_tanh_cell(torch.ones(2, 3), torch.ones(1, 3), torch.ones(3, 3), torch.ones(3, 3)), RuntimeError),
    ],
)
def test_shapes_and_sizes(call, error):
    with pytest.raises(error):
        call()


def test_what_is_taken():
    """Beside the refusals: these were refused, or answered wrongly, before."""
    assert torch.equal(torch.tensor([1.0, 2.0]), torch.tensor([1, 2]))
    assert not torch.equal(torch.tensor([0.1]), torch.tensor([0.1], dtype=torch.float64))
    assert torch.searchsorted(torch.tensor([1, 2, 3]), 1.5).item() == 1
    assert torch.avg_pool1d(torch.tensor([[[-3, -2]]]), 2).item() == -2  # -5 / 2, towards zero
    assert torch.tensor(2.0).mT.item() == 2.0
    assert torch.tensor(2 + 1j).adjoint().item() == 2 - 1j
    assert F.nll_loss(torch.tensor([0.5, 2.0]), torch.tensor([1])).item() == -2.0
    assert F.huber_loss(torch.zeros(2), torch.ones(2).double()).dtype is torch.float32
    assert F.hardtanh(torch.tensor([3, -3]), -1.5, 1.5, inplace=True).tolist() == [1, -1]
    z = torch.tensor([1 + 2j])
    assert torch.allclose(F.silu(z), z * torch.sigmoid(z))
    out = F.conv3d(torch.ones(0, 1, 2, 2, 2), torch.ones(1, 1, 1, 1, 1))
    assert out.shape == (0, 1, 2, 2, 2)
