"""Contents of integer tensors that an execution trace keeps, because they decide what some operators do: indices, offsets.

ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_RANGE=1     smallest and largest, as `tensor_range` of each node
ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_DATA=aten::embedding,…     all elements, a file each, for these operators
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .... import _device
from ...._dispatch import keys
from ...._tensor import Tensor

__all__ = ["Extras", "from_environment"]

PREFIX = "ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_"


class Extras:
    """The contents to keep."""

    def __init__(self, *, ranges: bool, data_of: frozenset[str], folder: Callable[[], str | None]) -> None:
        self._ranges = ranges
        self._data_of = data_of
        self._folder = folder

    def of(self, operator: str, node: int, arguments: tuple[Any, ...]) -> str:
        """The `tensor_range` of a call; writes files for some operators."""
        found = [(i, t) for i, t in enumerate(_tensors(arguments)) if t is not None and _is_integral(t)]
        if operator in self._data_of:
            self._write(node, found)
        if not self._ranges or not found:
            return ""
        texts = [f'\\"{i}\\":[{t._array.min()},{t._array.max()}]' for i, t in found]
        return f"{{{','.join(texts)}}}"

    def _write(self, node: int, tensors: list[tuple[int, Tensor]]) -> None:
        folder = self._folder()
        if folder is None:
            return
        for i, t in tensors:
            with contextlib.suppress(OSError):  # no reason to keep the operator from running
                np.ascontiguousarray(t._array).tofile(os.path.join(folder, f"nid_{node}_tid_{i}.dat"))


def _tensors(arguments: tuple[Any, ...]) -> Iterator[Tensor | None]:
    """The tensors among the arguments, in lists too. Each counts, whatever it holds."""
    for value in arguments:
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, Tensor):
                yield item


def _is_integral(t: Tensor) -> bool:
    if t._keys & keys.SPARSE_LAYOUTS or t.device is not _device.cpu:
        return False
    return t._array.dtype.kind in "iu" and t._array.size > 0


def from_environment(folder: Callable[[], str | None]) -> Extras | None:
    """Return what the environment asks for, or None; `folder` says where files belong."""
    ranges = os.environ.get(f"{PREFIX}RANGE", "0") == "1"
    data_of = frozenset(name.strip() for name in os.environ.get(f"{PREFIX}DATA", "").split(",") if name.strip())
    return Extras(ranges=ranges, data_of=data_of, folder=folder) if ranges or data_of else None
