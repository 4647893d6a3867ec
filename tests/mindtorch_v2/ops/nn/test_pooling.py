"""Pooling, resampling, padding and folding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch

F = torch.nn.functional
aten = torch.ops.aten


def image(*shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).requires_grad_()


def test_max_pool_by_hand() -> None:
    x = torch.tensor([[[[1.0, 5.0, 2.0], [4.0, 3.0, 9.0], [8.0, 7.0, 6.0]]]])
    values, indices = F.max_pool2d(x, 2, stride=1, return_indices=True)
    assert values.tolist() == [[[[5, 9], [8, 9]]]]
    assert indices.tolist() == [[[[1, 5], [6, 5]]]]


@pytest.mark.parametrize("size", [(1, 1, 6, 6), (4, 30, 12, 12)])  # below and above where the kernel changes its ways
def test_equal_elements_the_first_wins(size: tuple[int, ...]) -> None:
    _, indices = F.max_pool2d(torch.zeros(size), 3, return_indices=True)
    assert indices[0, 0, 0].tolist() == list(range(0, size[3], 3))


@pytest.mark.parametrize("padding", [0, 1])
def test_the_last_nan_wins(padding: int) -> None:
    x = torch.tensor([[[[float("nan"), 1.0], [float("nan"), 2.0]]]])
    values, indices = F.max_pool2d(x, 2, padding=padding, stride=2, return_indices=True)
    assert bool(values.isnan().any())
    assert indices.flatten().tolist()[0] == (2 if padding == 0 else 0)


def test_padding_never_wins_over_minus_infinity() -> None:
    values, indices = F.max_pool2d(torch.full((1, 1, 2, 2), -float("inf")), 2, stride=2, padding=1, return_indices=True)
    assert indices.tolist() == [[[[0, 1], [2, 3]]]]
    assert values.tolist() == [[[[-float("inf")] * 2] * 2]]


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.max_pool2d(x, 2, 1, 1, 2, ceil_mode=True),
        lambda x: F.avg_pool2d(x, 3, 2, 1),
        lambda x: F.avg_pool2d(x, (2, 3), 2, (1, 1), ceil_mode=True, count_include_pad=False),
        lambda x: F.avg_pool2d(x, 2, divisor_override=3),
        lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
        lambda x: F.adaptive_max_pool2d(x, (3, 4)),
        lambda x: F.lp_pool2d(x.abs(), 3.0, 2),
        lambda x: F.interpolate(x, scale_factor=2.5),
        lambda x: F.interpolate(x, size=(9, 4), mode="bilinear"),
        lambda x: F.interpolate(x, size=(9, 4), mode="bicubic", align_corners=True),
        lambda x: F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True),
        lambda x: F.interpolate(x, size=(3, 4), mode="area"),
        lambda x: F.pad(x, (2, 1, 0, 3), mode="reflect"),
        lambda x: F.pad(x, (2, 1, -1, 3), mode="replicate"),
        lambda x: F.pad(x, (2, 1, 1, 3), mode="circular"),
        lambda x: F.unfold(x, (2, 3), dilation=2, padding=1, stride=2),
        lambda x: F.pixel_shuffle(x, 2),
        lambda x: F.channel_shuffle(x, 2),
    ],
)
def test_gradients(pool: Any) -> None:
    x = image(1, 4, 5, 6)
    assert torch.autograd.gradcheck(pool, (x,))
    assert torch.autograd.gradgradcheck(pool, (x,), fast_mode=True)


def test_average_counts_padding_or_not() -> None:
    x = torch.ones(1, 1, 2, 2)
    assert F.avg_pool2d(x, 2, 2, 1).tolist() == [[[[0.25, 0.25], [0.25, 0.25]]]]
    assert F.avg_pool2d(x, 2, 2, 1, count_include_pad=False).tolist() == [[[[1, 1], [1, 1]]]]


def test_global_average_is_a_mean() -> None:
    x = image(2, 3, 4, 4)
    y = F.adaptive_avg_pool2d(x, 1)
    assert y.grad_fn.name() == "MeanBackward1"
    np.testing.assert_allclose(y.detach().numpy()[..., 0, 0], x.detach().numpy().mean((2, 3)))


def test_unpooling_undoes_pooling() -> None:
    x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    assert F.max_unpool2d(values, indices, 2).tolist() == [[[[0, 0], [0, 4]]]]


def test_folding_counts_overlaps() -> None:
    x = torch.ones(1, 1, 3, 3)
    assert F.fold(F.unfold(x, 2), (3, 3), 2).tolist() == [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]]


def test_padding_by_hand() -> None:
    x = torch.tensor([[[1.0, 2.0, 3.0]]])
    assert F.pad(x, (2, 1), mode="reflect").tolist() == [[[3, 2, 1, 2, 3, 2]]]
    assert F.pad(x, (2, 1), mode="replicate").tolist() == [[[1, 1, 1, 2, 3, 3]]]
    assert F.pad(x, (2, 1), mode="circular").tolist() == [[[2, 3, 1, 2, 3, 1]]]
    assert F.pad(x, (-1, 1), mode="replicate").tolist() == [[[2, 3, 3]]]


def test_nearest_and_linear_by_hand() -> None:
    x = torch.tensor([[[0.0, 1.0]]])
    assert F.interpolate(x, size=4).tolist() == [[[0, 0, 1, 1]]]
    assert F.interpolate(x, size=4, mode="linear").tolist() == [[[0, 0.25, 0.75, 1]]]
    assert F.interpolate(x, size=3, mode="linear", align_corners=True).tolist() == [[[0, 0.5, 1]]]
    assert F.interpolate(x, size=3, mode="nearest-exact").tolist() == [[[0, 1, 1]]]


def test_antialiasing_keeps_the_mean() -> None:
    x = image(1, 1, 8, 8).detach()
    y = F.interpolate(x, size=(2, 2), mode="bilinear", antialias=True)
    flat = F.interpolate(torch.ones(1, 1, 8, 8), size=(3, 3), mode="bicubic", antialias=True)
    assert y.shape == (1, 1, 2, 2)
    np.testing.assert_allclose(flat.numpy(), 1, rtol=1e-6)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_gradients_of_grid_sampling(mode: str, padding: str) -> None:
    x = image(1, 2, 4, 5)
    grid = torch.from_numpy(np.random.default_rng(1).uniform(-0.9, 0.9, (1, 3, 2, 2))).requires_grad_()
    f = lambda x, g: F.grid_sample(x, g, mode=mode, padding_mode=padding, align_corners=False)
    assert torch.autograd.gradcheck(f, (x, grid))
    assert torch.autograd.gradgradcheck(f, (x, grid), fast_mode=True)


def test_the_identity_grid_samples_the_image() -> None:
    x = image(1, 2, 4, 5).detach()
    theta = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]).double()
    grid = F.affine_grid(theta, (1, 2, 4, 5), align_corners=True)
    np.testing.assert_allclose(F.grid_sample(x, grid, align_corners=True).numpy(), x.numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.max_pool2d(torch.zeros(1, 1, 4, 4), 2, padding=2), "pad should be at most half of effective kernel size"),
        (lambda: F.max_pool2d(torch.zeros(1, 1, 4, 4), 5), "Output size is too small"),
        (lambda: F.avg_pool2d(torch.zeros(1, 1, 4, 4), 2, divisor_override=0), "divisor must be not zero"),
        (lambda: F.pad(torch.zeros(1, 1, 3), (3, 0), mode="reflect"), "Padding size should be less than"),
        (lambda: F.pixel_shuffle(torch.zeros(1, 3, 2, 2), 2), "divisible by the square of upscale_factor"),
        (lambda: F.unfold(torch.zeros(1, 1, 2, 2), 3), "sliding blocks"),
        (lambda: F.max_unpool2d(torch.zeros(1, 1, 1, 1), torch.full((1, 1, 1, 1), 9), 2), "Found an invalid max index: 9"),
    ],
)
def test_errors(call: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        call()


@pytest.mark.parametrize("kernel", [(2, 2), (3, 2), (1, 3), (4, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_max_of_tiles_is_the_first_largest_of_each(kernel, dtype):
    height, width = kernel
    x = torch.randint(0, 4, (40, 30, 3 * height, 4 * width)).to(dtype)
    best, indices = torch.nn.functional.max_pool2d(x, kernel, return_indices=True)
    tiles = x.numpy().reshape(40, 30, 3, height, 4, width).transpose(0, 1, 2, 4, 3, 5).reshape(40, 30, 3, 4, height * width)
    place = tiles.argmax(-1)
    row, column = np.arange(3)[:, None] * height + place // width, np.arange(4) * width + place % width
    assert (best.numpy() == tiles.max(-1)).all()
    assert (indices.numpy() == row * 4 * width + column).all()


def test_max_of_tiles_takes_the_last_nan():
    x = torch.zeros(1, 60, 16, 16)
    x[0, 0, 0, 1] = x[0, 0, 1, 0] = float("nan")
    best, indices = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    assert best[0, 0, 0, 0].isnan()
    assert indices[0, 0, 0, 0] == 16
    assert best[0, 0, 0, 1] == 0
