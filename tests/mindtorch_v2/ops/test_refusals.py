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
    ("call", "error", "text"),
    [
        (lambda: torch.ones(3).clamp_(COMPLEX), RuntimeError, "ComplexFloat can't be cast to the desired output type Float"),
        (lambda: torch.mv(torch.tensor(1.0), torch.ones(3)), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
        (lambda: torch.addmv(torch.tensor(1.0), torch.ones(2, 3), torch.ones(4)), IndexError, "tensor has no dimensions"),
        (lambda: torch.tensor(1.0).addmv_(torch.ones(0, 3), torch.ones(3)), RuntimeError, "Bad in-place call"),
        (lambda: torch.bmm(BOOLS.view(1, 1, 3), torch.ones(1, 3, 1)), NotImplementedError, "\"bmm\" not implemented for 'Bool'"),
        (lambda: torch.addmm(BOOLS.view(1, 3), BOOLS.new_ones(1, 0), BOOLS.new_ones(0, 3)), RuntimeError, "Long can't be cast"),
        (lambda: torch.scalar_tensor(float("inf"), dtype=torch.int64), RuntimeError, "int64_t without overflow"),
        (lambda: torch.ones(3).index_fill(0, torch.tensor([0]), 1j), RuntimeError, "Converting complex Scalar"),
        (lambda: torch.ones(3).put(torch.tensor([0]), torch.ones(2)), IndexError, "same number of elements"),
        (
            lambda: torch.ones(2, 2).index_add(1, torch.tensor([0]), torch.tensor(1.0)),
            RuntimeError,
            "Indexing dim 1 is out of bounds",
        ),
        (lambda: torch.ones(2, 5).index_put((torch.tensor([0]),), torch.ones(1, 1, 5)), RuntimeError, r"of shape \[1, 1, 5\]"),
        (lambda: torch.ones(1).masked_scatter_(torch.ones(1, 1).bool(), torch.ones(1)), RuntimeError, "expand"),
        (lambda: F.scaled_dot_product_attention(*[torch.ones(1, 1, 2, 2)] * 3, attn_mask=torch.tensor(1.0)), IndexError, "as -2"),
    ],
)
def test_arguments_that_do_not_fit(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_products_without_terms_take_any_dtype():
    assert torch.mm(BOOLS.new_ones(2, 0), BOOLS.new_ones(0, 3)).tolist() == [[False] * 3] * 2
    assert torch.bmm(BOOLS.new_ones(0, 2, 3), torch.ones(0, 3, 2)).dtype is torch.float32
    assert torch.addmv(torch.tensor(2.0), torch.ones(0, 3), torch.ones(3), beta=3).tolist() == 6.0


def test_a_bias_of_two_dimensions_is_added_to_one_row():
    assert F.linear(torch.ones(3), torch.ones(4, 3), torch.ones(1, 4)).tolist() == [4.0] * 4


def test_attention_to_no_values_is_zero():
    assert F.scaled_dot_product_attention(torch.ones(4, 3, 8), torch.ones(4, 6, 8), torch.ones(0, 6, 8)).eq(0).all()


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


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.ones(2).bool().cumsum_(0), NotImplementedError, "\"cumsum_out_cpu\" not implemented for 'Bool'"),
        (lambda: torch.ones(2).cumsum_(0, dtype=torch.float64), RuntimeError, "Bad in-place call: input tensor dtype float"),
        (lambda: torch.trapezoid(torch.tensor(1.0)), IndexError, "Dimension specified as -1"),
        (lambda: torch.trapezoid(torch.ones(6), torch.ones(1, 6)), RuntimeError, r"size of tensor a \(5\)"),
        (lambda: torch.rot90(torch.ones(2, 2), 1, [9, 1]), IndexError, "Dimension out of range"),
        (lambda: torch.ones(0, 3).index_select(0, torch.tensor([0])), RuntimeError, "axis dim should be positive"),
        (lambda: F.embedding_bag(torch.tensor([0, 1]), torch.ones(2, 2), torch.tensor([0, 2, 1])), RuntimeError, "not decrease"),
        (lambda: torch.max_pool1d(torch.ones(1, 2, 3).long(), 2), NotImplementedError, "\"max_pool1d_impl\".*'Long'"),
        (
            lambda: torch.grid_sampler(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 2), 9, 0, False),
            RuntimeError,
            "interpolation_mode",
        ),
        (lambda: torch.segment_reduce(torch.ones(3), "max", lengths=torch.ones(3)), NotImplementedError, "_segment_reduce_lengths"),
        (lambda: torch.linspace(0, 1, 3, dtype=torch.bool), NotImplementedError, "\"linspace_cpu\" not implemented for 'Bool'"),
        (lambda: torch.instance_norm(torch.tensor(1.0), *[None] * 4, True, 0.1, 0.1, False), IndexError, "no dimensions"),
        (lambda: torch.native_batch_norm(torch.ones(0, 2), *[None] * 4, True, 0.1, 0.1), RuntimeError, "at least one element"),
        (lambda: torch.group_norm(torch.ones(3), 1), IndexError, "Dimension out of range"),
        (lambda: F.rms_norm(torch.tensor(1.0), (1,)), ValueError, "at least 1 dimensions, but got 0"),
        (lambda: torch.lu_unpack(torch.ones(3, 3), torch.ones(2, dtype=torch.int32)), RuntimeError, r"LU_pivots of size \[3\]"),
        (lambda: torch.addr(BOOLS[None], BOOLS[:1], BOOLS, beta=0.5), RuntimeError, "beta must not be a floating point"),
        (lambda: F.pad(torch.tensor(1.0), (1, 1), "reflect"), RuntimeError, "two times the input dimension"),
        (lambda: torch.hash_tensor(torch.ones(0)), RuntimeError, "Expected reduction dim to be specified"),
        (lambda: torch.gru_cell(torch.ones(2, 4), torch.ones(2, 3), torch.ones(9, 4), torch.tensor(1.0)), IndexError, "as 1 but"),
    ],
)
def test_arguments_of_single_operators(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.ones(3).addcmul_(torch.ones(2), torch.ones(4)), r"The size of tensor a \(\d\) must match"),
        (lambda: torch.ones(4).view(-9, 2), r"invalid shape dimension -9 at index 0 of shape \[-9, 2\]"),
        (lambda: F.conv1d(COMPLEX.view(1, 1, 3), torch.ones(1, 1, 1), padding="valid"), "Input type .CPUComplexFloatType."),
        (lambda: torch._foreach_add([torch.ones(2)], []), "must have same number of elements as scalar list"),
        (lambda: F.max_unpool2d(torch.ones(1, 1, 1), torch.zeros(1, 1, 1).long(), 1, output_size=(-1, 1)), "output_size|negative"),
        (lambda: F.conv2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 3, 3)), "Kernel size can't be greater than actual input size"),
        (lambda: torch.binomial(torch.ones(3), torch.ones(2)), r"The size of tensor a \(3\) must match"),
    ],
)
def test_texts_name_what_does_not_fit(call, text):
    with pytest.raises((RuntimeError, ValueError), match=text):
        call()


@pytest.mark.parametrize("name", ["cumsum_", "cumprod_"])
def test_running_sums_in_place_keep_the_dtype(name):
    assert getattr(torch.tensor([100, 100], dtype=torch.int8), name)(0).dtype is torch.int8
    assert getattr(torch.tensor(True), name)(0).tolist() is True


def test_what_has_no_elements_is_of_any_dtype():
    empty = torch.empty(0, 0, dtype=torch.bool)
    assert torch.softmax(empty, 0).dtype is torch.bool
    assert torch.linalg.eigh(empty).eigenvectors.dtype is torch.bool
    assert torch.linalg.lu_factor(empty).pivots.dtype is torch.int32
    assert torch.cdist(torch.empty(0, 2), torch.ones(3, 2).double()).dtype is torch.float32
    assert torch.empty(0).repeat(-2).shape == (0,)


def test_running_statistics_of_another_dtype():
    mean, var = torch.zeros(1, dtype=torch.int64), torch.ones(1, dtype=torch.float64)
    torch.instance_norm(torch.tensor([[[1.0, 5.0]]]), None, None, mean, var, True, 1.0, 0.0, False)
    assert mean.tolist() == [3]
    assert var.tolist() == [8.0]


def test_weights_of_channels_may_have_more_dimensions():
    x = torch.tensor([[1.0], [3.0]])
    out = torch.batch_norm(x, torch.full((1, 1), 2.0), None, None, None, True, 0.1, 0.0, False)
    assert out.tolist() == [[-2.0], [2.0]]


def test_bags_of_two_integer_dtypes():
    weight = torch.tensor([[1.0], [2.0], [4.0]])
    assert F.embedding_bag(torch.tensor([0, 2], dtype=torch.int32), weight, torch.tensor([0]), mode="sum").tolist() == [[5.0]]
    assert torch.embedding_bag(weight, torch.tensor([0, 2]), torch.tensor([], dtype=torch.int64))[0].shape == (0, 1)


def test_combinations_of_more_than_a_numpy_array_has_dimensions():
    assert torch.combinations(torch.tensor([7.0]), 70, True).tolist() == [[7.0] * 70]
    assert torch.combinations(torch.tensor([7.0]), 70).shape == (0, 70)


def test_the_exponential_of_a_large_matrix_keeps_its_digits():
    # of a Jordan block: e**9 times the powers' coefficients
    block = torch.tensor([[9.0, 1.0], [0.0, 9.0]], dtype=torch.float64)
    e9 = 8103.083927575384
    assert torch.linalg.matrix_exp(block).flatten().tolist() == pytest.approx([e9, e9, 0.0, e9], rel=1e-14)


def test_complex_convolutions_are_made_of_real_ones():
    x = torch.tensor([[[1 + 2j, 3 - 1j]]])
    w = torch.tensor([[[2 - 1j]]])
    assert F.conv1d(x, w, torch.tensor([1j])).flatten().tolist() == pytest.approx([4 + 4j, 5 - 4j])
    with pytest.raises(NotImplementedError, match="slow_conv2d_cpu"):
        torch.convolution(x, w, None, [1], [0], [1], False, [0], 1)
