"""Running sums, products and extrema; differences and the trapezoid rule."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mindtorch_v2 as torch

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("shape", [(7,), (3, 4), (50, 100), (4, 30, 80)])
@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_cumsum_as_numpy(shape, dim, dtype):
    array = np.random.default_rng(0).integers(-5, 9, shape).astype(dtype)
    got = torch.from_numpy(array).cumsum(dim)
    np.testing.assert_allclose(got.numpy(), array.cumsum(dim, dtype=np.float64))
    assert got.dtype is (torch.int64 if dtype is np.int32 else torch.from_numpy(array).dtype)
    assert got.is_contiguous()


def test_float32_is_accumulated_in_float64():
    x = torch.full((1 << 20,), 0.1)
    assert x.cumsum(0)[-1].item() == pytest.approx(float(np.float32(0.1)) * (1 << 20), rel=1e-7)


def test_dtypes():
    assert torch.tensor([True, True]).cumsum(0).tolist() == [1, 2]
    assert torch.ones(3, dtype=torch.bfloat16).cumsum(0, dtype=torch.float32).dtype is torch.float32
    assert torch.tensor([2, 3], dtype=torch.int8).cumprod(0).dtype is torch.int64
    x = torch.ones(3)
    assert x.cumsum_(0) is x
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_cummax_keeps_the_last_of_equals_and_nan():
    values, indices = torch.tensor([1.0, 3.0, 3.0, 2.0, NAN, 4.0]).cummax(0)
    assert indices.tolist() == [0, 1, 2, 2, 4, 4]
    assert values.tolist()[:4] == [1.0, 3.0, 3.0, 3.0]
    assert math.isnan(values[5].item())
    assert torch.tensor([[2, 1], [1, 5]]).cummin(0).values.tolist() == [[2, 1], [1, 1]]


def test_logcumsumexp():
    x = torch.tensor([0.0, 0.0, -INF, 1000.0])
    assert x.logcumsumexp(0).tolist() == pytest.approx([0.0, math.log(2), math.log(2), 1000.0])


def test_logcumsumexp_of_infinite_complex_numbers():
    """The real part stays infinite; the angle is that between two infinite numbers, where they do not cancel."""
    x = torch.tensor([complex(math.inf, 0), complex(math.inf, 1), complex(math.inf, 3)])
    found = x.logcumsumexp(0)
    assert found.real.tolist() == [math.inf] * 3
    assert found.imag.tolist()[:2] == pytest.approx([0, math.pi / 4])
    assert math.isnan(found.imag[2])
    assert x.reshape(3, 1).logcumsumexp(0).real.tolist() == [[math.inf]] * 3


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "sum", "prod"])
def test_out_has_the_dtype_that_is_asked_for(name):
    function, x = getattr(torch, name), torch.ones(3, dtype=torch.int32)
    out = torch.empty(() if name in ("sum", "prod") else 3, dtype=torch.float64)
    assert function(x, 0, out=out).dtype is torch.float64
    assert function(x, 0, out=out, dtype=torch.float64) is out
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype int, but got double instead"):
        function(x, 0, out=out, dtype=torch.int32)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles_into_another_dtype(name):
    with pytest.raises(RuntimeError, match=r"quantile\(\) out tensor must be same dtype as the input tensor"):
        getattr(torch, name)(torch.ones(1), 0.5, out=torch.empty((), dtype=torch.int32))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
@pytest.mark.parametrize("values", [[1.0, 2.0, -3.0, 4.0], [1.0, 0.0, 2.0, 3.0], [0.0, 2.0, 0.0, 5.0]])
def test_gradients(name, values):
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: getattr(t, name)(0), (x,))
    assert torch.autograd.gradgradcheck(lambda t: getattr(t, name)(0), (x,))


class TestDifferences:
    def test_diff(self):
        x = torch.tensor([1, 4, 9, 16])
        assert x.diff().tolist() == [3, 5, 7]
        assert x.diff(n=2).tolist() == [2, 2]
        assert x.diff(n=9).tolist() == []
        assert x.diff(prepend=torch.tensor([0]), append=torch.tensor([25])).tolist() == [1, 3, 5, 7, 9]
        assert torch.tensor([True, False, False]).diff().tolist() == [True, False]
        with pytest.raises(RuntimeError, match="at least one-dimensional"):
            torch.tensor(1).diff()

    @pytest.mark.parametrize("edge_order", [1, 2])
    def test_gradient_as_numpy(self, edge_order):
        array = np.random.default_rng(0).random((4, 5))
        x = torch.from_numpy(array)
        for got, want in zip(torch.gradient(x, edge_order=edge_order), np.gradient(array, edge_order=edge_order), strict=True):
            np.testing.assert_allclose(got.numpy(), want)
        points = np.array([0.0, 1.0, 1.5, 4.0, 4.25])
        (got,) = torch.gradient(x, spacing=[torch.from_numpy(points)], dim=1, edge_order=edge_order)
        np.testing.assert_allclose(got.numpy(), np.gradient(array, points, axis=1, edge_order=edge_order))
        got = torch.gradient(x, spacing=[2.0, 0.5], edge_order=edge_order)
        np.testing.assert_allclose(got[1].numpy(), np.gradient(array, 0.5, axis=1, edge_order=edge_order))

    def test_trapezoid(self):
        y = torch.tensor([1.0, 3.0, 2.0])
        assert torch.trapezoid(y).item() == 4.5
        assert torch.trapezoid(y, torch.tensor([0.0, 2.0, 3.0])).item() == 6.5
        assert torch.cumulative_trapezoid(y, dx=2).tolist() == [4.0, 9.0]
        assert torch.trapz(torch.ones(3, 4), dim=0).tolist() == [2.0] * 4
        with pytest.raises(RuntimeError, match="There must be one `x` value for each sample point"):
            torch.trapezoid(y, torch.tensor([0.0, 1.0]))


class TestDistances:
    @pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, INF])
    def test_cdist_and_pdist(self, p):
        a, b = np.random.default_rng(0).random((4, 3)), np.random.default_rng(1).random((5, 3))
        difference = np.abs(a[:, None] - b[None])
        want = {0.0: (difference != 0).sum(-1), INF: difference.max(-1)}.get(p)
        if want is None:
            want = (difference**p).sum(-1) ** (1 / p)
        x = torch.from_numpy(a).requires_grad_()
        y = torch.from_numpy(b).requires_grad_()
        np.testing.assert_allclose(torch.cdist(x, y, p).detach().numpy(), want)
        assert torch.autograd.gradcheck(lambda s, t: torch.cdist(s, t, p), (x, y))
        rows, columns = np.triu_indices(4, 1)
        full = torch.cdist(x, x, p).detach().numpy()
        np.testing.assert_allclose(torch.pdist(x, p).detach().numpy(), full[rows, columns])

    def test_many_rows_go_through_a_matrix_product(self):
        x = torch.randn(40, 3, dtype=torch.float64)
        by_product = torch.cdist(x, x[:30])
        one_by_one = torch.cdist(x, x[:30], compute_mode="donot_use_mm_for_euclid_dist")
        np.testing.assert_allclose(by_product.numpy(), one_by_one.numpy(), atol=1e-6)

    def test_batches_broadcast(self):
        assert torch.cdist(torch.ones(2, 1, 4, 3), torch.zeros(5, 6, 3)).shape == (2, 5, 4, 6)
        with pytest.raises(RuntimeError, match=r"same number of columns\. X1: 3 X2: 2"):
            torch.cdist(torch.ones(2, 3), torch.ones(2, 2))


def test_running_sums_of_many_numbers() -> None:
    x = np.random.default_rng(0).standard_normal((64, 1000)).astype(np.float32)
    x[3, 5], x[7, 9] = np.inf, np.nan
    want = np.cumsum(x, 1, dtype=np.float64)
    np.testing.assert_allclose(torch.from_numpy(x).cumsum(1).numpy(), want, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    "values", [[0, 2, 3, 4], [2, 0, 3, 4], [2, 3, 0, 0], [0, 0, 2, 3], [2, 0, 3, 0], [2, 3, 4, 5], [0, 0, 0, 0]]
)
@pytest.mark.parametrize("dim", [0, 1])
def test_gradients_of_products_with_zeros(values, dim):
    x = torch.tensor([values, [1, 2, 3, 4]], dtype=torch.float64)
    x = (x if dim else x.t()).contiguous().requires_grad_()
    weights = torch.arange(1.0, 9.0, dtype=torch.float64).reshape(x.shape)
    y = x.cumprod(dim)
    (once,) = torch.autograd.grad(y, x, weights, retain_graph=True)
    (again,) = torch.autograd.grad(y, x, weights, create_graph=True)

    def omitting(row, w):
        return [sum(w[i] * np.prod([row[j] for j in range(i + 1) if j != k]) for i in range(k, len(row))) for k in range(len(row))]

    rows, ws = (t.detach().numpy() if dim else t.detach().numpy().T for t in (x, weights))
    want = np.array([omitting(row, w) for row, w in zip(rows, ws, strict=True)])
    for got in (once, again.detach()):
        np.testing.assert_allclose(got.numpy() if dim else got.numpy().T, want)
