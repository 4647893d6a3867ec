"""Quantiles."""

from __future__ import annotations

from ... import _checks, _dtype
from ..._tensor import Tensor
from ..elementwise.comparison import is_true
from ..machinery.declare import op
from ..machinery.lookup import aten

MODES = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    name: str, self: Tensor, q: Tensor, dim: int | None, keepdim: bool, interpolation: str, *, ignore_nan: bool
) -> Tensor:
    _check(name, self, q, interpolation)
    ndim = self._array.ndim
    if dim is not None:
        dim = _checks.wrap_dim(dim, ndim)
    x = _sorted_last(self, dim, keepdim)
    ranks = _ranks(x, q, ignore_nan=ignore_nan)
    if interpolation == "lower":
        ranks = ranks.floor_()
    elif interpolation == "higher":
        ranks = ranks.ceil_()
    elif interpolation == "nearest":
        ranks = ranks.round_()
    below = ranks.to(_dtype.int64)
    values = x.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        weights = aten.full_like(ranks, 0.5) if interpolation == "midpoint" else ranks - below
        above = ranks.ceil_().to(_dtype.int64)
        values = values.lerp_(x.gather(-1, above), weights)
    if q._array.ndim == 0:
        return values.squeeze_(-1)
    # the quantiles lead
    return values.unsqueeze_(0).transpose_(0, -1).squeeze_(-1)


def _check(name: str, self: Tensor, q: Tensor, interpolation: str) -> None:
    if not self._array.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if q._array.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if self.dtype.name not in ("float32", "float64"):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if q.dtype is not self.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if interpolation not in MODES:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not is_true(((q >= 0).logical_and_(q <= 1)).all()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")


def _sorted_last(self: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    """The elements in ascending order along a last dimension of their own, behind those of the result."""
    shape = list(self._array.shape)
    if dim is None:
        ordered = self.flatten().sort()[0]
        kept = [1] * len(shape) if keepdim else []
    elif dim == len(shape) - 1:
        ordered = self.sort()[0]
        kept = [*shape[:-1], 1] if keepdim else shape[:-1]
    else:
        ordered = self.unsqueeze(-1).transpose(dim, -1).sort()[0]
        kept = [1 if i == dim else n for i, n in enumerate(shape)] if keepdim else shape[:dim] + shape[dim + 1 :]
    return ordered.view([*kept, ordered._array.shape[-1]])


def _ranks(x: Tensor, q: Tensor, *, ignore_nan: bool) -> Tensor:
    """Return the positions of the quantiles among the sorted elements, of the shape of the gathered values."""
    n = x._array.shape[-1]
    if ignore_nan:
        numbers = x.isnan().logical_not_().sum(-1, True)
        ranks = q * (numbers - 1)
        return ranks.masked_fill_(ranks < 0, 0)
    ranks = q * (n - 1)
    nan = x.isnan().any(-1, True)
    ranks, nan = aten.broadcast_tensors([ranks, nan])
    # where there is a NaN it is last, and the answer
    return ranks.masked_fill(nan, n - 1)


def _scalar(name: str, self: Tensor, q: float, dim: int | None, keepdim: bool, interpolation: str, *, ignore_nan: bool) -> Tensor:
    if not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
    quantile = aten.scalar_tensor(q, dtype=self.dtype, device=self.device)
    return _quantile(name, self, quantile, dim, keepdim, interpolation, ignore_nan=ignore_nan)


def _operators(name: str, *, ignore_nan: bool) -> None:
    rest = 'int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor'
    op(
        f"{name}(Tensor self, Tensor q, {rest}",
        composite=lambda self, q, dim, keepdim, interpolation: _quantile(
            name, self, q, dim, keepdim, interpolation, ignore_nan=ignore_nan
        ),
    )
    op(
        f"{name}.scalar(Tensor self, float q, {rest}",
        composite=lambda self, q, dim, keepdim, interpolation: _scalar(
            name, self, q, dim, keepdim, interpolation, ignore_nan=ignore_nan
        ),
    )


_operators("quantile", ignore_nan=False)
_operators("nanquantile", ignore_nan=True)
