"""Sorting, and the elements of a rank: topk, kthvalue, median, mode."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _checks, _dtype
from ..._backends.cpu.indexing import sorting as kernels
from ..._backends.cpu.machinery.dtype_rules import unimplemented
from ..._backends.cpu.machinery.dtypes import BFLOAT
from ..._backends.meta.adapter import meta_tensor
from ..machinery.declare import op
from ..reductions.extrema import SELECTED, evenly_distributed_formula, value_selecting_reduction_backward
from ..reductions.sums import check_nonempty

Array = np.ndarray[Any, Any]
VALUES = "(Tensor values, Tensor indices)"
VALUE_AND_INDEX = (lambda self, *_: self.dtype, lambda *_: _dtype.int64)  # dtypes of the two


def _refuse(name: str, self: Array, kinds: str) -> None:
    """Refuse dtypes of these kinds, as torch's kernel of this name does."""
    if self.dtype.kind in kinds and self.dtype != BFLOAT:
        raise unimplemented(name, self)


def _sort(self: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    if self.dtype.kind == "c":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    dim = _checks.wrap_dim(dim, self.ndim)
    return kernels.sort(self, dim, bool(descending))


_SORT_GRAD = {
    "self": lambda grad, dim, indices, self_shape: value_selecting_reduction_backward(grad, dim, indices, self_shape, True),
}
sort = op(
    f"sort(Tensor self, int dim=-1, bool descending=False) -> {VALUES}",
    cpu=_sort,
    shape=lambda self, dim: (meta_tensor(self._array.shape, self.dtype), meta_tensor(self._array.shape, _dtype.int64)),
    nondifferentiable=("indices",),
    tags=("exact_out",),
    grad=_SORT_GRAD,
)
sort_stable = op(
    f"sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> {VALUES}",
    cpu=_sort,
    shape=lambda self, dim: (meta_tensor(self._array.shape, self.dtype), meta_tensor(self._array.shape, _dtype.int64)),
    nondifferentiable=("indices",),
    tags=("exact_out",),
    node="SortBackward1",
    grad=_SORT_GRAD,
)
argsort = op(
    "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    composite=lambda self, dim, descending: sort(self, dim, descending)[1],
)
argsort_stable = op(
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    composite=lambda self, stable, dim, descending: sort_stable(self, stable=stable, dim=dim, descending=descending)[1],
)
msort = op("msort(Tensor self) -> Tensor", composite=lambda self: sort(self, 0, False)[0], tags=("exact_out",))


def _topk(self: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    if isinstance(dim, bool):  # which is easily meant for `largest`
        raise TypeError("topk(): argument 'dim' (position 2) must be int, not bool")
    dim = _checks.wrap_dim(dim, self.ndim)
    if k < 0 or k > (self.shape[dim] if self.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if self.dtype.kind == "c":
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if self.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU")
    return kernels.topk(self, k, dim, largest)


topk = op(
    f"topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> {VALUES}",
    cpu=_topk,
    nondifferentiable=("indices",),
    tags=("exact_out", "disjoint_out"),
    grad=_SORT_GRAD,
)


def _kept(found: tuple[Array, Array], dim: int, keepdim: bool) -> tuple[Array, Array]:
    values, indices = found[0].squeeze(dim), found[1].squeeze(dim)
    if not keepdim:
        return values, indices
    shape = (*values.shape[:dim], 1, *values.shape[dim:])
    return values.reshape(shape), indices.reshape(shape)


def _kthvalue(self: Array, k: int, dim: int, keepdim: bool) -> tuple[Array, Array]:
    dim = _checks.wrap_dim(dim, self.ndim)
    n = self.shape[dim] if self.ndim else 1
    if self.ndim and not self.shape[dim]:
        raise IndexError(f"kthvalue(): Expected reduction dim {dim} to have non-zero size.")
    if not 0 < k <= n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    _refuse("kthvalue_cpu", self, "bc")
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    return _kept(kernels.select_kth(self, k - 1, dim), dim, keepdim)


kthvalue = op(
    f"kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> {VALUES}",
    cpu=_kthvalue,
    nondifferentiable=("indices",),
    tags=("exact_out", "disjoint_out"),
    grad=SELECTED,
)


def _median_all(self: Array, *, ignore_nan: bool) -> Array:
    _refuse("median_cpu", self, "bc")
    if not self.size:
        if self.dtype.kind in "biu":
            # torch: an empty integer tensor's median is the dtype's own idea of NaN
            return np.asarray(np.iinfo(self.dtype).min if self.dtype.kind != "b" else 1, self.dtype)
        return np.asarray(math.nan, self.dtype)
    return kernels.median(self.reshape(-1), 0, ignore_nan=ignore_nan)[0].reshape(())


def _median_dim(name: str, self: Array, dim: int, keepdim: bool, *, ignore_nan: bool) -> tuple[Array, Array]:
    dim = _checks.wrap_dim(dim, self.ndim)
    check_nonempty(name, self, dim)
    _refuse("median_out", self, "bc")
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    return _kept(kernels.median(self, dim, ignore_nan=ignore_nan), dim, keepdim)


def _median_operators(name: str, *, ignore_nan: bool) -> tuple[Any, Any]:
    title = name.capitalize()
    whole = op(
        f"{name}(Tensor self) -> Tensor",
        cpu=lambda self: _median_all(self, ignore_nan=ignore_nan),
        node=f"{title}Backward0",
        grad={"self": evenly_distributed_formula},
    )
    by_dim = op(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> {VALUES}",
        cpu=lambda self, dim, keepdim: _median_dim(name, self, dim, keepdim, ignore_nan=ignore_nan),
        nondifferentiable=("indices",),
        tags=("exact_out", "disjoint_out"),
        node=f"{title}Backward1",
        grad=SELECTED,
    )
    return whole, by_dim


median, median_dim = _median_operators("median", ignore_nan=False)
nanmedian, nanmedian_dim = _median_operators("nanmedian", ignore_nan=True)


def _mode(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    dim = _checks.wrap_dim(dim, self.ndim)
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    if not self.shape[dim]:
        raise IndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    if not self.size:
        shape = tuple(1 if i == dim else n for i, n in enumerate(self.shape))
        return _kept((np.empty(shape, self.dtype), np.empty(shape, np.int64)), dim, keepdim)
    _refuse("mode_cpu", self, "c")
    return _kept(kernels.mode(self, dim), dim, keepdim)


mode = op(
    f"mode(Tensor self, int dim=-1, bool keepdim=False) -> {VALUES}",
    cpu=_mode,
    nondifferentiable=("indices",),
    tags=("exact_out", "disjoint_out"),
    grad=SELECTED,
)
