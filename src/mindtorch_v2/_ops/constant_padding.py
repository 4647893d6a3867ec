"""Borders around a tensor: constant and circular ones here, reflected and replicated ones among the convolutions' relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._tensor import Tensor
from .declare import op
from .lookup import aten
from .selecting import narrow, slice_

# --- a constant border ----------------------------------------------------------------------------------------------


def _constant_pad_nd(self: Tensor, pad: Sequence[int], value: Any) -> Tensor:
    shape = self._array.shape
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    padded = len(pad) // 2
    if padded > len(shape):
        raise RuntimeError(
            f"Length of pad should be no more than twice the number of dimensions of the input. Pad length is {len(pad)} while the "
            f"input has {len(shape)} dimensions."
        )
    # pad counts from the last dimension: (left, right, top, bottom, …)
    by_dim = [(len(shape) - 1 - i, pad[2 * i], pad[2 * i + 1]) for i in range(padded)]
    new_shape = list(shape)
    for d, before, after in by_dim:
        new_shape[d] += before + after
        if new_shape[d] < 0:
            raise RuntimeError(
                f"The input size {shape[d]}, plus negative padding {before} and {after} resulted in a negative output size, which is "
                f"invalid. Check dimension {d} of your input."
            )
    inner = self
    for d, before, after in reversed(by_dim):
        if before < 0:
            inner = narrow(inner, d, -before, inner._array.shape[d] + before)
        if after < 0:
            inner = narrow(inner, d, 0, inner._array.shape[d] + after)
    if all(before <= 0 and after <= 0 for _, before, after in by_dim):
        return inner.clone()  # type: ignore[no-any-return]
    result = aten.empty(size=tuple(new_shape), dtype=self.dtype, device=self.device)
    result.fill_(value)
    target = result
    for d, before, after in reversed(by_dim):
        if before > 0:
            target = narrow(target, d, before, target._array.shape[d] - before)
        if after > 0:
            target = narrow(target, d, 0, target._array.shape[d] - after)
    target.copy_(inner)
    return result  # type: ignore[no-any-return]


constant_pad_nd = op(
    "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
    composite=_constant_pad_nd,
    grad={"self": lambda grad, pad: constant_pad_nd(grad, [-p for p in pad], 0)},
    variants="function",
)

# --- a border of the elements at the other end ----------------------------------------------------------------------


def _pad_circular_composite(self: Tensor, pad: Sequence[int]) -> Tensor:
    shape = self._array.shape
    ndim = len(shape) - 2
    if len(pad) + 4 != len(shape) * 2 and len(pad) != ndim * 2:
        raise RuntimeError("Invalid padding size, expected 2 for each dimension after the second")
    if len(pad) != 2 * ndim:
        raise RuntimeError(f"Invalid padding size, expected {2 * ndim} but got {len(pad)}")
    new_shape = list(shape)
    for i in range(ndim):
        before, after = pad[2 * (ndim - 1 - i)], pad[2 * (ndim - 1 - i) + 1]
        n = shape[2 + i]
        new_shape[2 + i] = n + before + after
        if before > n or after > n:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if new_shape[2 + i] < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    out = self.new_empty(tuple(new_shape))
    inner_out, inner_in = out, self
    for i in range(ndim):
        d = 2 + i
        before, after = pad[2 * (ndim - 1 - i)], pad[2 * (ndim - 1 - i) + 1]
        inner_out = slice_(inner_out, d, max(before, 0), new_shape[d] - max(after, 0))
        inner_in = slice_(inner_in, d, max(-before, 0), shape[d] - max(-after, 0))
    inner_out.copy_(inner_in)
    # from the last dimension on, so that corners are copied from borders that are filled already
    for i in reversed(range(ndim)):
        d = 2 + i
        before, after = pad[2 * (ndim - 1 - i)], pad[2 * (ndim - 1 - i) + 1]
        size = new_shape[d]
        if before > 0:
            slice_(out, d, 0, before).copy_(slice_(out, d, size - before - max(after, 0), size - max(after, 0)))
        if after > 0:
            slice_(out, d, size - after, size).copy_(slice_(out, d, max(before, 0), max(before, 0) + after))
    return out  # type: ignore[no-any-return]


_pad_circular = op("_pad_circular(Tensor self, SymInt[] pad) -> Tensor", composite=_pad_circular_composite, variants="")

# --- the one function for all modes ---------------------------------------------------------------------------------

_MODES = {"reflect": "reflection_pad", "replicate": "replication_pad"}


def _pad(self: Tensor, pad: Sequence[int], mode: str, value: float | None) -> Tensor:
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * self.dim():
        raise RuntimeError(f"Padding length should be less than or equal to two times the input dimension but got padding length {len(pad)} and input of dimension {self.dim()}")
    if mode == "constant":
        return constant_pad_nd(self, pad, 0 if value is None else value)  # type: ignore[no-any-return]
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    ndim = self.dim()
    if mode == "circular" and len(pad) in (2, 4, 6) and len(pad) // 2 in (ndim - 1, ndim - 2):
        if len(pad) // 2 == ndim - 1:
            return aten.squeeze(_pad_circular(aten.unsqueeze(self, 0), pad), 0)  # type: ignore[no-any-return]
        return _pad_circular(self, pad)  # type: ignore[no-any-return]
    if mode in _MODES and len(pad) in (2, 4, 6) and len(pad) // 2 in (ndim - 1, ndim - 2):
        return getattr(aten, f"{_MODES[mode]}{len(pad) // 2}d")(self, pad)  # type: ignore[no-any-return]
    if mode not in ("circular", *_MODES):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    raise NotImplementedError(
        "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now"
    )


pad = op('pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor', composite=_pad, variants="")
