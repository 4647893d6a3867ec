"""Operators that change a tensor's own shape, strides or storage in place: squeeze_, transpose_, resize_, set_."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._autograd.grad_mode import is_inference_mode_enabled
from ..._backends.cpu.machinery.layout import has_channels_last
from ..._checks import contiguous_strides
from ..._dispatch.keys import AUTOGRAD
from ..._memory_format import channels_last, channels_last_3d, contiguous_format, empty_strides, preserve_format
from ..._storage import UntypedStorage
from ..._storage_methods import new_storage
from ..._tensor import Tensor, set_array
from ..._types import Array, OptionalMemoryFormat, Shape
from ..machinery.declare import op, public
from . import reshaping

if TYPE_CHECKING:
    from ..._dispatch.op import Entry

# --- the same memory seen otherwise ---------------------------------------------------------------------------------


def _declare_inplace_view(view: Entry, node: str) -> None:
    """`name_`: what the view operator would return becomes the tensor itself."""
    declared = view.op
    schema = declared.schema
    kernel = next(iter(declared.array_kernels.values()))
    text = str(schema).replace("aten::", "").replace("(a)", "(a!)").replace(schema.name, schema.name + "_", 1)
    text = text.replace("transpose_.int", "transpose_")

    def become(self: Tensor, *arguments: Any) -> Tensor:
        set_array(self, kernel(self._array, *arguments))
        self._storage.version += 1
        return self

    op(text, composite=become, grad={f.targets[0]: f.function for f in declared.formulas}, node=node, variants="method")


for _view, _node in (
    (reshaping.squeeze, "SqueezeBackward3"),
    (reshaping.squeeze_dim, "SqueezeBackward4"),
    (reshaping.squeeze_dims, "SqueezeBackward5"),
    (reshaping.unsqueeze, "UnsqueezeBackward1"),
    (reshaping.t, "TBackward1"),
    (reshaping.transpose, "TransposeBackward1"),
):
    _declare_inplace_view(_view, _node)
op(
    "swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)",
    composite=lambda self, axis0, axis1: self.transpose_(axis0, axis1),
    variants="method",
)
op(
    "swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)",
    composite=lambda self, dim0, dim1: self.transpose_(dim0, dim1),
    variants="method",
)


def _as_strided_inplace(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Tensor:
    set_array(self, reshaping.strided_array(self, size, stride, storage_offset))
    self._storage.version += 1
    return self


op(
    "as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)",
    composite=_as_strided_inplace,
    grad={
        "self": lambda grad, self_shape, self_strides, size, stride, storage_offset: reshaping.as_strided_backward(
            grad, self_shape, self_strides, size, stride, storage_offset or 0
        )
    },
    node="AsStridedBackward1",
)

# --- other memory ---------------------------------------------------------------------------------------------------


def grow_storage(storage: UntypedStorage, size_bytes: int) -> None:
    """Make a storage at least this large, keeping what it holds."""
    old = storage.bytes()
    if old.nbytes >= size_bytes:
        return
    if storage.is_fixed:
        raise RuntimeError("Trying to resize storage that is not resizable")
    grown = np.zeros(size_bytes, np.uint8)
    grown[: old.nbytes] = old
    storage.replace(grown)
    storage._bytes = grown


def _resize(self: Tensor, size: Sequence[int], memory_format: OptionalMemoryFormat = None) -> Tensor:
    if self._keys & AUTOGRAD and not is_inference_mode_enabled():
        raise RuntimeError("cannot resize variables that require grad")
    size = tuple(int(n) for n in size)
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    if math.prod(size) * self.dtype.itemsize >= 1 << 63:
        raise RuntimeError("numel: integer multiplication overflow")
    if size == self._array.shape and memory_format is None:
        return self
    strides = contiguous_strides(size)
    if memory_format is not None and memory_format is not contiguous_format:
        strides = empty_strides(size, memory_format)
    offset = self.storage_offset()
    reach = 0 if 0 in size else offset + 1 + sum((n - 1) * s for n, s in zip(size, strides, strict=True))
    grow_storage(self._storage, reach * self.dtype.itemsize)
    if 0 in size:
        set_array(self, np.empty(size, self._array.dtype))
    else:
        set_array(self, reshaping.strided_array(self, size, strides, offset))
    self._storage.version += 1
    return self


_resize_op = op(
    "resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    composite=_resize,
    variants="method",
)


def _resize_as(self: Tensor, the_template: Tensor, memory_format: OptionalMemoryFormat) -> Tensor:
    if memory_format is preserve_format:  # torch: the format that the strides are like, and not the strides themselves
        memory_format = contiguous_format
        if has_channels_last(the_template._array):
            memory_format = channels_last if the_template.dim() == 4 else channels_last_3d
    return _resize_op(self, the_template._array.shape, memory_format=memory_format)


op(
    "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    composite=_resize_as,
)


@public("method")
def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Shape | None = None,
    stride: Shape | None = None,
) -> Tensor:
    """Make this tensor use other memory: another tensor's, a storage's, or none."""
    if source is None:
        source = new_storage(0, self.device)
    elif isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise RuntimeError(f"Could not set tensor of type {source.dtype.cpp_name} to a tensor of type {self.dtype.cpp_name}")
    elif not isinstance(source, UntypedStorage):
        found = source.dtype
        if found is not self.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {self.dtype.cpp_name} or an UntypedStorage, but got type {found.scalar_name} for "
                "argument 1 'storage'"
            )
        source = source._untyped_storage
    if source.device.type != self.device.type:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{self.device}" to a storage on different device "{source.device}".  '
            "This is no longer allowed; the devices must match."
        )
    if storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    if isinstance(source, Tensor):
        self._storage = source._storage
        set_array(self, source._array)
        if size is None:
            return self
    else:
        self._storage = source
        if size is None:
            size = (source.nbytes() // self.dtype.itemsize - storage_offset,)
    set_array(self, _strided_over(self, storage_offset, size, stride))
    return self


def _strided_over(self: Tensor, storage_offset: int, size: Sequence[int], stride: Sequence[int] | None) -> Array:
    size = tuple(size)
    strides = contiguous_strides(size) if not stride else tuple(stride)
    if 0 not in size and self.device.type == "cpu":  # torch: a storage that is too small grows
        reach = storage_offset + 1 + sum((n - 1) * s for n, s in zip(size, strides, strict=True))
        grow_storage(self._storage, reach * self.dtype.itemsize)
    return reshaping.strided_array(self, size, strides, storage_offset)
