"""Kernels of group normalisation, on a view of the input in which each group of channels of a sample is a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..linalg.rank_one import add_outer
from ..machinery.dtype_rules import check_parameters, unimplemented
from ..machinery.half_precision import widened
from .row_moments import LARGE, quick_moments, row_moments, row_sums

Array = np.ndarray[Any, Any]


def native_group_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Array, Array, Array]:
    if group <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {group}")
    if min(N, C) < 0 or C % group or input.size != N * C * HxW:
        raise RuntimeError(
            f"Expected {input.size} elements in {group} groups of channels, but got N = {N}, C = {C} and HxW = {HxW}"
        )
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and p.shape != (C,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape "
                f"{list(p.shape)} and input of shape {list(input.shape)}"
            )
    check_parameters(input, weight, bias)
    if input.dtype.kind in "biuc":
        raise unimplemented("GroupNormKernelImpl", input)
    return _group_norm(input, weight, bias, N, C, max(HxW, 0), group, eps)


def _group_norm_of_images(
    x: Array, weight: Array | None, bias: Array | None, group: int, eps: float
) -> tuple[Array, Array, Array] | None:
    """Group norm as one factor and one term for each channel, an image at a time: two passes of the whole array less.

    None when a mean is too large for the quick variance.
    """
    n, c, hw = x.shape
    x = np.ascontiguousarray(x)
    out, mean, rstd = np.empty(x.shape, x.dtype), np.empty((n, group), x.dtype), np.empty((n, group), x.dtype)
    ones = np.ones(c // group * hw, x.dtype)
    for i in range(n):
        if not quick_moments(x[i].reshape(group, -1), ones, mean[i], rstd[i]):
            return None
        rstd[i] += eps
        np.sqrt(rstd[i], out=rstd[i])
        np.divide(1, rstd[i], out=rstd[i])
        factor = np.repeat(rstd[i], c // group)
        if weight is not None:
            factor *= weight
        term = np.repeat(mean[i], c // group)
        term *= factor
        np.negative(term, out=term)
        if bias is not None:
            term += bias
        np.multiply(x[i], factor[:, None], out=out[i])
        add_outer(out[i], term, ones[:hw])
    return out, mean, rstd


@widened
def _group_norm(
    x: Array, weight: Array | None, bias: Array | None, n: int, c: int, hw: int, group: int, eps: float
) -> tuple[Array, Array, Array]:
    if x.size >= LARGE and hw >= 64 and all(p is None or p.dtype == x.dtype for p in (weight, bias)):
        made = _group_norm_of_images(x.reshape(n, c, hw), weight, bias, group, eps)
        if made is not None:
            return made[0].reshape(x.shape), made[1], made[2]
    out, mean, rstd = row_moments(x.reshape(n * group, c // group * hw), eps)
    out *= rstd
    by_channel = out.reshape(n, c, hw)
    if weight is not None:
        by_channel *= weight[None, :, None]
    if bias is not None:
        by_channel += bias[None, :, None]
    return out.reshape(x.shape), mean.reshape(n, group), rstd.reshape(n, group)


@widened
def native_group_norm_backward(
    grad_out: Array,
    input: Array,
    mean: Array,
    rstd: Array,
    weight: Array | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Sequence[bool],
) -> tuple[Array | None, Array | None, Array | None]:
    rows = (N * group, C // group * HxW)
    g = grad_out.reshape(N, C, HxW)
    centred = input.reshape(rows) - mean.reshape(-1, 1)
    scale = rstd.reshape(-1, 1)
    to_weight = to_bias = to_input = None
    if output_mask[1]:
        to_weight = np.einsum("ncl,ncl->nc", g, (centred * scale).reshape(N, C, HxW)).sum(0)
    if output_mask[2]:
        to_bias = g.sum(2, dtype=g.dtype).sum(0, dtype=g.dtype)
    if output_mask[0]:
        scaled = g if weight is None else g * weight[None, :, None]
        to_input = _row_gradient(scaled.reshape(rows), centred, scale).reshape(input.shape)
    return to_input, to_weight, to_bias


def _row_gradient(g: Array, centred: Array, rstd: Array) -> Array:
    """rstd * (g - mean(g) - x_hat * mean(g * x_hat)), row by row; overwrites `centred`.

    torch: the terms are added in this order, so that rounding leaves what it leaves there.
    """
    n = max(g.shape[1], 1)
    along = np.vecdot(g, centred)[:, None]
    mean = row_sums(g)
    mean *= rstd
    mean /= n
    along *= rstd * rstd * rstd
    along /= -n
    centred *= along
    out = g * rstd
    out += centred
    out -= mean
    return out
