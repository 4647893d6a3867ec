"""Hashes of tensors: to see whether elements changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._checks import wrap_dims
from ..machinery.declare import op

Array = np.ndarray[Any, Any]


def _hash(self: Array, dim: int | Sequence[int], keepdim: bool, mode: int) -> Array:
    """The exclusive or of the elements' bits, taken as float64 or int64."""
    if mode != 0:
        raise RuntimeError(f"hash_tensor: mode 0 (exclusive or of all elements) is the only one, not {mode}")
    if self.dtype.kind == "c":
        raise NotImplementedError("\"xor_sum\" not implemented for 'Complex'")
    wide = np.int64 if self.dtype.kind in "biu" else np.float64
    axes = tuple(range(self.ndim))
    if dim in ((), [], None):
        if not self.size:
            raise RuntimeError(
                "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
                "argument."
            )
    else:
        axes = wrap_dims([dim] if isinstance(dim, int) else dim, self.ndim)[: self.ndim]  # a zero-dim tensor has nothing to reduce
    bits = np.ascontiguousarray(self.astype(wide)).view(np.uint64).reshape(self.shape)
    reduce: Any = np.bitwise_xor.reduce
    return reduce(bits, axis=axes, keepdims=keepdim)


hash_tensor = op("hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor", cpu=_hash)
