"""Convolution by bands against columns in float64, for every geometry that it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _threads
from mindtorch_v2._backends.cpu.nn import bands, convolution

# channels, results, image, kernel, stride, padding, dilation of columns
CASES = [
    (16, 8, (20, 16), (3, 3), (1, 1), (1, 1), 1),
    (16, 24, (9, 40), (3, 3), (1, 1), (0, 0), 1),
    (17, 16, (7, 35), (3, 3), (2, 2), (1, 1), 1),
    (16, 8, (30, 50), (7, 5), (3, 2), (3, 2), 1),
    (16, 8, (5, 60), (2, 4), (1, 3), (4, 6), 1),
    (16, 8, (12, 40), (3, 3), (1, 1), (2, 2), 2),
    (40, 32, (70, 64), (3, 3), (1, 1), (1, 1), 1),
]


def given(channels: int, results: int, image: Any, kernel: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((3, channels, *image)).astype(np.float32), rng.standard_normal((results, channels, *kernel)).astype(
        np.float32
    )


def by_bands(x: Any, weight: Any, stride: Any, padding: Any, columns: int) -> Any:
    dilation = (1, columns)
    out = convolution.conv_output_size(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    at_once = bands.results_at_once(weight, out, dilation)
    assert at_once
    return bands.correlate_by_bands(x, weight, out, stride, padding, dilation, at_once)


@pytest.mark.parametrize(("channels", "results", "image", "kernel", "stride", "padding", "columns"), CASES)
@pytest.mark.parametrize("memory", [1, 1 << 20])
def test_results_are_those_of_columns(
    monkeypatch: pytest.MonkeyPatch,
    channels: int,
    results: int,
    image: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    columns: int,
    memory: int,
) -> None:
    """Also with bands of the fewest rows."""
    monkeypatch.setattr(bands, "BAND_BYTES", memory)
    x, weight = given(channels, results, image, kernel)
    expected = convolution.conv_forward(x.astype(np.float64), weight.astype(np.float64), None, stride, padding, (1, columns))
    found = by_bands(x, weight, stride, padding, columns)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


def test_threads_make_no_difference() -> None:
    x, weight = given(40, 32, (70, 64), (3, 3))
    before = _threads.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            _threads.set_num_threads(threads)
            found.append(by_bands(x, weight, (1, 1), (1, 1), 1))
    finally:
        _threads.set_num_threads(before)
    assert np.array_equal(*found)


def test_values_that_are_not_finite_reach_their_windows_alone() -> None:
    x, weight = given(16, 8, (20, 20), (3, 3))
    x[0, 3, 10, 10] = np.inf
    x[1, 3, 0, 0] = np.nan
    bad = ~np.isfinite(by_bands(x, weight, (1, 1), (1, 1), 1))
    assert bad[0, :, 9:12, 9:12].all()
    assert bad[1, :, :2, :2].all()
    assert bad.sum() == 8 * (9 + 4)


@pytest.mark.parametrize(
    ("weight", "out", "dilation"),
    [
        (np.zeros((8, 16, 3, 3)), (20, 20), (1, 1)),  # float64
        (np.zeros((8, 16, 3, 3), np.float32), (20, 8), (1, 1)),
        (np.zeros((8, 3, 3, 3), np.float32), (20, 20), (1, 1)),
        (np.zeros((12, 16, 3, 3), np.float32), (20, 20), (1, 1)),  # no 8 at once
        (np.zeros((8, 16, 1, 3), np.float32), (20, 20), (1, 1)),  # nothing overlaps
        (np.zeros((8, 16, 3, 3), np.float32), (20, 20), (2, 1)),
        (np.zeros((8, 512, 3, 3), np.float32), (224, 224), (1, 1)),
    ],
)
def test_others_go_by_columns(weight: Any, out: Any, dilation: Any) -> None:
    assert bands.results_at_once(weight, out, dilation) == 0


@pytest.mark.parametrize(
    ("depth", "results", "expected"), [(288, 32, 36), (576, 64, 18), (27, 32, 27), (288, 128, 288), (13 * 9, 64, 13), (7, 1, 7)]
)
def test_rows_of_small_products(depth: int, results: int, expected: int) -> None:
    assert convolution._rows_of_small_products(depth, results) == expected


def test_nothing_of_images_and_weights() -> None:
    x = torch.zeros(2, 16, 0, 20, requires_grad=True)
    torch.nn.functional.conv2d(x, torch.ones(16, 16, 3, 3), padding=2).sum().backward()
    y = torch.ones(2, 16, 20, 20, requires_grad=True)
    torch.nn.functional.conv_transpose2d(y, torch.zeros(16, 0, 3, 3, requires_grad=True)).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    assert not y.grad.any()
