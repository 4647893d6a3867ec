"""Tensors of elements that are kept as bits (float8, complex32, bits): converting them, and reading single ones.

What moves elements without looking at them is in `_ops/uncomputed`. Everything else is refused by the dispatcher.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _device, _dtype
from ..._backends.cpu.creation import copying as kernels
from ..._dispatch import keys
from ..._narrow import decoded, encoded
from ..._tensor import Tensor, wrap
from ..._types import OptionalDevice, OptionalMemoryFormat

__all__ = ["converted", "of_bits"]

Array = np.ndarray[Any, Any]


def of_bits(bits: Array, d: _dtype.NarrowDtype) -> Tensor:
    """A tensor with these bits as its elements."""
    t = wrap(bits)
    t.dtype, t._keys = d, keys.NARROW
    return t


def converted(self: Tensor, d: _dtype.dtype, device: OptionalDevice, memory_format: OptionalMemoryFormat) -> Tensor:
    """`_to_copy` from or to such a dtype."""
    if (device is not None and _device.device(device).type != "cpu") or not self._keys & (keys.CPU | keys.NARROW):
        raise NotImplementedError(f"tensors of {d if isinstance(d, _dtype.NarrowDtype) else self.dtype} are kept on the CPU only")
    source = self.dtype
    if isinstance(source, _dtype.NarrowDtype):
        if d is source:
            return of_bits(kernels.cast(self._array, _dtype.FROM_NUMPY[source.bits], memory_format), source)
        values = decoded(self._array, source)
    else:
        values = self._array
    if isinstance(d, _dtype.NarrowDtype):
        return of_bits(encoded(values, d), d)
    return wrap(kernels.cast(values, d, memory_format), d)
