"""Histograms and counts of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._backends.cpu.machinery.dtype_rules import unimplemented
from ..._backends.cpu.reductions import histogram as kernels
from ..._checks import no_dimensions
from ..._tensor import Tensor
from ..._types import Number
from ..machinery.declare import op

Array = np.ndarray[Any, Any]
_OPTIONS = "Tensor? weight=None, bool density=False"


def _bincount(self: Array, weights: Array | None, minlength: int) -> Array:
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if self.dtype.kind not in "iu":
        raise unimplemented("bincount_cpu", self)
    if self.ndim != 1 or (self.size and self.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if weights is None:
        return np.bincount(self, minlength=minlength).astype(np.int64, copy=False)
    # torch: weights of float32 are added up in float32, all others in float64
    counted = np.bincount(self, weights.astype(np.float64), minlength)
    return counted.astype(np.float32) if weights.dtype == np.float32 else counted


def _histc(self: Array, bins: int, min: Number, max: Number) -> Array:
    return kernels.histc(self, bins, min, max)


bincount = op(
    "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
    cpu=_bincount,
    tags=("data_dependent", "nondifferentiable"),
)
histc = op(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    cpu=_histc,
    tags=("exact_out", "nondifferentiable"),
)


def _points(self: Array) -> Array:
    return self.reshape(-1, self.shape[-1])


def _by_edges(self: Array, bins: list[Array], weight: Array | None, density: bool) -> Array:
    if self.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if any(edges.dtype != self.dtype for edges in bins):
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{self.dtype} and bins of {', '.join(str(edges.dtype) for edges in bins)}"
        )
    kernels.check_dtype("histogramdd", self)
    if len(bins) != self.shape[-1]:
        raise RuntimeError(
            f"torch.histogramdd: expected {self.shape[-1]} sequences of bin edges for a {self.shape[-1]}-dimensional histogram but got {len(bins)}"
        )
    for i, edges in enumerate(bins):
        if edges.ndim != 1:
            raise RuntimeError(f"torch.histogramdd: bins tensor should have one dimension, but got {edges.ndim} dimensions in the bins tensor for dimension {i}")  # fmt: skip
        if not edges.size:
            raise RuntimeError(f"torch.histogramdd: bins tensor should have at least 1 element, but got {edges.size} elements in the bins tensor for dimension {i}")  # fmt: skip
    kernels.check_weight(self, weight)
    return kernels.count(_points(self), bins, weight, density)


def _edges(self: Array, bins: Sequence[int], range: Sequence[float] | None) -> list[Array]:
    kernels.check_dtype("histogramdd", self)
    if self.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if len(bins) != self.shape[-1]:
        raise RuntimeError(
            f"torch.histogramdd: expected {self.shape[-1]} bin counts for a {self.shape[-1]}-dimensional histogram but got {len(bins)}"
        )
    kernels.check_bins(bins)
    ends = kernels.outer_edges(_points(self), range)
    return [kernels.linear_edges(low, high, n, self.dtype) for (low, high), n in zip(ends, bins, strict=True)]


def _by_counts(self: Array, bins: Sequence[int], range: Sequence[float] | None, weight: Array | None, density: bool) -> Array:
    edges = _edges(self, bins, range)
    kernels.check_weight(self, weight)
    return kernels.count(_points(self), edges, weight, density)


def _histogram_of_edges(self: Array, bins: Array, weight: Array | None, density: bool) -> tuple[Array, Array]:
    flat_weight = None if weight is None else weight.reshape(-1)
    return _by_edges(self.reshape(-1, 1), [bins], flat_weight, density), bins.copy()


def _histogram(self: Array, bins: int, range: Sequence[float] | None, weight: Array | None, density: bool) -> tuple[Array, Array]:
    column = self.reshape(-1, 1)
    (edges,) = _edges(column, [bins], range)
    flat_weight = None if weight is None else weight.reshape(-1)
    kernels.check_weight(column, flat_weight)
    return kernels.count(column, [edges], flat_weight, density), edges


histogram_of_edges = op(
    f"histogram.bins_tensor(Tensor self, Tensor bins, *, {_OPTIONS}) -> (Tensor hist, Tensor bin_edges)", cpu=_histogram_of_edges
)
histogram = op(
    f"histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, {_OPTIONS}) -> (Tensor hist, Tensor bin_edges)",
    cpu=_histogram,
)
_histogramdd_bin_edges = op(
    f"_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, {_OPTIONS}) -> Tensor[]",
    cpu=_edges,
    variants="function",
)
_histogramdd_from_bin_cts = op(
    f"_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, {_OPTIONS}) -> Tensor",
    cpu=_by_counts,
    variants="function",
)
_histogramdd_from_bin_tensors = op(
    f"_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, {_OPTIONS}) -> Tensor",
    cpu=_by_edges,
    variants="function",
)
_DD = f"float[]? range=None, {_OPTIONS}) -> (Tensor hist, Tensor[] bin_edges)"


def _histogramdd(
    self: Tensor, bins: Sequence[int], range: Sequence[float] | None, weight: Tensor | None, density: bool
) -> tuple[Tensor, Any]:
    if self.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if len(bins) != self._array.shape[-1]:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    edges = _histogramdd_bin_edges(self, bins, range=range, weight=weight, density=density)
    hist = _histogramdd_from_bin_cts(self, bins, range=range, weight=weight, density=density)
    return hist, tuple(edges)


def _histogramdd_tensors(
    self: Tensor, bins: Sequence[Tensor], range: Sequence[float] | None, weight: Tensor | None, density: bool
) -> tuple[Tensor, Any]:
    return _histogramdd_from_bin_tensors(self, bins, weight=weight, density=density), tuple(bins)


def _histogramdd_equal(
    self: Tensor, bins: int, range: Sequence[float] | None, weight: Tensor | None, density: bool
) -> tuple[Tensor, Any]:
    if not self.dim():
        raise no_dimensions(-1)
    return _histogramdd(self, [bins] * self._array.shape[-1], range, weight, density)


histogramdd_of_edges = op(
    f"histogramdd.TensorList_bins(Tensor self, Tensor[] bins, {_DD}", composite=_histogramdd_tensors, variants="function"
)
histogramdd = op(f"histogramdd(Tensor self, int[] bins, {_DD}", composite=_histogramdd, variants="function")
histogramdd_of_count = op(
    f"histogramdd.int_bins(Tensor self, int bins, {_DD}",
    composite=_histogramdd_equal,
    variants="function",
)
