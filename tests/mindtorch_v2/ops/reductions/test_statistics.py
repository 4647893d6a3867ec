"""Moments, norms, covariance, histograms and counts."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mindtorch_v2 as torch

INF, NAN = math.inf, math.nan


class TestMoments:
    def test_signatures(self):
        x = torch.tensor([[1.0, 2.0, 4.0], [0.0, 0.0, 3.0]])
        assert x.var(1).tolist() == pytest.approx([7 / 3, 3.0])
        assert x.var(1, False).tolist() == pytest.approx([14 / 9, 2.0])
        assert x.var(dim=1, correction=0, keepdim=True).shape == (2, 1)
        assert x[1].std(unbiased=False).item() == pytest.approx(math.sqrt(2))
        assert x[0].var(False).item() == pytest.approx(14 / 9)
        assert x[1].var(correction=2).item() == pytest.approx(6.0)
        _, mean = torch.var_mean(x, 1)
        assert mean.tolist() == pytest.approx([7 / 3, 1.0])
        std, mean = torch.std_mean(x)
        assert mean.item() == pytest.approx(10 / 6)
        assert std.item() == pytest.approx(np.std([1, 2, 4, 0, 0, 3], ddof=1))

    def test_far_from_zero(self):
        assert torch.tensor([1e4, 1e4 + 1, 1e4 + 2]).var().item() == pytest.approx(1.0)

    def test_complex(self):
        assert torch.tensor([1 + 1j, 1 - 1j]).var().item() == pytest.approx(2.0)

    def test_too_few_elements_warn(self):
        with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
            assert math.isnan(torch.tensor([1.0]).var().item())

    def test_integers_are_refused(self):
        with pytest.raises(RuntimeError, match="std and var only support floating point"):
            torch.tensor([1, 2]).std()

    def test_gradient_of_std_of_equal_elements_is_zero(self):
        x = torch.ones(3, requires_grad=True)
        x.std().backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]

    @pytest.mark.parametrize(
        "function", [lambda x: x.var(0), lambda x: x.std(), lambda x: torch.var_mean(x, 1), lambda x: torch.std_mean(x, 0)]
    )
    def test_gradients(self, function):
        x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(function, (x,))
        assert torch.autograd.gradgradcheck(function, (x,))


class TestNorms:
    @pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, INF, -INF, -1])
    @pytest.mark.parametrize("dim", [None, 0, 1])
    def test_as_numpy(self, p, dim):
        array = np.random.default_rng(0).standard_normal((5, 6))
        got = torch.linalg.vector_norm(torch.from_numpy(array), p, dim)
        flat = array.reshape(-1) if dim is None else array
        np.testing.assert_allclose(got.numpy(), np.linalg.norm(flat, p, 0 if dim is None else dim))

    def test_norm(self):
        x = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
        assert x.norm().item() == 5.0
        assert x.norm(dim=1, keepdim=True).tolist() == [[5.0], [0.0]]
        assert torch.norm(x, "fro").item() == 5.0
        assert x.norm(1).item() == 7.0
        assert torch.tensor([3.0, 4.0], dtype=torch.float16).norm().dtype is torch.float16
        assert torch.norm(torch.tensor([3 + 4j])).item() == 5.0

    def test_gradient_at_zero_is_zero(self):
        x = torch.zeros(3, requires_grad=True)
        x.norm().backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]

    def test_refusals(self):
        with pytest.raises(RuntimeError, match="the inf norm on an empty tensor"):
            torch.linalg.vector_norm(torch.zeros(0), INF)
        with pytest.raises(RuntimeError, match="Got Long"):
            torch.linalg.vector_norm(torch.tensor([1]))
        with pytest.raises(RuntimeError, match="without narrowing"):
            torch.linalg.vector_norm(torch.ones(2, dtype=torch.float64), dtype=torch.float32)

    def test_renorm(self):
        x = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
        assert x.renorm(2, 0, 1.0).tolist() == [pytest.approx([0.6, 0.8]), pytest.approx([0.3, 0.4])]
        x.renorm_(2, 0, 1.0)
        assert x[0].tolist() == pytest.approx([0.6, 0.8])
        assert torch.dist(torch.zeros(2), torch.tensor([3.0, 4.0])).item() == 5.0


class TestCovariance:
    def test_as_numpy(self):
        array = np.random.default_rng(0).standard_normal((3, 8))
        x = torch.from_numpy(array)
        np.testing.assert_allclose(x.cov().numpy(), np.cov(array))
        np.testing.assert_allclose(x.corrcoef().numpy(), np.corrcoef(array))
        weights, counts = np.arange(1.0, 9.0), np.arange(1, 9)
        got = x.cov(correction=2, fweights=torch.from_numpy(counts), aweights=torch.from_numpy(weights))
        np.testing.assert_allclose(got.numpy(), np.cov(array, ddof=2, fweights=counts, aweights=weights))

    def test_refusals(self):
        with pytest.raises(RuntimeError, match="two or fewer dimensions"):
            torch.ones(2, 2, 2).cov()
        with pytest.raises(RuntimeError, match="fweights cannot be negative"):
            torch.ones(2, 2).cov(fweights=torch.tensor([-1, 1]))


class TestHistograms:
    def test_histc(self):
        x = torch.tensor([0.0, 1.0, 1.0, 2.5, 4.0, 9.0])
        assert torch.histc(x, 4, 0, 4).tolist() == [1.0, 2.0, 1.0, 1.0]
        assert torch.histc(torch.tensor([1.0, 1.0]), 3).tolist() == [0.0, 2.0, 0.0]
        with pytest.raises(RuntimeError, match="is not finite"):
            torch.histc(torch.tensor([1.0, INF]))

    def test_histogram(self):
        x = torch.tensor([1.0, 2.0, 2.5, 3.0])
        hist, edges = torch.histogram(x, 2)
        assert hist.tolist() == [1.0, 3.0]
        assert edges.tolist() == [1.0, 2.0, 3.0]
        hist, _ = torch.histogram(x, torch.tensor([1.0, 2.0, 4.0]), weight=torch.tensor([1.0, 2.0, 3.0, 4.0]), density=True)
        assert hist.tolist() == pytest.approx([0.1, 0.45])
        with pytest.raises(RuntimeError, match="min should not exceed max"):
            torch.histogram(x, 2, range=(2.0, 1.0))

    def test_histogramdd(self):
        points = torch.tensor([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
        hist, edges = torch.histogramdd(points, [2, 2])
        assert hist.tolist() == [[1.0, 0.0], [1.0, 1.0]]
        assert [e.tolist() for e in edges] == [[0.0, 0.5, 1.0]] * 2

    def test_bincount(self):
        x = torch.tensor([1, 3, 1])
        assert x.bincount().tolist() == [0, 2, 0, 1]
        assert x.bincount(torch.tensor([1, 2, 3])).dtype is torch.float64
        assert x.bincount(minlength=6).shape == (6,)
        with pytest.raises(RuntimeError, match="1-d non-negative integral"):
            torch.tensor([-1]).bincount()
