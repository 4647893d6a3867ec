"""Convolutions of all layouts that kernels choose between: values and both gradients are torch's."""

import contextlib
import itertools

import numpy as np
import pytest
import torch

import mindtorch_v2 as mt
from mindtorch_v2._backends.cpu.nn import convolution

pytestmark = pytest.mark.parity

SHAPES = {  # channels, results, groups, extents, kernel
    "few positions": (6, 7, 1, (3, 4), (3, 3)),
    "many positions": (3, 4, 1, (40, 33), (3, 3)),
    "one long row": (3, 4, 1, (1, 1600), (1, 5)),
    "many results": (4, 140, 1, (5, 6), (3, 3)),
    "rows of channels": (20, 6, 1, (7, 8), (3, 2)),
    "wide groups": (8, 12, 4, (9, 8), (3, 3)),
    "points": (5, 6, 1, (9, 8), (1, 1)),
    "points with many channels": (40, 70, 1, (2, 2), (1, 1)),
    "points of groups": (40, 70, 10, (2, 3), (1, 1)),
    "depthwise, small": (20, 20, 20, (5, 6), (3, 3)),
    "depthwise, large": (18, 18, 18, (33, 40), (3, 2)),
    "depthwise, several results": (16, 48, 16, (6, 7), (3, 2)),
    "depthwise, many results": (16, 128, 16, (6, 7), (3, 2)),
    "depthwise, few channels": (3, 3, 3, (6, 7), (3, 3)),
    "depthwise, sequences": (17, 17, 17, (12,), (5,)),
    "depthwise, long sequences": (17, 17, 17, (900,), (3,)),
    "depthwise, volumes": (16, 16, 16, (5, 4, 6), (3, 2, 3)),
}
STEPS = {  # stride, padding, dilation
    "plain": (1, 0, 1),
    "padded": (1, 1, 1),
    "strided": (2, 1, 1),
    "dilated": (1, 2, 2),
    "strided and dilated": (3, 2, 2),
    "stride shares a factor with dilation": (2, 3, 4),
}


def computed(lib, dims, transposed, x, weight, grad, stride, padding, dilation, groups):
    """The result, and the gradients of the input and the weight."""
    x, weight = (lib.tensor(a, requires_grad=True) for a in (x, weight))
    if transposed:
        call = getattr(lib.nn.functional, f"conv_transpose{dims}d")
        out = call(x, weight, None, stride, padding, min(stride, 2) - 1, groups, dilation)
    else:
        out = getattr(lib.nn.functional, f"conv{dims}d")(x, weight, None, stride, padding, dilation, groups)
    grad = np.resize(grad, tuple(out.shape))
    out.backward(lib.tensor(grad))
    return [t.detach().numpy() for t in (out, x.grad, weight.grad)]


def has_results(shape, steps, transposed):
    """Whether there is at least one position where the kernel fits."""
    *_, extents, kernel = SHAPES[shape]
    stride, padding, dilation = STEPS[steps]
    if transposed:
        return all((n - 1) * stride + dilation * (k - 1) >= 2 * padding for n, k in zip(extents, kernel, strict=True))
    return all(n + 2 * padding > dilation * (k - 1) for n, k in zip(extents, kernel, strict=True))


CASES = [case for case in itertools.product(SHAPES, STEPS, (False, True)) if has_results(*case)]


@pytest.mark.parametrize(("shape", "steps", "transposed"), CASES)
def test_values_and_gradients(shape, steps, transposed):
    channels, results, groups, extents, kernel = SHAPES[shape]
    stride, padding, dilation = STEPS[steps]
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, channels, *extents))
    weight = rng.standard_normal(((channels, results // groups) if transposed else (results, channels // groups)) + kernel)
    given = (len(kernel), transposed, x, weight, rng.standard_normal(997), stride, padding, dilation, groups)
    for ours, theirs in zip(computed(mt, *given), computed(torch, *given), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("size", [(8, 8), (7, 9), (16, 12), (15, 15)])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("channels", [64, 128])  # with more, the gradient of the weight is computed by tiles, too
def test_tiles_of_many_channels(size, padding, channels):
    rng = np.random.default_rng(0)
    x, weight = (rng.standard_normal(shape).astype(np.float32) for shape in ((6, channels, *size), (channels + 8, channels, 3, 3)))
    given = (2, False, x, weight, rng.standard_normal(997).astype(np.float32), 1, padding, 1, 1)
    for ours, theirs in zip(computed(mt, *given), computed(torch, *given), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-6 * np.abs(theirs).max(), rtol=0)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("size", [(16, 16), (15, 17), (12, 10)])
@pytest.mark.parametrize("padding", [0, 1, 2])
def test_strided_tiles_of_many_channels(size, padding, transposed):
    rng = np.random.default_rng(0)
    shapes = (40, 132 if transposed else 36, *(n // 2 if transposed else n for n in size)), (132, 36, 4, 4)
    x, weight = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    given = (2, transposed, x, weight, rng.standard_normal(997).astype(np.float32), 2, padding, 1, 1)
    with counted_tiles() as tiles:
        ours = computed(mt, *given)
    assert tiles == (["grad_input", "forward", "grad_weight"] if transposed else ["forward", "grad_input", "grad_weight"])
    for found, theirs in zip(ours, computed(torch, *given), strict=True):
        np.testing.assert_allclose(found, theirs, atol=4e-6 * np.abs(theirs).max(), rtol=0)


@contextlib.contextmanager
def counted_tiles():
    """Which of the three convolutions by strided tiles are computed."""
    names = []

    def counting(name):
        compute = getattr(convolution, f"strided_{name}")
        return lambda *given: (names.append(name), compute(*given))[1]

    with pytest.MonkeyPatch.context() as patch:
        for name in ("forward", "grad_input", "grad_weight"):
            patch.setattr(convolution, f"strided_{name}", counting(name))
        yield names


@pytest.mark.parametrize("value", [np.inf, np.nan, 2e38])
@pytest.mark.parametrize(("size", "kernel", "stride"), [(8, 4, 2), (4, 3, 1)])
def test_gradients_by_tiles_with_what_is_not_finite(value, size, kernel, stride):
    rng = np.random.default_rng(0)
    shapes = ((32, 128, size, size), (128, 128, kernel, kernel), (997,))
    x, weight, grad = (rng.standard_normal(shape).astype(np.float32) / 1000 for shape in shapes)
    x[1, 5, 3, 1], x[1, 5, 3, 3] = value, -value  # of finite ones, the difference is infinite
    given = (2, False, x, weight, grad, stride, 1, 1, 1)
    for ours, theirs in zip(computed(mt, *given), computed(torch, *given), strict=True):
        assert np.array_equal(np.isfinite(ours), np.isfinite(theirs))
        assert np.array_equal(np.isnan(ours), np.isnan(theirs))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_tiles_with_what_is_not_finite(value):
    rng = np.random.default_rng(0)
    x, weight = (rng.standard_normal(shape).astype(np.float32) for shape in ((6, 64, 8, 8), (64, 64, 3, 3)))
    x[1, 5, 3, 4] = value
    ours, theirs = (lib.nn.functional.conv2d(lib.tensor(x), lib.tensor(weight), padding=1).numpy() for lib in (mt, torch))
    assert np.array_equal(np.isfinite(ours), np.isfinite(theirs))
    assert np.array_equal(np.isnan(ours), np.isnan(theirs))


def test_tiles_keep_a_large_value_to_its_windows():
    rng = np.random.default_rng(0)
    x, weight = (rng.standard_normal(shape).astype(np.float32) for shape in ((6, 64, 8, 8), (64, 64, 3, 3)))
    x[:, :, 3, 4] = 1e6
    ours, theirs = (lib.nn.functional.conv2d(lib.tensor(x), lib.tensor(weight), padding=1).numpy() for lib in (mt, torch))
    ours[:, :, 2:5, 3:6] = theirs[:, :, 2:5, 3:6] = 0
    np.testing.assert_allclose(ours, theirs, atol=2e-4)
