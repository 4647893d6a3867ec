"""Normalisations: moments of their results, running statistics, gradients of both orders, errors."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

RNG = np.random.default_rng(0)


def _t(*shape: int, grad: bool = True) -> torch.Tensor:
    return torch.tensor(RNG.standard_normal(shape) * 2 + 1, dtype=torch.float64, requires_grad=grad)


def _gradients_hold(function: object, *inputs: torch.Tensor) -> None:
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


def test_layer_norm() -> None:
    x, w, b = _t(3, 4, 5), _t(4, 5), _t(4, 5)
    y = F.layer_norm(x, (4, 5)).detach()._array
    np.testing.assert_allclose(y.mean((1, 2)), 0, atol=1e-12)
    np.testing.assert_allclose(y.var((1, 2)), 1, rtol=1e-4)
    got = F.layer_norm(x, (4, 5), w, b).detach()._array
    np.testing.assert_allclose(got, y * w.detach()._array + b.detach()._array)
    _gradients_hold(lambda a, c, d: F.layer_norm(a, (4, 5), c, d), x, w, b)


def test_layer_norm_far_from_zero_keeps_its_digits() -> None:
    x = RNG.standard_normal((8, 64)).astype(np.float32) + 1000
    wide = x.astype(np.float64)
    want = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    np.testing.assert_allclose(F.layer_norm(torch.from_numpy(x), (64,), eps=0.0)._array, want, atol=2e-4)


@pytest.mark.parametrize("shift", [0.0, 50.0])  # by products with whole blocks, and by centring first
@pytest.mark.parametrize("affine", [True, False])
def test_large_layer_norm_and_its_gradients(shift: float, affine: bool) -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((700, 400)) + shift).astype(np.float32)
    w, b, g = (rng.standard_normal(n).astype(np.float32) for n in (400, 400, (700, 400)))
    tensors = [torch.from_numpy(a).requires_grad_() for a in (x, w, b)]
    out = F.layer_norm(tensors[0], (400,), *(tensors[1:] if affine else ()))
    out.backward(torch.from_numpy(g))
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    rstd = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    hat = centred * rstd
    gw = g * w if affine else g
    to_x = rstd * (gw - gw.mean(1, keepdims=True) - hat * (gw * hat).mean(1, keepdims=True))
    near = {"rtol": 1e-4, "atol": 1e-4 if shift else 2e-5}
    np.testing.assert_allclose(out.detach().numpy(), hat * w + b if affine else hat, **near)
    np.testing.assert_allclose(tensors[0].grad.numpy(), to_x, **near)
    if affine:
        np.testing.assert_allclose(tensors[1].grad.numpy(), (g * hat).sum(0), rtol=1e-3, atol=2e-3)
        np.testing.assert_allclose(tensors[2].grad.numpy(), g.sum(0, dtype=np.float64), rtol=1e-3, atol=2e-4)


def test_layer_norm_saves_its_moments() -> None:
    x = _t(3, 4)
    out, mean, rstd = torch.native_layer_norm(x, [4], None, None, 1e-5)
    assert mean.shape == rstd.shape == (3, 1)
    assert out.requires_grad
    assert not mean.requires_grad
    assert out.grad_fn.name() == "NativeLayerNormBackward0"


def test_rms_norm() -> None:
    x, w = _t(3, 6), _t(6)
    y = F.rms_norm(x, (6,)).detach()._array
    np.testing.assert_allclose((y * y).mean(1), 1, rtol=1e-6)
    _gradients_hold(lambda a, c: F.rms_norm(a, (6,), c), x, w)


def test_batch_norm_updates_the_running_statistics() -> None:
    x = _t(4, 3, 5, grad=False)
    mean, var = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    y = F.batch_norm(x, mean, var, training=True, momentum=0.25)._array
    np.testing.assert_allclose(y.mean((0, 2)), 0, atol=1e-12)
    a = x._array
    np.testing.assert_allclose(mean._array, 0.25 * a.mean((0, 2)))
    np.testing.assert_allclose(var._array, 0.75 + 0.25 * a.var((0, 2), ddof=1))
    before = mean._array.copy()
    want = (a - before[:, None]) / np.sqrt(var._array[:, None] + 1e-5)
    np.testing.assert_allclose(F.batch_norm(x, mean, var)._array, want)
    np.testing.assert_array_equal(mean._array, before)


def test_two_forward_passes_may_precede_a_backward_pass() -> None:
    x, mean, var = _t(4, 3), torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    first = F.batch_norm(x, mean, var, training=True)
    F.batch_norm(x, mean, var, training=True)
    first.sum().backward()
    assert mean._version == 0


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 2, 2)])
def test_batch_norm_gradients(training: bool, shape: tuple[int, ...]) -> None:
    mean, var = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64) * 2
    _gradients_hold(lambda a, w, b: F.batch_norm(a, mean, var, w, b, training, 0.0), _t(*shape), _t(3), _t(3))


def test_channels_last_stay_last() -> None:
    x = _t(2, 3, 4, 5, grad=False)
    last = torch.from_numpy(np.ascontiguousarray(np.moveaxis(x._array, 1, -1))).permute(0, 3, 1, 2).requires_grad_()
    x.requires_grad_()
    w = _t(3, grad=False)
    y, z = (F.batch_norm(t, None, None, w, w, True) for t in (x, last))
    assert z.stride() == last.stride()
    np.testing.assert_allclose(z.detach()._array, y.detach()._array)
    weights = _t(2, 3, 4, 5, grad=False)
    (a,), (b,) = torch.autograd.grad((y * weights).sum(), x), torch.autograd.grad((z * weights).sum(), last)
    np.testing.assert_allclose(b._array, a._array, atol=1e-12)


def test_batch_norm_of_half_precision_has_statistics_of_its_parameters() -> None:
    x = torch.tensor(RNG.standard_normal((8, 3)), dtype=torch.bfloat16)
    w = torch.ones(3)
    out, mean, _ = torch.native_batch_norm(x, w, None, None, None, True, 0.1, 1e-5)
    assert out.dtype is torch.bfloat16
    assert mean.dtype is torch.float32


def test_group_and_instance_norm() -> None:
    x, w, b = _t(2, 4, 3), _t(4), _t(4)
    y = F.group_norm(x, 2).detach()._array.reshape(2, 2, 6)
    np.testing.assert_allclose(y.mean(2), 0, atol=1e-12)
    np.testing.assert_allclose(y.var(2), 1, rtol=1e-4)
    _gradients_hold(lambda a, c, d: F.group_norm(a, 2, c, d), x, w, b)
    z = F.instance_norm(x).detach()._array
    np.testing.assert_allclose(z.mean(2), 0, atol=1e-12)
    np.testing.assert_allclose(z, F.group_norm(x, 4).detach()._array)
    _gradients_hold(lambda a, c, d: F.instance_norm(a, weight=c, bias=d), x, w, b)


def test_gradients_of_the_moments_of_a_group() -> None:
    x = _t(2, 4, 3)
    _gradients_hold(lambda a: torch.native_group_norm(a, None, None, 2, 4, 3, 2, 1e-5)[1:], x)


def test_local_response_norm() -> None:
    x = torch.ones(1, 4, 2)
    got = F.local_response_norm(x, 3, alpha=3.0, beta=1.0, k=1.0)._array[0, :, 0]
    np.testing.assert_allclose(got, [1 / 3, 1 / 4, 1 / 4, 1 / 3])


def test_normalize() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(F.normalize(x)._array, [[0.6, 0.8], [0, 0]])
    out = torch.empty(2, 2)
    assert F.normalize(x, out=out) is out
    np.testing.assert_allclose(out._array, [[0.6, 0.8], [0, 0]])


def test_no_samples() -> None:
    assert F.layer_norm(torch.empty(0, 4), (4,)).shape == (0, 4)
    assert F.batch_norm(torch.empty(0, 3), None, None, training=True).shape == (0, 3)
    assert F.group_norm(torch.empty(0, 4, 2), 2).shape == (0, 4, 2)


ERRORS = [
    (
        lambda: F.layer_norm(torch.ones(4, 6), (5,)),
        RuntimeError,
        r"Given normalized_shape=\[5\], expected input with shape \[\*, 5\]",
    ),
    (lambda: F.layer_norm(torch.ones(4, 6), ()), RuntimeError, "Expected normalized_shape to be at least 1-dimensional"),
    (
        lambda: F.layer_norm(torch.ones(4, 6), (6,), torch.ones(5)),
        RuntimeError,
        "Expected weight to be of same shape as normalized_shape",
    ),
    (
        lambda: F.batch_norm(torch.ones(1, 6), None, None, training=True),
        ValueError,
        "Expected more than 1 value per channel when training",
    ),
    (lambda: F.batch_norm(torch.ones(4, 6), None, None), RuntimeError, "running_mean must be defined in evaluation mode"),
    (
        lambda: F.batch_norm(torch.ones(4, 5), torch.ones(6), torch.ones(6)),
        RuntimeError,
        "running_mean should contain 5 elements not 6",
    ),
    (lambda: F.group_norm(torch.ones(4, 6), 4), RuntimeError, "number of channels in input to be divisible by num_groups"),
    (lambda: F.instance_norm(torch.ones(1, 2, 1)), ValueError, "Expected more than 1 spatial element when training"),
    (lambda: F.layer_norm(torch.ones(2, 2, dtype=torch.int64), (2,)), NotImplementedError, '"LayerNormKernelImpl" not implemented'),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS)
def test_errors(call: object, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("shift", [0.0, 50.0])  # by a factor and a term for each channel, and by centring first
def test_group_norm_of_large_images(shift: float) -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((4, 6, 60, 60)) + shift).astype(np.float32)
    w, b = (rng.standard_normal(6).astype(np.float32) for _ in range(2))
    wide = x.astype(np.float64).reshape(4, 2, -1)
    hat = (wide - wide.mean(2, keepdims=True)) / np.sqrt(wide.var(2, keepdims=True) + 1e-5)
    want = hat.reshape(x.shape) * w[:, None, None] + b[:, None, None]
    got = F.group_norm(torch.from_numpy(x), 2, torch.from_numpy(w), torch.from_numpy(b)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 if shift else 1e-5)


def test_batch_norm_of_nothing():
    out = torch.nn.functional.batch_norm(torch.empty(0), torch.empty(0), torch.empty(0), training=True)
    assert out.shape == (0,)
    assert torch.nn.functional.batch_norm(torch.empty(0, 3), None, None, torch.ones(3), torch.ones(3), training=True).shape == (
        0,
        3,
    )


class TestMomentsOfGroups:
    """Gradients of what `native_group_norm` returns beside its result."""

    @staticmethod
    def inputs(weighted):
        torch.manual_seed(0)
        shapes = [(2, 4, 3), (4,), (4,)] if weighted else [(2, 4, 3)]
        return [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]

    @pytest.mark.parametrize("weighted", [True, False])
    # torch: None for one moment without the other, and no part of it where the first result has a gradient too
    @pytest.mark.parametrize("which", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
    def test_first_and_second(self, which, weighted):
        def call(x, weight=None, bias=None):
            results = torch.native_group_norm(x, weight, bias, 2, 4, 3, 2, 1e-5)
            return tuple(results[i] for i in which)

        given = self.inputs(weighted)
        assert torch.autograd.gradcheck(call, given)
        assert torch.autograd.gradgradcheck(call, given)

    def test_a_bias_without_a_weight(self):
        x, bias = self.inputs(True)[:2]
        out, mean, _ = torch.native_group_norm(x, None, bias, 2, 4, 3, 2, 1e-5)
        grads = torch.autograd.grad(out.sum() + mean.sum(), (x, bias))
        assert grads[1].tolist() == [6.0] * 4
        np.testing.assert_allclose(grads[0].numpy(), np.full((2, 4, 3), 1 / 6), atol=1e-12)
