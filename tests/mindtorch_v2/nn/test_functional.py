"""`torch.nn.functional`: its names and signatures, and the functions that are more than one operator."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

RNG = np.random.default_rng(0)


def _t(*shape: int, grad: bool = False) -> torch.Tensor:
    return torch.tensor(RNG.standard_normal(shape), dtype=torch.float64, requires_grad=grad)


# --- embeddings -----------------------------------------------------------------------------------------------------


def test_embedding_rows_and_their_gradient() -> None:
    w = _t(5, 3, grad=True)
    index = torch.tensor([[0, 4], [4, 2]])
    np.testing.assert_array_equal(F.embedding(index, w).detach()._array, w.detach()._array[index._array])
    (g,) = torch.autograd.grad(F.embedding(index, w).sum(), w)
    np.testing.assert_array_equal(g._array[:, 0], [1, 0, 1, 0, 2])
    (g,) = torch.autograd.grad(F.embedding(index, w, padding_idx=-1).sum(), w)
    np.testing.assert_array_equal(g._array[:, 0], [1, 0, 1, 0, 0])
    (g,) = torch.autograd.grad(F.embedding(index, w, scale_grad_by_freq=True).sum(), w)
    np.testing.assert_array_equal(g._array[:, 0], [1, 0, 1, 0, 1])
    assert torch.autograd.gradgradcheck(lambda v: F.embedding(index, v), (w,))


def test_embedding_shortens_long_rows_in_the_table() -> None:
    w = torch.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    F.embedding(torch.tensor([0, 1]), w, max_norm=1.0)
    np.testing.assert_allclose(w._array, [[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]], rtol=1e-6)


def test_embedding_errors() -> None:
    w = torch.ones(3, 2)
    with pytest.raises(IndexError, match="index out of range in self"):
        F.embedding(torch.tensor([3]), w)
    with pytest.raises(AssertionError, match="Padding_idx must be within num_embeddings"):
        F.embedding(torch.tensor([0]), w, padding_idx=3)
    with pytest.raises(RuntimeError, match=r"to have one of the following scalar types: Long, Int; but got torch.FloatTensor"):
        F.embedding(torch.tensor([0.0]), w)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode: str) -> None:
    w = _t(6, 2, grad=True)
    index, offsets = torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 2])
    reduce = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    rows = w.detach()._array
    want = [reduce(rows[[1, 2]], 0), np.zeros(2), reduce(rows[[4, 5, 4, 3]], 0)]
    np.testing.assert_allclose(F.embedding_bag(index, w, offsets, mode=mode).detach()._array, want)
    last = torch.tensor([0, 2, 2, 6])
    np.testing.assert_allclose(F.embedding_bag(index, w, last, mode=mode, include_last_offset=True).detach()._array, want)
    assert torch.autograd.gradcheck(lambda v: F.embedding_bag(index, v, offsets, mode=mode, padding_idx=4), (w,))
    square = index.reshape(2, 3)
    np.testing.assert_allclose(F.embedding_bag(square, w, mode=mode).detach()._array[0], reduce(rows[[1, 2, 4]], 0))


def test_embedding_bag_weighs_samples() -> None:
    w, p = _t(4, 2, grad=True), _t(2, 3, grad=True)
    index = torch.tensor([[0, 1, 1], [3, 2, 0]])
    assert torch.autograd.gradcheck(lambda v, s: F.embedding_bag(index, v, mode="sum", per_sample_weights=s), (w, p))
    with pytest.raises(NotImplementedError, match="only supported for mode='sum'"):
        F.embedding_bag(index, w, per_sample_weights=p)


def test_sparse_gradients_hold_the_rows_that_were_used() -> None:
    w = _t(4, 3, grad=True)
    F.embedding(torch.tensor([1, 2, 1]), w, padding_idx=2, sparse=True).sum().backward()
    assert w.grad.is_sparse
    np.testing.assert_array_equal(w.grad.to_dense()._array[:, 0], [0, 2, 0, 0])
    w.grad = None
    F.embedding_bag(torch.tensor([[1, 2], [1, 0]]), w, mode="mean", sparse=True).sum().backward()
    np.testing.assert_array_equal(w.grad.to_dense()._array[:, 0], [0.5, 1, 0.5, 0])


# --- dropout --------------------------------------------------------------------------------------------------------


def test_dropout_scales_what_it_keeps() -> None:
    torch.manual_seed(0)
    x = torch.ones(10000, requires_grad=True)
    y = F.dropout(x, 0.25)
    kept = y.detach()._array != 0
    assert 0.72 < kept.mean() < 0.78
    np.testing.assert_allclose(y.detach()._array[kept], 4 / 3, rtol=1e-6)
    (g,) = torch.autograd.grad(y.sum(), x)
    np.testing.assert_array_equal(g._array, y.detach()._array)


def test_dropout_edges() -> None:
    x = torch.ones(4)
    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 0.0) is x
    assert F.dropout(x, 1.0).tolist() == [0, 0, 0, 0]
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got 2"):
        F.dropout(x, 2.0)
    y = torch.ones(4)
    assert F.dropout(y, 1.0, inplace=True) is y
    assert y.tolist() == [0, 0, 0, 0]


def test_channels_are_dropped_whole() -> None:
    torch.manual_seed(1)
    y = F.dropout2d(torch.ones(8, 8, 3, 3))._array
    assert {len(np.unique(c)) for c in y.reshape(64, 9)} == {1}
    assert set(np.unique(y)) == {0.0, 2.0}


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    torch.manual_seed(2)
    y = F.alpha_dropout(torch.randn(200000), 0.3, training=True)._array
    assert abs(y.mean()) < 0.02
    assert abs(y.std() - 1) < 0.02


# --- attention ------------------------------------------------------------------------------------------------------


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | float = 0.0) -> np.ndarray:
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]) + mask
    s = np.exp(s - s.max(-1, keepdims=True))
    return s / s.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("dims", [3, 4])  # in blocks with four dimensions, as operators with three
def test_attention(dims: int) -> None:
    lead = (2, 3)[: dims - 2]
    q, k, v = (_t(*lead, n, 4, grad=True) for n in (5, 6, 6))
    a = [t.detach()._array for t in (q, k, v)]
    np.testing.assert_allclose(F.scaled_dot_product_attention(q, k, v).detach()._array, _attention(*a))
    causal = np.triu(np.full((5, 6), -np.inf), 1)
    got = F.scaled_dot_product_attention(q, k, v, is_causal=True).detach()._array
    np.testing.assert_allclose(got, _attention(*a, causal))
    mask = torch.tensor(RNG.random((5, 6)) < 0.7)
    mask[:, 0] = True
    want = _attention(*a, np.where(mask._array, 0, -np.inf))
    np.testing.assert_allclose(F.scaled_dot_product_attention(q, k, v, mask).detach()._array, want)
    assert torch.autograd.gradcheck(lambda x, y, z: F.scaled_dot_product_attention(x, y, z, mask, scale=0.3), (q, k, v))


def test_attention_to_nothing_is_zero() -> None:
    q = _t(1, 1, 2, 4)
    mask = torch.tensor([[False, False], [True, True]])
    for x in (q, q[0]):
        out = F.scaled_dot_product_attention(x, x, x, mask)._array
        assert not out[..., 0, :].any()
        assert np.isfinite(out).all()


def test_attention_with_shared_heads() -> None:
    q, k = _t(2, 6, 3, 4, grad=True), _t(2, 2, 5, 4, grad=True)
    got = F.scaled_dot_product_attention(q, k, k, enable_gqa=True)
    spread = np.repeat(k.detach()._array, 3, axis=1)
    np.testing.assert_allclose(got.detach()._array, _attention(q.detach()._array, spread, spread))
    assert torch.autograd.gradcheck(lambda x, y: F.scaled_dot_product_attention(x, y, y, enable_gqa=True), (q, k))


def test_attention_in_blocks_is_one_node() -> None:
    from mindtorch_v2.nn.attention import SDPBackend, sdpa_kernel

    q = _t(1, 1, 2, 4, grad=True)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        assert F.scaled_dot_product_attention(q, q, q).grad_fn.name() == "ScaledDotProductFlashAttentionForCpuBackward0"


def test_ways_of_attention_can_be_chosen() -> None:
    from mindtorch_v2.nn.attention import SDPBackend, sdpa_kernel

    q = _t(1, 2, 3, 4, grad=True)
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        blocks = F.scaled_dot_product_attention(q, q, q)
    operators = F.scaled_dot_product_attention(q, q, q)
    assert operators.grad_fn.name() == "UnsafeViewBackward0"
    np.testing.assert_allclose(operators.detach()._array, blocks.detach()._array, rtol=1e-5, atol=1e-6)
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION]), pytest.raises(RuntimeError, match="No available kernel"):
        F.scaled_dot_product_attention(q[0], q[0], q[0])
    assert F.scaled_dot_product_attention(q, q, q).grad_fn.name() == operators.grad_fn.name()


def test_multi_head_attention_agrees_with_itself() -> None:
    length, batch, width, heads = 4, 2, 6, 3
    x = _t(length, batch, width)
    w, b, out_w, out_b = _t(3 * width, width), _t(3 * width), _t(width, width), _t(width)

    def attend(q: torch.Tensor, kv: torch.Tensor, **options: object) -> tuple[torch.Tensor, torch.Tensor | None]:
        return F.multi_head_attention_forward(
            q, kv, kv, width, heads, w, b, None, None, False, 0.0, out_w, out_b, training=False, **options
        )

    with_weights, weights = attend(x, x)
    without, none = attend(x, x, need_weights=False)
    assert none is None
    np.testing.assert_allclose(with_weights._array, without._array)
    assert weights.shape == (batch, length, length)
    np.testing.assert_allclose(weights._array.sum(-1), 1)
    np.testing.assert_allclose(attend(x, x.clone())[0]._array, without._array)
    single, _ = attend(x[:, 0], x[:, 0])
    np.testing.assert_allclose(single._array, without._array[:, 0])
    padding = torch.tensor([[False, False, True, True], [False] * 4])
    padded, _ = attend(x, x, key_padding_mask=padding)
    np.testing.assert_allclose(padded._array[:, 0], attend(x[:, :1], x[:2, :1])[0]._array[:, 0])


# --- resampling and pooling -----------------------------------------------------------------------------------------


def test_interpolate() -> None:
    x = torch.tensor([[[0.0, 2.0]]])
    assert F.interpolate(x, scale_factor=2).tolist() == [[[0, 0, 2, 2]]]
    assert F.interpolate(x, 3, mode="linear", align_corners=True).tolist() == [[[0, 1, 2]]]
    assert F.interpolate(torch.ones(1, 1, 4, 4), 2, mode="area").tolist() == [[[[1, 1], [1, 1]]]]
    with pytest.raises(ValueError, match="only one of size or scale_factor should be defined"):
        F.interpolate(x, 2, 2.0)
    with pytest.raises(NotImplementedError, match="Got 3D input, but bilinear mode needs 4D input"):
        F.interpolate(x, 2, mode="bilinear")


def test_pooling_with_indices_and_back() -> None:
    x = torch.tensor([[[1.0, 3.0, 2.0, 0.0]]])
    values, indices = F.max_pool1d(x, 2, return_indices=True)
    assert values.tolist() == [[[3, 2]]]
    assert indices.tolist() == [[[1, 2]]]
    assert F.max_unpool1d(values, indices, 2).tolist() == [[[0, 3, 2, 0]]]
    assert F.adaptive_max_pool1d(x, 1).tolist() == [[[3]]]
    np.testing.assert_allclose(F.lp_pool1d(x, 2, 2)._array, [[[math.sqrt(10), 2]]], rtol=1e-6)


def test_fold_undoes_unfold_without_overlap() -> None:
    x = _t(1, 2, 4, 4)
    columns = F.unfold(x, 2, stride=2)
    assert columns.shape == (1, 8, 4)
    np.testing.assert_array_equal(F.fold(columns, 4, 2, stride=2)._array, x._array)


def test_grid_of_the_identity_reads_the_image() -> None:
    x = _t(1, 1, 3, 3)
    grid = F.affine_grid(torch.tensor([[[1.0, 0, 0], [0, 1, 0]]], dtype=torch.float64), [1, 1, 3, 3], align_corners=False)
    np.testing.assert_allclose(F.grid_sample(x, grid, align_corners=False)._array, x._array)
    with pytest.raises(ValueError, match="expected mode to be 'bilinear', 'nearest' or 'bicubic'"):
        F.grid_sample(x, grid, mode="other", align_corners=False)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match=r"module 'torch.nn.functional' has no attribute 'nothing'"):
        F.nothing  # noqa: B018


def test_grouped_products() -> None:
    a, b = _t(8, 4), _t(2, 4, 3)
    ends = torch.tensor([3, 8], dtype=torch.int32)
    want = np.concatenate([a._array[:3] @ b._array[0], a._array[3:] @ b._array[1]])
    np.testing.assert_allclose(F.grouped_mm(a, b, offs=ends)._array, want)
    with pytest.raises(RuntimeError, match="Have to provide offsets if there is a 2d matrix"):
        F.grouped_mm(a, b)


# --- against torch --------------------------------------------------------------------------------------------------

# of float8 matrix products, which need dtypes that NumPy has not; the rest are annotations
ABSENT = {"ScalingType", "SwizzleType", "assert_int_or_pair", "conv_tbc", "scaled_grouped_mm", "scaled_mm"}


@pytest.mark.parity
def test_public_names_and_signatures() -> None:
    import torch.nn.functional as theirs

    names = {
        n
        for n in dir(theirs)
        if not n.startswith("_")
        and (getattr(getattr(theirs, n), "__module__", None) or "") in ("torch.nn.functional", "torch._C._nn")
    }
    missing = {n for n in names if not hasattr(F, n)}
    assert missing <= ABSENT
    for name in names - missing:
        try:
            want = inspect.signature(getattr(theirs, name))
        except ValueError:  # a builtin
            continue
        if any(p.kind is p.VAR_POSITIONAL for p in want.parameters.values()):
            continue
        got = inspect.signature(getattr(F, name))
        assert list(got.parameters) == list(want.parameters), name
        defaults = {n: p.default for n, p in got.parameters.items()}
        assert defaults == {n: p.default for n, p in want.parameters.items()}, name
