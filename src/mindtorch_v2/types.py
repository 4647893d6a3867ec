"""torch.types: names for annotations."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from ._device import device as _device
from ._dtype import dtype as _dtype
from ._memory_format import layout as _layout
from ._tensor import Size as Size
from ._tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]

_int, _float, _bool, _complex, _size = (
    builtins.int,
    builtins.float,
    builtins.bool,
    builtins.complex,
    Size | list[int] | tuple[int, ...],
)
_TensorOrTensors = Tensor | Sequence[Tensor]
_dispatchkey = str
Number = int | float | bool
Device = _device | str | int | None
FileLike = str | Any
_dtypes, _layouts = _dtype, _layout


class Storage:
    """What storages have in common, for annotations."""
