"""Factories of tensors without elements that are not zero, in sparse layouts: `zeros`, `empty`, and those after another tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _dtype
from ..._creation import checked_shape, device_of, dtype_of
from ..._device import cpu
from ..._dispatch import keys
from ..._memory_format import layout, sparse_coo
from ..._tensor import Tensor
from ..machinery.factory import SPARSE_FACTORIES
from .compressed import BLOCKS, COMPRESSED_LAYOUTS, compress_coordinates, storage_of
from .construction import empty_coo
from .copies import check_format
from .storage import layout_name

__all__: list[str] = []


def _name(which: layout) -> str:
    return "Sparse" + str(which).removeprefix("torch.sparse_").capitalize()


def _of_size(name: str, size: Sequence[int], d: _dtype.dtype, which: layout, dense_dim: int = 0) -> Tensor:
    """A tensor of this size and layout without any element."""
    if which is sparse_coo:
        return empty_coo(size, d, dense_dim)
    if which in BLOCKS:
        raise RuntimeError(f"{name}_sparse_compressed expected sparse compressed (non-block) tensor layout but got {_name(which)}")
    if len(size) - dense_dim < 2:
        raise RuntimeError(
            f"torch.{name}: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}"
        )
    return compress_coordinates(empty_coo(size, d, dense_dim), which, None)


def _check_device(name: str, given: dict[str, Any]) -> None:
    if device_of(given["device"]) != cpu:
        raise NotImplementedError(f"{name}: sparse tensors are on the CPU only, not on {given['device']}")


def _by_size(name: str) -> Callable[[dict[str, Any]], Tensor]:
    def make(given: dict[str, Any]) -> Tensor:
        _check_device(name, given)
        check_format(name, given.get("memory_format"))
        return _of_size(name, checked_shape(given["size"]), dtype_of(given["dtype"]), given["layout"])

    return make


def _after(name: str) -> Callable[[dict[str, Any]], Tensor]:
    """Of another size, in the dtype of a tensor."""

    def make(given: dict[str, Any]) -> Tensor:
        _check_device(name, given)
        d = given["self"].dtype if given["dtype"] is None else dtype_of(given["dtype"])
        return _of_size(name.removeprefix("new_"), checked_shape(given["size"]), d, given["layout"])

    return make


def _like(name: str) -> Callable[[dict[str, Any]], Tensor]:
    """Of the size of a tensor: its dimensions of values, and its blocks where both have some, stay."""

    def make(given: dict[str, Any]) -> Tensor:
        self, which = given["self"], given["layout"]
        _check_device(name, given)
        check_format(name, given["memory_format"])
        d = self.dtype if given["dtype"] is None else dtype_of(given["dtype"])
        if name == "empty_like" and which is not self.layout and not self._keys & keys.SPARSE:
            if not self._keys & keys.SPARSE_LAYOUTS:
                raise NotImplementedError(f"empty_like makes no tensor of layout {which} like a dense one; call zeros_like")
            raise RuntimeError(f"empty_like with different sparse layout is not supported (self is {layout_name(self)} and you requested {_name(which)})")  # fmt: skip
        dense_dim = self.dense_dim() if self._keys & keys.SPARSE_LAYOUTS else 0
        blocks = storage_of(self).blocksize if self.layout in BLOCKS else None
        if which in COMPRESSED_LAYOUTS and (blocks is None) == (which in BLOCKS):
            needed = "needs to be a tuple of two numbers for" if blocks is None else "cannot be specified for non-block"
            raise RuntimeError(f"{name}: blocksize {needed} layout {_name(which)}; self is {layout_name(self)}")
        if blocks is None:
            return _of_size(name.removesuffix("_like"), self._array.shape, d, which, dense_dim)
        made = empty_coo(self._array.shape, d, dense_dim)
        return made if which is sparse_coo else compress_coordinates(made, which, blocks)

    return make


for _layout in (sparse_coo, *COMPRESSED_LAYOUTS):
    SPARSE_FACTORIES["zeros"][_layout] = _by_size("zeros")
    SPARSE_FACTORIES["empty"][_layout] = _by_size("empty")
    SPARSE_FACTORIES["new_zeros"][_layout] = _after("new_zeros")
    SPARSE_FACTORIES["new_empty"][_layout] = _after("new_empty")
    SPARSE_FACTORIES["zeros_like"][_layout] = _like("zeros_like")
    SPARSE_FACTORIES["empty_like"][_layout] = _like("empty_like")
