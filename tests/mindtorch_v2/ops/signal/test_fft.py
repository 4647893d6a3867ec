"""Fourier transforms, short-time transforms and windows, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch

RNG = np.random.default_rng(2)


def real(*shape, dtype=np.float64):
    return torch.from_numpy(RNG.standard_normal(shape).astype(dtype))


def complex_(*shape, dtype=np.complex128):
    return torch.from_numpy((RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype))


def array(t):
    return t.detach().resolve_conj().numpy()


def same(t, expected):
    np.testing.assert_allclose(array(t), expected, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 4, 9])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_along_one_dimension_are_numpys(name, n, norm):
    x = real(3, 6) if name in ("rfft", "ihfft") else complex_(3, 6)
    same(getattr(torch.fft, name)(x, n, 1, norm), getattr(np.fft, name)(array(x), n, 1, norm))


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
def test_transforms_along_several_dimensions_are_numpys(name, norm):
    x = real(3, 4, 6) if name.startswith("r") else complex_(3, 4, 6)
    same(getattr(torch.fft, name)(x, (5, 6), (0, 2), norm), getattr(np.fft, name)(array(x), (5, 6), (0, 2), norm))


def test_hermitian_transforms_undo_each_other():
    x = real(4, 6)
    same(torch.fft.hfftn(torch.fft.ihfftn(x), s=(4, 6)), array(x))
    same(torch.fft.hfft2(torch.fft.ihfft2(x, norm="ortho"), s=(4, 6), norm="ortho"), array(x))


def test_precision_follows_the_input_and_integers_become_floating():
    assert torch.fft.fft(real(4, dtype=np.float32)).dtype is torch.complex64
    assert torch.fft.irfft(complex_(4, dtype=np.complex64)).dtype is torch.float32
    assert torch.fft.rfft(torch.arange(4)).dtype is torch.complex64
    with pytest.raises(RuntimeError, match="Unsupported dtype Half"):
        torch.fft.fft(torch.ones(4, dtype=torch.float16))


def test_transforms_of_views():
    x = complex_(4, 6)
    same(torch.fft.fft(x.t()), np.fft.fft(array(x).T))
    same(torch.fft.fft(x[:, ::2]), np.fft.fft(array(x)[:, ::2]))


def test_empty_batches():
    assert torch.fft.rfft(torch.zeros(0, 6)).shape == (0, 4)
    assert torch.fft.irfft(torch.zeros(0, 4)).shape == (0, 6)


@pytest.mark.parametrize("n", [4, 5])
def test_frequencies_and_shifts(n):
    same(torch.fft.fftfreq(n, 0.5, dtype=torch.float64), np.fft.fftfreq(n, 0.5))
    same(torch.fft.rfftfreq(n, 0.5, dtype=torch.float64), np.fft.rfftfreq(n, 0.5))
    x = real(n, 3)
    same(torch.fft.fftshift(x), np.fft.fftshift(array(x)))
    same(torch.fft.ifftshift(torch.fft.fftshift(x)), array(x))
    same(torch.fft.fftshift(x, dim=0), np.fft.fftshift(array(x), axes=0))


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (lambda x: torch.fft.fft(x, 5), lambda: complex_(4)),
        (lambda x: torch.fft.rfft(x), lambda: real(5)),
        (lambda x: torch.fft.rfft(x, norm="ortho"), lambda: real(6)),
        (lambda x: torch.fft.irfft(x, 7), lambda: complex_(4)),
        (lambda x: torch.fft.irfftn(x), lambda: complex_(3, 4)),
        (lambda x: torch.fft.hfft(x), lambda: complex_(4)),
        (lambda x: torch.stft(x, 4, return_complex=True, window=torch.hann_window(4, dtype=torch.float64)), lambda: real(10)),
    ],
)
def test_gradients_agree_with_differences(function, make):
    x = make()
    x.requires_grad = True
    assert torch.autograd.gradcheck(function, (x,))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.fft.fft(real(4), n=0), RuntimeError, "Invalid number of data points (0) specified"),
        (lambda: torch.fft.fft(real(4), norm="x"), RuntimeError, 'Invalid normalization mode: "x"'),
        (lambda: torch.fft.fft(torch.tensor(1.0)), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
        (lambda: torch.fft.rfft(complex_(4)), RuntimeError, "rfft expects a real input tensor, but got ComplexDouble"),
        (lambda: torch.fft.fftn(real(4, 4), dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
        (lambda: torch.fft.rfftn(real(4), dim=()), RuntimeError, "rfftn must transform at least one axis"),
        (
            lambda: torch.fft.fftn(real(4), s=(1, 2)),
            RuntimeError,
            "Got shape with 2 values but input tensor only has 1 dimensions.",
        ),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text


def test_stft_is_the_transform_of_each_windowed_frame():
    x = real(20)
    window = torch.hann_window(6, dtype=torch.float64)
    found = torch.stft(x, 8, 3, 6, window, center=False, return_complex=True)
    padded = np.pad(array(window), (1, 1))
    frames = np.stack([array(x)[i : i + 8] * padded for i in range(0, 13, 3)])
    same(found, np.fft.rfft(frames).T)


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("onesided", [False, True])
def test_istft_undoes_stft(batch, normalized, onesided):
    x = real(*batch, 40)
    window = torch.hann_window(8, dtype=torch.float64)
    options = {"n_fft": 8, "hop_length": 2, "window": window, "normalized": normalized, "onesided": onesided}
    spectrum = torch.stft(x, return_complex=True, **options)
    same(torch.istft(spectrum, **options, length=40), array(x))


def test_stft_asks_for_return_complex():
    with pytest.raises(RuntimeError, match="stft requires the return_complex parameter be given for real inputs"):
        torch.stft(real(20), 8)
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        assert torch.stft(real(20), 8, return_complex=False).shape == (5, 11, 2)


@pytest.mark.parametrize(
    ("name", "numpy_name", "extra"),
    [
        ("hann", "hanning", ()),
        ("hamming", "hamming", ()),
        ("bartlett", "bartlett", ()),
        ("blackman", "blackman", ()),
        ("kaiser", "kaiser", (12.0,)),
    ],
)
def test_windows_are_numpys(name, numpy_name, extra):
    expected = getattr(np, numpy_name)
    legacy = getattr(torch, f"{name}_window")
    same(legacy(7, periodic=False, dtype=torch.float64), expected(7, *extra))
    same(legacy(7, dtype=torch.float64), expected(8, *extra)[:7])
    symmetric = getattr(torch.signal.windows, name)
    same(symmetric(7, dtype=torch.float64), expected(7, *extra))
    same(symmetric(7, sym=False, dtype=torch.float64), expected(8, *extra)[:7])
    assert symmetric(0).shape == legacy(0).shape == (0,)
    assert symmetric(1).tolist() == legacy(1).tolist() == [1.0]


def test_further_windows():
    n = np.arange(5)
    same(torch.signal.windows.gaussian(5, std=2.0, dtype=torch.float64), np.exp(-((n - 2) ** 2) / 8))
    same(torch.signal.windows.exponential(5, tau=2.0, dtype=torch.float64), np.exp(-np.abs(n - 2) / 2))
    same(torch.signal.windows.cosine(5, dtype=torch.float64), np.sin(np.pi * (n + 0.5) / 5))
    assert torch.hamming_window(4, True, 0.5, 0.5).tolist() == pytest.approx(torch.hann_window(4).tolist())
    assert torch.hann_window(4, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.hann_window(-1), RuntimeError, "hann_window requires non-negative window_length, got window_length=-1"),
        (lambda: torch.signal.windows.hann(-1), ValueError, "general_cosine requires non-negative window length, got M=-1"),
        (lambda: torch.signal.windows.gaussian(4, std=-1), ValueError, "Standard deviation must be positive, got: -1 instead."),
        (
            lambda: torch.signal.windows.cosine(4, dtype=torch.int64),
            ValueError,
            "cosine expects float32 or float64 dtypes, got: torch.int64",
        ),
    ],
)
def test_windows_refuse(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text
