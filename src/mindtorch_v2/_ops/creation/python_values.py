"""Tensors as Python values: `item`, `tolist`, and what Python's own conversions call."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ..._backends.cpu.machinery.floating_errors import SILENT
from ..._dispatch import keys
from ..._dispatch.codegen import Body
from ..._dtype import NarrowDtype, bfloat16
from ..._interop import refuse_subclass
from ..._narrow import decoded
from ..._pending import resolved
from ..._tensor import Tensor
from ..._types import Number
from ..machinery.declare import op, public


def _scalar(self: np.ndarray[Any, Any]) -> Number:
    return self.item()


SILENT.add(_scalar)


def _refuse_empty() -> NoReturn:
    raise RuntimeError("_local_scalar_dense: Empty tensor not supported")


_local_scalar_dense = op("_local_scalar_dense(Tensor self) -> Scalar", cpu=_scalar, tags=("data_dependent",), variants="")
# as `item` below
_local_scalar_dense.op.kernels[keys.CPU] = Body(
    ["if not self._array.size:", "    refuse_empty()", "result = self._array.item()"], {"refuse_empty": _refuse_empty}
)


def _not_one(array: np.ndarray[Any, Any]) -> RuntimeError:
    return RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")


def _item(self: Tensor) -> Number:
    if self._array.size != 1:
        raise _not_one(self._array)
    if self._keys & (keys.META | keys.PYTHON) == keys.META:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    return _local_scalar_dense(self)


item: Any = op("item(Tensor self) -> Scalar", composite=_item, variants="method")
# written into the operator's function: another call would be a fifth of its time
item.op.kernels[keys.CPU] = Body(
    ["if self._array.size != 1:", "    raise not_one(self._array)", "result = read[self._keys](self)"],
    {"not_one": _not_one, "read": _local_scalar_dense.op.table},
    calls_operators=True,
)


def _ambiguous(n: int) -> RuntimeError:
    what = "no values" if n == 0 else "more than one value"
    return RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")


def _is_nonzero(self: Tensor) -> bool:
    if self._array.size != 1:
        raise _ambiguous(self._array.size)
    return bool(item.op.table[self._keys](self))


is_nonzero = op("is_nonzero(Tensor self) -> bool", composite=_is_nonzero)
public("method", name="__bool__")(is_nonzero)


def _single(self: Tensor, real_type: str) -> Any:
    """The one element, for a conversion to a Python number."""
    if self._array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    value = item(self)
    if real_type and isinstance(value, complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {real_type} without overflow")
        return value.real
    return value


@public("method", name="__int__")
def _int(self: Tensor) -> int:
    return int(_single(self, "long"))


@public("method", name="__float__")
def _float(self: Tensor) -> float:
    return float(_single(self, "double"))


@public("method", name="__complex__")
def _complex(self: Tensor) -> complex:
    return complex(_single(self, ""))


@public("method", name="__index__")
def _index(self: Tensor) -> int:
    if self.dtype.inexact or self._array.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(item(self))


@public("method", name="__len__")
def _len(self: Tensor) -> int:
    if self._array.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return self._array.shape[0]


@public("method")
def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers."""
    refuse_subclass(self, ".tolist()")
    if self._keys & keys.META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if self._keys & keys.BATCHED:
        raise RuntimeError(
            "vmap: It looks like you're calling .tolist() on a Tensor, whose elements differ between samples. Use operators instead."
        )
    if self._keys & keys.SPARSE_LAYOUTS:
        raise RuntimeError("Cannot turn a sparse tensor into lists. Use Tensor.to_dense() first.")
    if isinstance(self.dtype, NarrowDtype):
        return decoded(self._array, self.dtype).tolist()
    array = resolved(self)._array
    return (array.astype(np.float32) if self.dtype is bfloat16 else array).tolist()


is_set_to = op(
    "is_set_to(Tensor self, Tensor tensor) -> bool",
    composite=lambda self, tensor: (
        self._storage is tensor._storage
        and self.data_ptr() == tensor.data_ptr()
        and self._array.shape == tensor._array.shape
        and self.stride() == tensor.stride()
    ),
    variants="method",
)
