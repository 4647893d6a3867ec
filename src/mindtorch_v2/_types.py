"""Types of the arguments that many functions take, for annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from ._device import device
    from ._dtype import dtype
    from ._memory_format import layout, memory_format
    from ._random import Generator
    from ._tensor import Tensor

Array: TypeAlias = "np.ndarray[Any, Any]"
Number: TypeAlias = "int | float | complex"
Shape: TypeAlias = "Sequence[int]"
Ints: TypeAlias = "int | Sequence[int]"  # one for all dimensions, or one for each
TensorOrTensors: TypeAlias = "Tensor | Sequence[Tensor]"
DType: TypeAlias = "dtype"
OptionalDType: TypeAlias = "dtype | None"
Device: TypeAlias = "device"
OptionalDevice: TypeAlias = "device | str | int | None"  # what users may give
OptionalLayout: TypeAlias = "layout | None"
MemoryFormat: TypeAlias = "memory_format"
OptionalMemoryFormat: TypeAlias = "memory_format | None"
OptionalGenerator: TypeAlias = "Generator | None"
