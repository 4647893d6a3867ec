"""`torch.signal.windows`: symmetric windows by default, periodic with `sym=False`."""

from __future__ import annotations

from collections.abc import Iterable
from math import pi, sqrt
from typing import Any

from .. import _dtype
from .._creation import tensor
from .._memory_format import strided
from .._ops.machinery.lookup import aten
from .._tensor import Tensor
from .._types import OptionalDevice, OptionalDType, OptionalLayout

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser",
    "nuttall",
]  # fmt: skip


def _options(name: str, M: int, dtype: OptionalDType, layout: OptionalLayout, device: OptionalDevice) -> dict[str, Any]:
    """Return the arguments for the factories below, after the checks that every window makes."""
    chosen = _dtype.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided and layout is not None:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if chosen not in (_dtype.float32, _dtype.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {chosen}")
    return {"dtype": chosen, "device": device}


def _finished(made: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        made.requires_grad = True
    return made


def _short(M: int, options: dict[str, Any], requires_grad: bool) -> Tensor:
    """A window of no element, or of one, which is 1."""
    return _finished((aten.ones if M else aten.empty)((M,), **options), requires_grad)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: OptionalDType = None, layout: OptionalLayout = strided,
    device: OptionalDevice = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """exp(-|n - center| / tau)."""
    options = _options("exponential", M, dtype, layout, device)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return _short(M, options, requires_grad)
    middle = (M if not sym and M > 1 else M - 1) / 2.0 if center is None else center
    constant = 1 / tau
    k = aten.linspace(-middle * constant, (-middle + (M - 1)) * constant, M, **options)
    return _finished((-k.abs()).exp(), requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: OptionalDType = None,
    layout: OptionalLayout = strided,
    device: OptionalDevice = None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a period of a sine."""
    options = _options("cosine", M, dtype, layout, device)
    if M == 0:
        return _short(M, options, requires_grad)
    start = 0.5
    constant = pi / (M + 1 if not sym and M > 1 else M)
    k = aten.linspace(start * constant, (start + (M - 1)) * constant, M, **options)
    return _finished(k.sin(), requires_grad)


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: OptionalDType = None, layout: OptionalLayout = strided, device: OptionalDevice = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """exp(-(n - middle)² / (2 std²))."""
    options = _options("gaussian", M, dtype, layout, device)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return _short(M, options, requires_grad)
    start = -(M if not sym and M > 1 else M - 1) / 2.0
    constant = 1 / (std * sqrt(2))
    k = aten.linspace(start * constant, (start + (M - 1)) * constant, M, **options)
    return _finished((-(k**2)).exp(), requires_grad)


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: OptionalDType = None, layout: OptionalLayout = strided, device: OptionalDevice = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A Bessel function of the distance from the middle."""
    options = _options("kaiser", M, dtype, layout, device)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M <= 1:
        return _short(M, options, requires_grad)
    scale = tensor(beta, **options)
    start = -scale
    constant = 2.0 * scale / (M if not sym else M - 1)
    end = aten.minimum(scale, start + (M - 1) * constant)
    k = aten.linspace(start.item(), end.item(), M, **options)
    return _finished((scale * scale - k**2).sqrt().i0() / scale.i0(), requires_grad)


def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, dtype: OptionalDType = None, layout: OptionalLayout = strided, device: OptionalDevice = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A series of cosines with these coefficients, of alternating signs."""
    options = _options("general_cosine", M, dtype, layout, device)
    if M <= 1:
        return _short(M, options, requires_grad)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    constant = 2 * pi / (M if not sym else M - 1)
    k = aten.linspace(0, (M - 1) * constant, M, **options)
    signed = tensor([(-1) ** i * w for i, w in enumerate(weights)], **options)
    orders = aten.arange(len(weights), **options)
    return _finished((signed.unsqueeze(-1) * (orders.unsqueeze(-1) * k).cos()).sum(0), requires_grad)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: OptionalDType = None, layout: OptionalLayout = strided, device: OptionalDevice = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """alpha - (1 - alpha) cos."""
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: OptionalDType = None,
    layout: OptionalLayout = strided,
    device: OptionalDevice = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Hamming window."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: OptionalDType = None,
    layout: OptionalLayout = strided,
    device: OptionalDevice = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Hann window."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: OptionalDType = None,
    layout: OptionalLayout = strided,
    device: OptionalDevice = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Blackman window."""
    _options("blackman", M, dtype, layout, device)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: OptionalDType = None,
    layout: OptionalLayout = strided,
    device: OptionalDevice = None,
    requires_grad: bool = False,
) -> Tensor:
    """The four-term window of Nuttall with the least side lobes."""
    a = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: OptionalDType = None,
    layout: OptionalLayout = strided,
    device: OptionalDevice = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle."""
    options = _options("bartlett", M, dtype, layout, device)
    if M <= 1:
        return _short(M, options, requires_grad)
    start = -1
    constant = 2 / (M if not sym else M - 1)
    k = aten.linspace(start, start + (M - 1) * constant, M, **options)
    return _finished(1 - k.abs(), requires_grad)
