"""New memory filled with values that show: NaN, or the largest integer. The layer exists while deterministic algorithms are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._dispatch import dispatcher, keys
from ._dispatch.codegen import Body
from ._dispatch.op import Op
from ._tensor import Tensor

__all__ = ["fill", "set_filling"]

_MAKING = frozenset("empty empty_like empty_strided empty_permuted new_empty new_empty_strided".split())
_RESIZING = frozenset(("resize_", "resize_as_"))


_on = False


def set_filling(on: bool) -> None:
    """Whether new memory is filled from now on."""
    global _on
    if on != _on:
        _on = on
        (dispatcher.activate if on else dispatcher.deactivate)(keys.FILLING)


def filling_layer(op: Op, full: int, body: Body) -> Body:
    """Fill what an operator returns, or what it added to its tensor, after its body."""
    if full & (keys.META | keys.SPARSE_LAYOUTS):
        return body
    if op.name in _MAKING:
        return body.edited([*body.lines, "fill(result._array)"], {"fill": fill})
    if op.name in _RESIZING:
        lines = ["before_ = self._storage.nbytes() // self.dtype.itemsize", *body.lines, "fill_added(self, before_)"]
        return body.edited(lines, {"fill_added": _fill_added})
    return body


def fill(array: Any) -> None:
    """Fill an array with what nobody would take for a result."""
    kind = array.dtype.kind
    if kind == "b":
        array.fill(True)
    elif kind in "iu":
        array.fill(np.iinfo(array.dtype).max)
    else:
        array.fill(np.nan)


def _fill_added(t: Tensor, before: int) -> None:
    """Fill the elements of a storage from a position on."""
    memory = t._storage.bytes()
    fill(memory[before * t.dtype.itemsize : len(memory) // t.dtype.itemsize * t.dtype.itemsize].view(t.dtype.np))


dispatcher.register_layer(keys.FILLING, filling_layer)
