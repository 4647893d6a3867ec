"""torch.functional: functions of `torch` under an older name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindtorch_v2 as _torch

_NAMES = (
    "align_tensors atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul einsum"
    " istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index"
)
__all__ = [name for name in _NAMES.split() if name in vars(_torch)]

globals().update({name: vars(_torch)[name] for name in __all__})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
