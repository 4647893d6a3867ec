"""Discrete Fourier transforms: three operators that transform, and `torch.fft`'s functions over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _checks, _dtype
from ..._backends.cpu.machinery.dtype_rules import refusal
from ..._backends.cpu.signal import fft as kernels
from ..._creation import device_of, dtype_of, moved
from ..._tensor import Tensor, wrap
from ..._types import OptionalDevice, OptionalDType, OptionalLayout
from ..machinery.declare import op
from ..machinery.factory import factory
from ..machinery.lookup import aten

Array = np.ndarray[Any, Any]

NONE, BY_ROOT_N, BY_N = range(3)


# --- the operators that transform -------------------------------------------------------------------------------------


def _axes(dim: Sequence[int], ndim: int) -> tuple[int, ...]:
    return tuple(d + ndim if d < 0 else d for d in dim)


def _r2c_grad(grad: Tensor, self_shape: Sequence[int], dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    """The missing half of the spectrum is zero; the real part of the inverse transform is the gradient."""
    if onesided and grad.shape[dim[-1]] != self_shape[dim[-1]]:
        last = dim[-1] % len(self_shape)
        whole = grad.new_zeros((*grad.shape[:last], self_shape[last], *grad.shape[last + 1 :]))
        aten.slice(whole, last, 0, grad.shape[last]).copy_(grad)
        grad = whole
    return _fft_c2c(grad, dim, normalization, False).real


def _c2r_grad(grad: Tensor, dim: Sequence[int], normalization: int) -> Tensor:
    """Frequencies that stand for a pair count twice."""
    spectrum = _fft_r2c(grad, dim, normalization, True)
    doubled = grad.shape[dim[-1]] - spectrum.shape[dim[-1]]
    if doubled > 0:
        spectrum.narrow(dim[-1], 1, doubled).mul_(2)
    return spectrum


_fft_c2c = op(
    "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
    cpu=lambda self, dim, normalization, forward: kernels.c2c(self, _axes(dim, self.ndim), normalization, forward),
    shape=lambda self: self.shape,
    grad={"self": lambda grad, dim, normalization, forward: _fft_c2c(grad, dim, normalization, not forward)},
    variants="function",
)
_fft_r2c = op(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    cpu=lambda self, dim, normalization, onesided: kernels.r2c(self, _axes(dim, self.ndim), normalization, onesided),
    grad={"self": _r2c_grad},
    variants="function",
)
_fft_c2r = op(
    "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
    cpu=lambda self, dim, normalization, last_dim_size: kernels.c2r(self, _axes(dim, self.ndim), normalization, last_dim_size),
    grad={"self": _c2r_grad},
    variants="function",
)


# --- arguments --------------------------------------------------------------------------------------------------------


def normalization_code(norm: str | None, *, forward: bool) -> int:
    """torch's code for a mode of normalisation; by default the inverse transform divides."""
    if norm is None or norm == "backward":
        return NONE if forward else BY_N
    if norm == "forward":
        return BY_N if forward else NONE
    if norm == "ortho":
        return BY_ROOT_N
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _promoted(x: Tensor, *, to_complex: bool = False) -> Tensor:
    """The input in a type that can be transformed; integers become floating."""
    d = x.dtype
    if not d.inexact:
        d = _dtype.get_default_dtype()
    if d in (_dtype.float16, _dtype.bfloat16):
        raise RuntimeError(f"Unsupported dtype {d.scalar_name}")
    if to_complex:
        d = d.to_computed_complex()
    return x if d is x.dtype else x.to(d)


def _check_points(n: int) -> None:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _one_dim(x: Tensor, dim: int) -> int:
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return _checks.wrap_dim(dim, x.ndim)


def _resized(x: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Cut or fill up with zeros to these sizes; -1 leaves one as it is."""
    padding = [0] * (2 * x.ndim)
    must_pad = False
    for d, n in zip(dims, sizes, strict=True):
        if n == -1:
            continue
        if x.shape[d] < n:
            padding[2 * (x.ndim - 1 - d) + 1] = n - x.shape[d]
            must_pad = True
        elif x.shape[d] > n:
            x = aten.slice(x, d, 0, n)
    return aten.constant_pad_nd(x, padding) if must_pad else x


def _dims_and_sizes(x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The transformed dimensions and the number of points along each."""
    s = (s,) if isinstance(s, int) else s
    dim = (dim,) if isinstance(dim, int) else dim
    if dim is not None:
        dims = tuple(_one_dim(x, d) for d in dim)
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > x.ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions.")
        dims = tuple(range(x.ndim - len(s), x.ndim))
    else:
        dims = tuple(range(x.ndim))
    sizes = tuple(x.shape[d] if s is None or s[i] == -1 else s[i] for i, d in enumerate(dims))
    for n in sizes:
        _check_points(n)
    return dims, sizes


# --- one dimension ----------------------------------------------------------------------------------------------------


def _refuse_complex(x: Tensor, function: str, *, several: bool = False) -> None:
    if x.dtype.is_complex:
        kind = "real-valued" if several else "real"
        raise RuntimeError(f"{function} expects a {kind} input tensor, but got {x.dtype.scalar_name}")


def _real_to_complex(x: Tensor, n: int | None, dim: int, norm: str | None, *, forward: bool, onesided: bool, name: str) -> Tensor:
    _refuse_complex(x, name)
    x = _promoted(x)
    d = _one_dim(x, dim)
    points = x.shape[d] if n is None else n
    _check_points(points)
    if n is not None:
        x = _resized(x, (d,), (points,))
    out = _fft_r2c(x, (d,), normalization_code(norm, forward=forward), onesided)
    return out if forward else out.conj()


def _complex_to_real(x: Tensor, n: int | None, dim: int, norm: str | None, *, forward: bool) -> Tensor:
    x = _promoted(x, to_complex=True)
    d = _one_dim(x, dim)
    points = 2 * (x.shape[d] - 1) if n is None else n
    _check_points(points)
    if n is not None:
        x = _resized(x, (d,), (points // 2 + 1,))
    if forward:
        x = x.conj()
    return _fft_c2r(x, (d,), normalization_code(norm, forward=forward), points)


def _complex_to_complex(x: Tensor, n: int | None, dim: int, norm: str | None, *, forward: bool) -> Tensor:
    if not x.dtype.is_complex:
        return _real_to_complex(x, n, dim, norm, forward=forward, onesided=False, name="fft")
    d = _one_dim(x, dim)
    points = x.shape[d] if n is None else n
    _check_points(points)
    if n is not None:
        x = _resized(x, (d,), (points,))
    return _fft_c2c(x, (d,), normalization_code(norm, forward=forward), forward)


def _declare_one(name: str, function: Callable[..., Tensor]) -> None:
    op(
        f"fft_{name}(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
        composite=lambda self, n, dim, norm: function(self, n, dim, norm),
        variants="function",
    )


_declare_one("fft", lambda x, n, dim, norm: _complex_to_complex(x, n, dim, norm, forward=True))
_declare_one("ifft", lambda x, n, dim, norm: _complex_to_complex(x, n, dim, norm, forward=False))
_declare_one("rfft", lambda x, n, dim, norm: _real_to_complex(x, n, dim, norm, forward=True, onesided=True, name="rfft"))
_declare_one("irfft", lambda x, n, dim, norm: _complex_to_real(x, n, dim, norm, forward=False))
_declare_one("hfft", lambda x, n, dim, norm: _complex_to_real(x, n, dim, norm, forward=True))
_declare_one("ihfft", lambda x, n, dim, norm: _real_to_complex(x, n, dim, norm, forward=False, onesided=True, name="ihfft"))


# --- several dimensions -----------------------------------------------------------------------------------------------


def _fftn(x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None, norm: str | None, *, forward: bool) -> Tensor:
    dims, sizes = _dims_and_sizes(x, s, dim)
    x = _resized(_promoted(x, to_complex=True), dims, sizes)
    return _fft_c2c(x, dims, normalization_code(norm, forward=forward), forward)


def _require_axis(dims: Sequence[int], function: str) -> None:
    if not dims:
        raise RuntimeError(f"{function} must transform at least one axis")


def _rfftn(x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None, norm: str | None) -> Tensor:
    _refuse_complex(x, "rfftn", several=True)
    dims, sizes = _dims_and_sizes(x, s, dim)
    _require_axis(dims, "rfftn")
    x = _resized(_promoted(x), dims, sizes)
    return _fft_r2c(x, dims, normalization_code(norm, forward=True), True)


def _half_spectrum(
    x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None, function: str
) -> tuple[Tensor, tuple[int, ...], int]:
    """The input cut to the frequencies that count, the dimensions, and the number of points along the last of them."""
    s = (s,) if isinstance(s, int) else s
    if x.ndim and (dim is None or isinstance(dim, int) or len(dim)):
        last = x.ndim - 1 if dim is None else _one_dim(x, dim if isinstance(dim, int) else dim[-1])
        extent = x.shape[last]
    else:
        extent = 1
    dims, sizes = _dims_and_sizes(x, s, dim)
    _require_axis(dims, function)
    points = 2 * (extent - 1) if s is None or s[-1] == -1 else s[-1]
    _check_points(points)
    x = _resized(_promoted(x, to_complex=True), dims, (*sizes[:-1], points // 2 + 1))
    return x, dims, points


def _irfftn(x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None, norm: str | None) -> Tensor:
    x, dims, points = _half_spectrum(x, s, dim, "irfftn")
    return _fft_c2r(x, dims, normalization_code(norm, forward=False), points)


def _hfftn(x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None, norm: str | None) -> Tensor:
    x, dims, points = _half_spectrum(x, s, dim, "hfftn")
    code = normalization_code(norm, forward=True)
    if len(dims) > 1:
        x = _fft_c2c(x, dims[:-1], code, True)
    return _fft_c2r(x.conj(), dims[-1:], code, points)


def _ihfftn(x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None, norm: str | None) -> Tensor:
    _refuse_complex(x, "ihfftn", several=True)
    dims, sizes = _dims_and_sizes(x, s, dim)
    _require_axis(dims, "ihfftn")
    x = _resized(_promoted(x), dims, sizes)
    code = normalization_code(norm, forward=False)
    half = _fft_r2c(x, dims[-1:], code, True)
    if len(dims) == 1:
        return half.conj()
    return _fft_c2c(half.conj_physical(), dims[:-1], code, False)


def _declare_several(name: str, function: Callable[..., Tensor]) -> None:
    """`fft_<name>2` over the last two dimensions by default, `fft_<name>n` over all."""
    for suffix, dims in (("2", "int[1] dim=[-2,-1]"), ("n", "int[1]? dim=None")):
        op(
            f"fft_{name}{suffix}(Tensor self, SymInt[1]? s=None, {dims}, str? norm=None) -> Tensor",
            composite=lambda self, s, dim, norm: function(self, s, dim, norm),
            variants="function",
        )


_declare_several("fft", lambda x, s, dim, norm: _fftn(x, s, dim, norm, forward=True))
_declare_several("ifft", lambda x, s, dim, norm: _fftn(x, s, dim, norm, forward=False))
_declare_several("rfft", _rfftn)
_declare_several("irfft", _irfftn)
_declare_several("hfft", _hfftn)
_declare_several("ihfft", _ihfftn)


# --- frequencies and shifts -------------------------------------------------------------------------------------------


def _shift_dims(x: Tensor, dim: int | Sequence[int] | None) -> tuple[int, ...]:
    if dim is None:
        return tuple(range(x.ndim))
    dims = tuple(_checks.wrap_dim(d, x.ndim) for d in ((dim,) if isinstance(dim, int) else dim))
    if dims and not x.ndim:
        raise _checks.no_dimensions(dims[0])
    return dims


def _fftshift(self: Tensor, dim: int | Sequence[int] | None) -> Tensor:
    dims = _shift_dims(self, dim)
    return self.roll([self.shape[d] // 2 for d in dims], dims)


def _ifftshift(self: Tensor, dim: int | Sequence[int] | None) -> Tensor:
    dims = _shift_dims(self, dim)
    return self.roll([(self.shape[d] + 1) // 2 for d in dims], dims)


op("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", composite=_fftshift, variants="function")
op("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", composite=_ifftshift, variants="function")


def _frequencies(counts: Array, n: int, d: float, dtype: OptionalDType, device: OptionalDevice, name: str) -> Tensor:
    chosen = dtype_of(dtype)
    if not chosen.inexact:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if chosen.is_complex:
        raise refusal("arange_cpu", chosen)
    step = 1.0 / (n * d) if n * d else float("inf")
    return moved(wrap(counts.astype(chosen.np) * chosen.np.type(step)), device_of(device))


def _check_count(n: int) -> None:
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")


def _fftfreq(
    n: int, d: float, dtype: OptionalDType, layout: OptionalLayout, device: OptionalDevice, pin_memory: bool | None
) -> Tensor:
    _check_count(n)
    positive = (n + 1) // 2
    counts = np.concatenate([np.arange(positive), np.arange(-(n // 2), 0)])
    return _frequencies(counts, n, d, dtype, device, "fftfreq")


def _rfftfreq(
    n: int, d: float, dtype: OptionalDType, layout: OptionalLayout, device: OptionalDevice, pin_memory: bool | None
) -> Tensor:
    _check_count(n // 2 + 1)
    return _frequencies(np.arange(n // 2 + 1), n, d, dtype, device, "rfftfreq")


factory("fft_fftfreq(int n, float d=1.0, OPTIONS) -> Tensor", _fftfreq)
factory("fft_rfftfreq(int n, float d=1.0, OPTIONS) -> Tensor", _rfftfreq)
