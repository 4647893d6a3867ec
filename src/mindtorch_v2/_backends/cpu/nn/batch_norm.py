"""Kernels of batch normalisation, on a view of the input as (batch, channel, rest), or as (rest, channel) where channels are last in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._checks import dimension_error
from ..machinery.dtype_rules import check_parameters, refuse

Array = np.ndarray[Any, Any]


def _channels(x: Array) -> Array:
    """As (batch, channel, rest)."""
    return x.reshape(x.shape[0], x.shape[1], math.prod(x.shape[2:]))


def _has_channels_last(x: Array) -> bool:
    return x.ndim in (4, 5) and not x.flags.c_contiguous and np.moveaxis(x, 1, -1).flags.c_contiguous


def _in_order(x: Array) -> Array:
    """Row by row, or with the channels last: the two layouts that results have."""
    return x if x.flags.c_contiguous or _has_channels_last(x) else np.ascontiguousarray(x)


def _rows_of_channels(x: Array) -> Array:
    """(everything else, channel): a view when channels are last in memory."""
    return np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])


def _image_of(rows: Array, shape: tuple[int, ...]) -> Array:
    """Rows of channels as an array of this shape, with its channels last in memory."""
    return np.moveaxis(rows.reshape(shape[0], *shape[2:], shape[1]), -1, 1)


def _channel_sum(x: Array) -> Array:
    """Sums over all but the channels."""
    if x.shape[2] == 1:
        return x[:, :, 0].sum(0, dtype=x.dtype)
    return x.sum(2, dtype=x.dtype).sum(0, dtype=x.dtype)


def _channel_dot(x: Array, y: Array) -> Array:
    """Sums of products over all but the channels."""
    if x.shape[2] == 1:
        return np.einsum("nc,nc->c", x[:, :, 0], y[:, :, 0])
    return np.einsum("ncl,ncl->nc", x, y).sum(0)


def _check_channels(channels: int, **given: Array | None) -> None:
    for name, a in given.items():
        if a is not None and a.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {a.size}")


def native_batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """Normalise every channel; the running statistics are updated in place while training.

    torch: those writes do not count as modifications, so that two forward passes may precede a backward pass.
    """
    if input.dtype.kind not in "fV":
        refuse("batch_norm", input, "bic")
    if input.ndim < 2:
        raise dimension_error(1, 1)
    for statistics in (running_mean, running_var):
        if statistics is not None and statistics.ndim != 1:
            raise RuntimeError(f"TensorAccessor expected 1 dims but tensor has {statistics.ndim}")
    check_parameters(input, weight, bias, running_mean, running_var)
    input = _in_order(input)
    dtype = input.dtype
    if not input.size:
        if training:
            raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {list(input.shape)}")
        return np.empty_like(input), np.empty(0, dtype), np.empty(0, dtype)
    _check_channels(input.shape[1], weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    weight, bias = (None if a is None else a.reshape(-1) for a in (weight, bias))
    if _has_channels_last(input):
        made = native_batch_norm(_rows_of_channels(input), weight, bias, running_mean, running_var, training, momentum, eps)
        return _image_of(made[0], input.shape), made[1], made[2]
    wide = input.astype(np.float32) if dtype.itemsize == 2 else input
    x = _channels(wide)
    stats_dtype = _stats_dtype(dtype, weight, running_mean)
    empty = np.empty(0, stats_dtype)
    if training:
        n = x.shape[0] * x.shape[2]
        mean = _channel_sum(x) / n
        out = x - mean[None, :, None]
        var = _channel_dot(out, out) / n
        save_mean, save_invstd = mean, 1 / np.sqrt(var + eps)
        _update_running(running_mean, running_var, mean, var, n, momentum)
        invstd = save_invstd
    else:
        assert running_mean is not None
        assert running_var is not None
        out = x - running_mean.astype(x.dtype, copy=False)[None, :, None]
        invstd = 1 / np.sqrt(running_var.astype(x.dtype, copy=False) + eps)
        save_mean = save_invstd = empty
    scale = invstd if weight is None else invstd * weight.astype(x.dtype, copy=False)
    out *= scale.astype(x.dtype, copy=False)[None, :, None]
    if bias is not None:
        out += bias.astype(x.dtype, copy=False)[None, :, None]
    result = out.reshape(input.shape).astype(dtype, copy=False)
    return result, save_mean.astype(stats_dtype, copy=False), save_invstd.astype(stats_dtype, copy=False)


def _stats_dtype(dtype: np.dtype[Any], weight: Array | None, running_mean: Array | None) -> Any:
    if dtype.itemsize == 2:
        for parameter in (weight, running_mean):
            if parameter is not None:
                return parameter.dtype
    return dtype


def _update_running(
    running_mean: Array | None, running_var: Array | None, mean: Array, var: Array, n: int, momentum: float
) -> None:
    if running_mean is not None:
        running_mean[...] = momentum * mean + (1 - momentum) * running_mean.astype(mean.dtype, copy=False)
    if running_var is not None:
        unbiased = var * (n / (n - 1)) if n > 1 else var * np.nan
        running_var[...] = momentum * unbiased + (1 - momentum) * running_var.astype(var.dtype, copy=False)


def native_batch_norm_backward(
    grad_out: Array,
    input: Array,
    weight: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    save_mean: Array | None,
    save_invstd: Array | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> tuple[Array | None, Array | None, Array | None]:
    if not input.size:
        channels = np.zeros(input.shape[1] if input.ndim > 1 else 0, input.dtype)
        return np.zeros_like(input), channels, channels.copy()
    input = _in_order(input)
    if _has_channels_last(input):
        rows = (_rows_of_channels(grad_out), _rows_of_channels(input))
        stats = (running_mean, running_var, save_mean, save_invstd)
        to_rows, *rest = native_batch_norm_backward(*rows, weight, *stats, train, eps, output_mask)
        return None if to_rows is None else _image_of(to_rows, input.shape), rest[0], rest[1]
    compute = np.dtype(np.float32) if input.dtype.itemsize == 2 else input.dtype
    g, x = (_channels(a.astype(compute, copy=False)) for a in (grad_out, input))
    if train:
        assert save_mean is not None
        assert save_invstd is not None
        mean, invstd = save_mean.astype(compute, copy=False), save_invstd.astype(compute, copy=False)
    else:
        assert running_mean is not None
        assert running_var is not None
        mean = running_mean.astype(compute, copy=False)
        invstd = 1 / np.sqrt(running_var.astype(compute, copy=False) + eps)
    parameter_dtype = input.dtype if weight is None else weight.dtype
    sum_g = _channel_sum(g) if output_mask[2] or (train and output_mask[0]) else None
    to_input = to_weight = None
    scale = invstd if weight is None else invstd * weight.astype(compute, copy=False)
    if train or output_mask[1]:
        centred = x - mean[None, :, None]
        dot = _channel_dot(g, centred)
        to_weight = (dot * invstd).astype(parameter_dtype) if output_mask[1] else None
        if train and output_mask[0]:
            assert sum_g is not None
            n = x.shape[0] * x.shape[2]
            centred *= (-dot * invstd * invstd / n).astype(compute, copy=False)[None, :, None]
            centred += g
            centred -= (sum_g / n).astype(compute, copy=False)[None, :, None]
            centred *= scale[None, :, None]
            to_input = centred
    if output_mask[0] and not train:
        to_input = g * scale[None, :, None]
    return (
        None if to_input is None else to_input.reshape(input.shape).astype(input.dtype, copy=False),
        to_weight,
        sum_g.astype(parameter_dtype, copy=False) if output_mask[2] and sum_g is not None else None,
    )
