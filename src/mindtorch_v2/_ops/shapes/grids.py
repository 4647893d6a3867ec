"""Combinations of vectors: meshgrid, cartesian_prod, combinations, one_hot."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

from ..._dispatch import registry
from ..._dtype import bool_, int64
from ..._tensor import Tensor
from ..machinery.declare import op, public
from ..machinery.lookup import aten
from .joining import stack
from .reshaping import expand, flatten, unsqueeze, view

# --- meshgrid -------------------------------------------------------------------------------------------------------


def _meshgrid(tensors: Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in tensors:
        if t.dim() > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t.dim()}-D")
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
        if t.device != tensors[0].device:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same device")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(tensors) >= 2
    ordered = [tensors[1], tensors[0], *tensors[2:]] if swap else list(tensors)
    shape = tuple(t.numel() for t in ordered)
    ones = [1] * len(shape)
    grids = []
    for i, t in enumerate(ordered):
        ones[i] = shape[i]
        grids.append(expand(view(t, tuple(ones)), shape))
        ones[i] = 1
    return (grids[1], grids[0], *grids[2:]) if swap else tuple(grids)


_meshgrid_op = op("meshgrid(Tensor[] tensors) -> Tensor[]", composite=lambda tensors: _meshgrid(tensors), variants="function")
_meshgrid_indexing = op(
    "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", composite=_meshgrid, variants="function"
)


@public("function")
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinate grids of vectors."""
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else list(tensors)
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", UserWarning, stacklevel=3
        )
        return _meshgrid_op(given)
    return _meshgrid_indexing(given, indexing=indexing)


def _cartesian_prod(tensors: Sequence[Tensor]) -> Tensor:
    for t in tensors:
        if t.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t._array.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    grids = _meshgrid_indexing(list(tensors), indexing="ij")
    return stack([flatten(g) for g in grids], 1)


_cartesian_prod_op = op("cartesian_prod(Tensor[] tensors) -> Tensor", composite=_cartesian_prod, variants="function")


@public("function")
def cartesian_prod(*tensors: Any) -> Tensor:
    """All tuples of one element of each vector, one per row."""
    return _cartesian_prod_op(list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else list(tensors))


_MOST = 64  # dimensions of a NumPy array


def _combinations(self: Tensor, r: int, with_replacement: bool) -> Tensor:
    if self.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self._array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return aten.empty(size=(0,), dtype=self.dtype, device=self.device)
    n = self.numel()
    if r > _MOST and n <= 1:
        return stack([self[: n if with_replacement else 0]] * r, 1)
    grids = _meshgrid_indexing([self] * r, indexing="ij")
    positions = _meshgrid_indexing([aten.arange(n, device=self.device)] * r, indexing="ij")
    mask = aten.full(size=(n,) * r, fill_value=True, dtype=bool_, device=self.device)
    for before, after in itertools.pairwise(positions):
        mask = mask.mul_(before <= after if with_replacement else before < after)
    return stack([aten.masked_select(g, mask) for g in grids], 1)


combinations = op(
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", composite=_combinations, variants="function"
)

# --- one_hot --------------------------------------------------------------------------------------------------------


def _one_hot(self: Tensor, num_classes: int) -> Tensor:
    if self.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    shape = self._array.shape
    if not self.numel():
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return aten.zeros(size=(*shape, num_classes), dtype=int64, device=self.device)
    low, high = aten.aminmax(self)
    if low.item() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(high.item()) + 1
    elif num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    elif high.item() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    result = aten.zeros(size=(*shape, num_classes), dtype=int64, device=self.device)
    result._storage.version += 1  # torch: zeros made inside an operator count as written
    return registry.entry("scatter_", "value")(result, -1, unsqueeze(self, -1), 1)


one_hot = op("one_hot(Tensor self, int num_classes=-1) -> Tensor", composite=_one_hot, variants="")
