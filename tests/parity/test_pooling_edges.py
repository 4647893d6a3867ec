"""Pooling at its edges against torch's: gradients of other shapes, empty windows, layouts, maxima over whole images."""

import numpy as np
import pytest

import mindtorch_v2 as mt

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def places(lib, *shape):
    return lib.ones(*shape, dtype=lib.int64)


def empty_gradient(lib, name, *shape):
    getattr(lib.nn.functional, name)(lib.ones(*shape, requires_grad=True), 0).sum().backward()


def fractional(lib, n, kernel, size):
    function = getattr(lib.nn.functional, f"fractional_max_pool{n}d")
    return function(lib.ones(1, 2, *[7] * n), kernel, output_size=size, _random_samples=lib.full((1, 2, n), 0.5))


ERRORS = {
    **{f"an empty gradient of {name}": lambda lib, name=name: empty_gradient(lib, name, 1, 64, 10, 9)
       for name in ("adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d")},
    **{f"an empty gradient of {name}": lambda lib, name=name: empty_gradient(lib, name, 1, 64)
       for name in ("adaptive_avg_pool1d", "adaptive_max_pool1d")},
    "adaptive averages": lambda lib: lib.ops.aten._adaptive_avg_pool2d_backward(lib.ones(1, 2, 7), lib.ones(1, 2, 3, 3)),
    "adaptive averages of volumes": lambda lib: lib.ops.aten._adaptive_avg_pool3d_backward(lib.ones(1, 2, 7, 7), lib.ones(1, 2, 3, 3, 3)),
    "adaptive maxima": lambda lib: lib.ops.aten.adaptive_max_pool2d_backward(lib.ones(1, 2, 7, 7), lib.ones(1, 2, 7, 7), places(lib, 1, 2, 3, 3)),
    "adaptive maxima of volumes": lambda lib: lib.ops.aten.adaptive_max_pool3d_backward(
        lib.ones(1, 2, 7, 7, 7), lib.ones(1, 2, 3, 3, 3), places(lib, 1, 2, 3, 3)),
    "fractional maxima": lambda lib: lib.ops.aten.fractional_max_pool2d_backward(
        lib.ones(1, 2, 4, 3), lib.ones(1, 2, 7, 7), (2, 2), (3, 3), places(lib, 1, 2, 3, 3)),
    "fractional maxima of volumes": lambda lib: lib.ops.aten.fractional_max_pool3d_backward(
        lib.ones(1, 2, 3, 4, 3), lib.ones(1, 2, 7, 7, 7), (2, 2, 2), (3, 3, 3), places(lib, 1, 2, 3, 3, 3)),
    **{f"maxima, {shape}": lambda lib, shape=shape: lib.ops.aten.max_pool2d_with_indices_backward(
        lib.ones(1, 2, *shape), lib.ones(1, 2, 7, 7), [3, 3], [1, 1], [1, 1], [1, 1], False, places(lib, 1, 2, *shape))
       for shape in ((3, 3), (7, 6))},
    "no channels": lambda lib: lib.nn.functional.fractional_max_pool2d(lib.ones(1, 0, 50, 32), 3, output_ratio=(0.5, 0.5)),
    "no height": lambda lib: lib.nn.functional.fractional_max_pool3d(lib.ones(1, 3, 50, 0, 32), 3, output_ratio=(0.5, 0.5, 0.5)),
    **{f"{n}d kernel {kernel}": lambda lib, n=n, kernel=kernel: fractional(lib, n, kernel, (3,) * n) for n, kernel in ((2, (1,)), (2, ()), (3, (1, 1)))},
    **{f"{n}d size {size}": lambda lib, n=n, size=size: fractional(lib, n, (2,) * n, size) for n, size in ((2, (9, 3)), (2, (3,)), (3, (3, 9, 3)), (3, (3, 3)))},
}  # fmt: skip


@pytest.mark.parametrize("action", ERRORS.values(), ids=ERRORS)
def test_errors(action):
    from module_comparison import compare_errors

    compare_errors(action)


@pytest.mark.parametrize(("shape", "kernel", "size"), [((4, 5, 8, 8), [2, 2], [0, 1]), ((4, 8, 8, 8), [3, 2, 2], [0, 1, 1])])
def test_no_windows(shape, kernel, size):
    import torch

    found = [
        getattr(lib.nn.functional, f"fractional_max_pool{len(size)}d")(lib.ones(shape), kernel, output_size=size).shape
        for lib in (mt, torch)
    ]
    assert tuple(found[0]) == tuple(found[1])


def test_unpooled_images_keep_their_format():
    import torch

    def found(lib):
        x = lib.arange(216.0).reshape(2, 3, 6, 6)
        strides = []
        for given in (x, x.to(memory_format=lib.channels_last)):
            values, at = lib.nn.functional.max_pool2d(given, 2, return_indices=True)
            made = lib.nn.functional.max_unpool2d(values, at, 2)
            strides.append((made.stride(), made.tolist()))
        return strides

    assert found(mt) == found(torch)


@pytest.mark.parametrize("size", [1, (2, 1), (4, 4), (3, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("nans", [False, True])
def test_adaptive_maxima(size, dtype, nans):
    import torch

    data = np.random.default_rng(0).integers(-9, 9, (2, 3, 8, 8)).astype(np.float32)
    if nans:
        data[0, 0, 3, 4] = data[0, 0, 6, 1] = data[0, 0, 6, 2] = np.nan
    found = []
    for lib in (mt, torch):
        x = lib.from_numpy(data.copy()).to(getattr(lib, dtype)).requires_grad_()
        values, at = lib.nn.functional.adaptive_max_pool2d(x, size, return_indices=True)
        values.sum().backward()
        found.append([values.detach().float().numpy(), at.numpy(), x.grad.float().numpy()])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)
