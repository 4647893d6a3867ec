"""A border of one value around a tensor; the other padding modes are in `padding`."""

from __future__ import annotations

from collections.abc import Sequence

from ..._backends.cpu.machinery.layout import has_channels_last
from ..._memory_format import channels_last, channels_last_3d
from ..._tensor import Tensor
from ..._types import Number
from ..machinery.declare import op
from ..machinery.lookup import aten
from .slicing import narrow


def _constant_pad_nd(self: Tensor, pad: Sequence[int], value: Number) -> Tensor:
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
        return inner.clone()
    wanted = None
    if has_channels_last(self._array):
        wanted = channels_last if len(shape) == 4 else channels_last_3d
    result = aten.empty(size=tuple(new_shape), dtype=self.dtype, device=self.device, memory_format=wanted)
    result.fill_(value)
    target = result
    for d, before, after in reversed(by_dim):
        if before > 0:
            target = narrow(target, d, before, target._array.shape[d] - before)
        if after > 0:
            target = narrow(target, d, 0, target._array.shape[d] - after)
    target.copy_(inner)
    return result


constant_pad_nd = op(
    "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
    composite=_constant_pad_nd,
    grad={"self": lambda grad, pad: constant_pad_nd(grad, [-p for p in pad], 0)},
    variants="function",
)
