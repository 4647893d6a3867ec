"""Convolutions against their definition, written as loops."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch

F = torch.nn.functional


def correlate(x: Any, w: Any, stride: int, padding: int, dilation: int, groups: int) -> Any:
    """The definition of a two-dimensional convolution."""
    n, _, h, wd = x.shape
    o, c, kh, kw = w.shape
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    oh = (h + 2 * padding - dilation * (kh - 1) - 1) // stride + 1
    ow = (wd + 2 * padding - dilation * (kw - 1) - 1) // stride + 1
    out = np.zeros((n, o, oh, ow), x.dtype)
    for k, i, j in itertools.product(range(o), range(oh), range(ow)):
        first = k // (o // groups) * c
        rows = slice(i * stride, i * stride + dilation * (kh - 1) + 1, dilation)
        cols = slice(j * stride, j * stride + dilation * (kw - 1) + 1, dilation)
        out[:, k, i, j] = (x[:, first : first + c, rows, cols] * w[k]).sum((1, 2, 3))
    return out


CASES = [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 1), (3, 2, 2, 2), (1, 1, 1, 2)]


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), CASES)
def test_conv2d_is_its_definition(stride: int, padding: int, dilation: int, groups: int) -> None:
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(2, 4, 9, 8)), rng.normal(size=(6, 4 // groups, 3, 2)), rng.normal(size=6)
    got = F.conv2d(*map(torch.from_numpy, (x, w, b)), stride, padding, dilation, groups)
    want = correlate(x, w, stride, padding, dilation, groups) + b.reshape(-1, 1, 1)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), CASES)
def test_gradients_of_conv2d(stride: int, padding: int, dilation: int, groups: int) -> None:
    rng = np.random.default_rng(1)
    x = torch.from_numpy(rng.normal(size=(2, 2, 5, 6))).requires_grad_()
    w = torch.from_numpy(rng.normal(size=(2, 2 // groups, 2, 2))).requires_grad_()
    b = torch.from_numpy(rng.normal(size=2)).requires_grad_()
    assert torch.autograd.gradcheck(lambda *a: F.conv2d(*a, stride, padding, dilation, groups), (x, w, b))


GROUPED = [
    ("conv1d", (2, 4, 9), (6, 2, 3), {"groups": 2, "padding": 1}),
    ("conv2d", (2, 4, 7, 6), (4, 1, 3, 3), {"groups": 4, "padding": 1}),  # depthwise
    ("conv2d", (2, 4, 7, 6), (8, 1, 3, 3), {"groups": 4, "stride": 2}),
    ("conv2d", (2, 6, 7, 6), (3, 2, 1, 1), {"groups": 3}),  # pointwise
    ("conv2d", (2, 6, 7, 6), (4, 3, 3, 2), {"groups": 2, "dilation": 2}),
    ("conv3d", (1, 4, 4, 5, 4), (4, 2, 2, 2, 2), {"groups": 2}),
    ("conv_transpose1d", (2, 4, 9), (4, 3, 3), {"groups": 2, "stride": 2}),
    ("conv_transpose2d", (2, 4, 5, 4), (4, 1, 3, 3), {"groups": 4, "stride": 2, "padding": 1, "output_padding": 1}),
    ("conv_transpose2d", (2, 6, 5, 4), (6, 2, 3, 2), {"groups": 3, "dilation": 2}),
    ("conv_transpose3d", (1, 4, 3, 3, 4), (4, 2, 2, 2, 2), {"groups": 2}),
]


@pytest.mark.parametrize(("name", "shape", "weight_shape", "options"), GROUPED)
class TestGroups:
    def arguments(self, shape: Any, weight_shape: Any, name: str, options: Any) -> list[Any]:
        rng = np.random.default_rng(3)
        outputs = weight_shape[1] * options["groups"] if "transpose" in name else weight_shape[0]
        return [torch.from_numpy(rng.normal(size=s)).requires_grad_() for s in (shape, weight_shape, (outputs,))]

    def test_are_convolutions_of_their_own(self, name: str, shape: Any, weight_shape: Any, options: Any) -> None:
        x, w, b = self.arguments(shape, weight_shape, name, options)
        groups = options["groups"]
        call = getattr(F, name)
        alone = {**options, "groups": 1}
        parts = [call(*of, **alone) for of in zip(x.chunk(groups, 1), w.chunk(groups), b.chunk(groups), strict=True)]
        together = call(x, w, b, **options)
        np.testing.assert_allclose(together.detach().numpy(), torch.cat(parts, 1).detach().numpy(), atol=1e-12)
        torch.manual_seed(0)
        grad = torch.randn(*together.shape, dtype=torch.float64)
        got, want = (torch.autograd.grad(out, (x, w, b), grad) for out in (together, torch.cat(parts, 1)))
        for g, v in zip(got, want, strict=True):
            np.testing.assert_allclose(g.numpy(), v.numpy(), atol=1e-12)

    def test_are_one_row_each_way(self, name: str, shape: Any, weight_shape: Any, options: Any) -> None:
        x, w, b = self.arguments(shape, weight_shape, name, options)
        with torch.profiler.profile() as prof:
            getattr(F, name)(x, w, b, **options).sum().backward()
        names = [e.name for e in prof.events()]
        assert names[:3] == [f"aten::{name}", "aten::convolution", "aten::_convolution"]
        assert names.count("aten::_convolution") == names.count("aten::convolution_backward") == 1
        assert "aten::cat" not in names
        assert "aten::narrow" not in names

    def test_have_a_shape_without_memory(self, name: str, shape: Any, weight_shape: Any, options: Any) -> None:
        x, w, b = self.arguments(shape, weight_shape, name, options)
        real = getattr(F, name)(x, w, b, **options)
        meta = [t.detach().to("meta").requires_grad_() for t in (x, w, b)]
        out = getattr(F, name)(*meta, **options)
        assert out.shape == real.shape
        out.sum().backward()
        assert [t.grad.shape for t in meta] == [t.shape for t in meta]


def test_groups_keep_the_memory_format() -> None:
    x = torch.randn(2, 4, 6, 6).contiguous(memory_format=torch.channels_last)
    for out in (F.conv2d(x, torch.randn(4, 1, 3, 3), groups=4), F.conv_transpose2d(x, torch.randn(4, 1, 3, 3), groups=4)):
        assert out.is_contiguous(memory_format=torch.channels_last)


def test_second_gradients_of_groups() -> None:
    rng = np.random.default_rng(4)
    x, w = (torch.from_numpy(rng.normal(size=s)).requires_grad_() for s in ((1, 2, 4, 4), (2, 1, 2, 2)))
    assert torch.autograd.gradgradcheck(lambda x, w: F.conv2d(x, w, padding=1, groups=2), (x, w))


def test_second_gradients() -> None:
    rng = np.random.default_rng(2)
    x = torch.from_numpy(rng.normal(size=(1, 2, 4, 4))).requires_grad_()
    w = torch.from_numpy(rng.normal(size=(2, 2, 2, 2))).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x, w: F.conv2d(x, w, stride=2, padding=1), (x, w))
    assert torch.autograd.gradgradcheck(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), (x, w))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_is_the_adjoint(dims: int) -> None:
    rng = np.random.default_rng(3)
    conv, transposed = getattr(F, f"conv{dims}d"), getattr(F, f"conv_transpose{dims}d")
    x = torch.from_numpy(rng.normal(size=(2, 3, *[7] * dims)))
    w = torch.from_numpy(rng.normal(size=(4, 3, *[3] * dims)))
    y = conv(x, w, stride=2, padding=1)
    g = torch.from_numpy(rng.normal(size=tuple(y.shape)))
    assert float((y * g).sum()) == pytest.approx(float((x * transposed(g, w, stride=2, padding=1)).sum()))


def test_output_padding_beyond_the_reach_of_the_kernel() -> None:
    rng = np.random.default_rng(4)
    x = torch.from_numpy(rng.normal(size=(1, 2, 3, 3))).requires_grad_()
    w = torch.from_numpy(rng.normal(size=(2, 1, 2, 2))).requires_grad_()
    f = lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=3, dilation=4)
    assert f(x, w).shape == (1, 1, 10, 10)
    assert torch.autograd.gradcheck(f, (x, w))


def test_an_image_without_a_batch() -> None:
    x, w = torch.ones(2, 5, 5), torch.ones(3, 2, 3, 3)
    assert F.conv2d(x, w).shape == (3, 3, 3)
    assert float(F.conv2d(x, w)[0, 0, 0]) == 18


@pytest.mark.parametrize(("kernel", "dilation"), [(3, 1), (2, 1), (2, 3)])
def test_same_padding_keeps_the_size(kernel: int, dilation: int) -> None:
    x = torch.arange(12.0).view(1, 1, 12)
    w = torch.zeros(1, 1, kernel)
    w[0, 0, (kernel - 1) // 2 if dilation == 1 else 0] = 1
    assert F.conv1d(x, w, padding="same", dilation=dilation).shape == x.shape
    if dilation == 1:
        assert F.conv1d(x, w, padding="same").tolist() == x.tolist()


@pytest.mark.parametrize(("positions", "samples_together"), [(1, False), (20, False), (150, True)])
def test_chunks_of_columns_agree_with_one_piece(monkeypatch: pytest.MonkeyPatch, positions: int, samples_together: bool) -> None:
    from mindtorch_v2._backends.cpu.nn import convolution as kernels

    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(3, 4, 9, 7)), rng.normal(size=(5, 4, 3, 3))
    whole = [kernels.conv_forward(x, w, None, (s, s), (1, 1), (1, 1)) for s in (1, 2)]
    monkeypatch.setattr(kernels, "COLUMN_BYTES", 1)
    monkeypatch.setattr(kernels, "FEWEST", positions)
    monkeypatch.setattr(kernels, "MOST", positions)
    monkeypatch.setattr(kernels, "TOGETHER", 100 if samples_together else 0)
    kernels._kept_geometry.cache_clear()
    for s, want in zip((1, 2), whole, strict=True):
        got = kernels.conv_forward(x, w, None, (s, s), (1, 1), (1, 1))
        np.testing.assert_allclose(got, want, atol=1e-12)
        grad = kernels.conv_grad_weight(x, want, (3, 3), (s, s), (1, 1), (1, 1))
        back = kernels.conv_grad_input(want, w, (9, 7), (s, s), (1, 1), (1, 1))
        assert (grad * w).sum() == pytest.approx((want * want).sum())
        assert (back * x).sum() == pytest.approx((want * want).sum())
    kernels._kept_geometry.cache_clear()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_accumulates_in_single(dtype: Any) -> None:
    x, w = torch.ones(1, 512, 3, 3, dtype=dtype), torch.ones(1, 512, 3, 3, dtype=dtype)
    out = F.conv2d(x, w)
    assert out.dtype is dtype
    assert float(out.float()) == 4608  # adding ones in half precision would stop at 2048, in bfloat16 at 256


def test_complex_gradients_are_conjugated() -> None:
    rng = np.random.default_rng(6)
    x = torch.from_numpy(rng.normal(size=(1, 1, 4)) + 1j * rng.normal(size=(1, 1, 4))).requires_grad_()
    w = torch.from_numpy(rng.normal(size=(1, 1, 2)) + 1j * rng.normal(size=(1, 1, 2))).requires_grad_()
    assert torch.autograd.gradcheck(F.conv1d, (x, w))
    assert torch.autograd.gradcheck(F.conv_transpose1d, (x, w))


def test_meta_tensors_have_the_shape() -> None:
    x, w = torch.empty(2, 3, 8, 8, device="meta", requires_grad=True), torch.empty(4, 3, 3, 3, device="meta", requires_grad=True)
    y = F.conv2d(x, w, stride=2)
    assert y.shape == (2, 4, 3, 3)
    assert y.device.type == "meta"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.conv2d(torch.zeros(1, 2, 3, 3), torch.zeros(1, 3, 1, 1)), "expected input.* to have 3 channels, but got 2"),
        (lambda: F.conv2d(torch.zeros(1, 2, 3, 3), torch.zeros(1, 2, 4, 4)), "Kernel size can't be greater than actual input size"),
        (lambda: F.conv2d(torch.zeros(1, 2, 3, 3), torch.zeros(1, 2, 1, 1), stride=0), "non-positive stride"),
        (lambda: F.conv2d(torch.zeros(3), torch.zeros(1, 2, 1, 1)), "Expected 3D .unbatched. or 4D .batched. input to conv2d"),
        (
            lambda: F.conv2d(torch.zeros(1, 2, 3, 3), torch.zeros(1, 2, 1, 1).double()),
            "expected scalar type Float but found Double",
        ),
        (lambda: F.conv1d(torch.zeros(1, 2, 3), torch.zeros(1, 2, 1), stride=2, padding="same"), "not supported for strided"),
        (
            lambda: F.conv_transpose1d(torch.zeros(1, 2, 3), torch.zeros(2, 2, 1), output_padding=1),
            "output padding must be smaller",
        ),
    ],
)
def test_errors(call: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        call()


def test_padding_by_name_after_padding_by_number() -> None:
    """The overload is chosen by the keyword's type, not by its name alone."""
    x, w = torch.ones(1, 1, 4), torch.ones(1, 1, 3)
    assert torch.ops.aten.conv1d(x, w, padding=1).shape == (1, 1, 4)
    assert torch.ops.aten.conv1d(x, w, padding="valid").shape == (1, 1, 2)


def test_node_names() -> None:
    x, w = torch.ones(1, 1, 4, requires_grad=True), torch.ones(1, 1, 3)
    y = F.conv1d(x, w)
    assert y.grad_fn.name() == "ConvolutionBackward0"
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert g.grad_fn is None or g.grad_fn.name() == "ConvolutionBackwardBackward0"


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_gradients_are_the_same_while_somebody_records(dtype: Any, dims: int, dilation: int, groups: int) -> None:
    rng = np.random.default_rng(7)

    def draw(*shape: int) -> Any:
        return torch.from_numpy(rng.normal(size=shape)).to(dtype)

    x, w, b = draw(3, 4, *(7,) * dims), draw(4, 4 // groups, *(2,) * dims), draw(4)
    leaves = [t.requires_grad_() for t in (x, w, b)]
    y = getattr(F, f"conv{dims}d")(*leaves, dilation=dilation, groups=groups)
    dense = draw(*y.shape)
    for grad in (dense, dense[:1, :, :1].expand(y.shape), dense.transpose(1, -1).contiguous().transpose(1, -1), -0.0 * dense.abs()):
        plain = torch.autograd.grad(y, leaves, grad, retain_graph=True)
        with torch.profiler.profile():
            recorded = torch.autograd.grad(y, leaves, grad, retain_graph=True)
        for a, r in zip(plain, recorded, strict=True):
            assert (a._array.tobytes(), a.stride(), a.dtype, a._version) == (r._array.tobytes(), r.stride(), r.dtype, r._version)
        values, axes = grad.double().numpy(), (0, *range(2, grad.ndim))
        error = np.abs(plain[2].double().numpy() - values.sum(axes))
        assert (error <= 8 * torch.finfo(dtype).eps * np.abs(values).sum(axes)).all()


@pytest.mark.parametrize("dims", [2, 3])
def test_gradients_that_overflow_come_without_warnings(dims: int) -> None:
    x = torch.full((2, 2, *(5,) * dims), 3e38, requires_grad=True)
    w = torch.ones(2, 2, *(2,) * dims, requires_grad=True)
    y = getattr(F, f"conv{dims}d")(x, w, dilation=4 - dims)
    grads = torch.autograd.grad(y, (x, w), torch.full(y.shape, 3e38))
    assert all(bool(g.isinf().any()) for g in grads)


def test_the_kernel_for_volumes_finds_groups_by_itself() -> None:
    rng = np.random.default_rng(8)
    x, w, b = (torch.from_numpy(rng.normal(size=s)) for s in ((2, 4, 3, 3, 3), (6, 2, 2, 2, 2), (6,)))
    parts = [F.conv3d(x[:, 2 * g : 2 * g + 2], w[3 * g : 3 * g + 3], b[3 * g : 3 * g + 3]) for g in range(2)]
    want = torch.cat(parts, 1)
    for got in (torch.ops.aten.slow_conv3d(x, w, [2, 2, 2], b), F.conv3d(x, w, b, groups=2)):
        np.testing.assert_allclose(got.numpy(), want.numpy())
    leaves = [t.requires_grad_() for t in (x, w, b)]
    assert torch.autograd.gradcheck(lambda *given: F.conv3d(*given, groups=2), leaves)
    for channels in (3, 1, 0):
        with pytest.raises(RuntimeError, match="channels"):
            torch.ops.aten.slow_conv3d(torch.ones(1, channels, 3, 3, 3), w.float(), [2, 2, 2])
