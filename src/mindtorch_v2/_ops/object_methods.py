"""Methods of the tensor object that are no operators: facts about it, NumPy's protocols, printing."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtype
from .._creation import moved, device_of, dtype_of, array_from
from .._dispatch import keys
from .._interop import numpy_of
from .._memory_format import contiguous_format, is_contiguous_as, memory_format
from .._printing import tensor_text
from .._tensor import Tensor, wrap
from .declare import public

public("method", name="numpy")(numpy_of)


@public("method")
def is_contiguous(self: Tensor, memory_format: memory_format = contiguous_format) -> bool:
    """Whether the elements lie in memory in the order of this format."""
    if memory_format is contiguous_format:
        return bool(self._array.flags.c_contiguous)
    return is_contiguous_as(self._array.shape, self.stride(), memory_format)


@public("method", name="__array__")
def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    array = numpy_of(self)
    if dtype is None or array.dtype == dtype:
        return array.copy() if copy else array
    return array.astype(dtype)


@public("method", name="__array_wrap__")
def _array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    return wrap(np.asarray(array))


@public("method")
def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of the data, of this tensor's dtype and on its device unless others are given."""
    d = self.dtype if dtype is None else dtype_of(dtype)
    t = moved(wrap(array_from(data, d, copy=True)), self.device if device is None else device_of(device))
    if requires_grad:
        t.requires_grad = True
    return t


@public("method", name="__repr__")
def _repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    return tensor_text(self, tensor_contents)


@public("method", name="__format__")
def _format(self: Tensor, spec: str) -> str:
    if self._array.ndim == 0 and not self._keys & keys.META and type(self) is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)
