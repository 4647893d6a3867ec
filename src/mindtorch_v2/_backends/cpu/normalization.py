"""Kernels of layer, batch and group normalisation.

Each works on a view of the input in which the normalised elements are the last axis of a matrix (layer, group) or the first
and last axes of a three-dimensional array (batch), and writes to few buffers: what bounds them is memory, not arithmetic.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._checks import dimension_error
from ..._dtype import FROM_NUMPY
from .activation import unimplemented, widened
from .dtype_rules import refuse
from .floating_errors import silent
from .rank_one import add_outer
from .reduction import FLOAT, SQUARES

Array = np.ndarray[Any, Any]
_ONE = np.ones((), FLOAT)
_COUNTS = [np.array(n, FLOAT) for n in range(len(SQUARES))]
_LARGE = 1 << 16  # elements from which blocks and BLAS pay
_BLOCK = 1 << 18  # elements handled at a time, in a scratch array that stays in the cache


def _row_sums(x: Array) -> Array:
    """Sums along rows as a product with ones: BLAS takes 0.09 ms a million, `np.add.reduce` 0.22."""
    if x.size < 4096:
        return np.add.reduce(x, 1, keepdims=True)
    return (x @ np.ones(x.shape[1], x.dtype))[:, None]


def _row_moments(x: Array, eps: float) -> tuple[Array, Array, Array]:
    """Rows minus their mean (a new array), the means, and the reciprocal standard deviations."""
    n = max(x.shape[1], 1)
    mean = _row_sums(x)
    mean /= n
    centred = x - mean
    var = np.vecdot(centred, centred)
    var /= n
    var += eps
    np.sqrt(var, out=var)
    return centred, mean, np.reciprocal(var, out=var)[:, None]


def _rows(shape: tuple[int, ...], normalized: int) -> tuple[int, int]:
    """How many rows there are, and how long each is, when the last dimensions are normalised together."""
    at = len(shape) - normalized
    return math.prod(shape[:at]), math.prod(shape[at:])


def check_normalized_shape(x: Any, normalized_shape: Any, weight: Any, bias: Any, star: str = "*, ") -> None:
    """Complain about a shape that is not that of the input's last dimensions."""
    shape = list(normalized_shape)
    own = tuple(shape)
    if own and x.shape[-len(own) :] == own and (weight is None or weight.shape == own) and (bias is None or bias.shape == own):
        return
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            f"normalized_shape = {shape}"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and list(parameter.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(parameter.shape)} and "
                f"normalized_shape = {shape}"
            )
    if x.ndim < len(shape) or list(x.shape[x.ndim - len(shape) :]) != shape:
        sizes = ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={shape}, expected input with shape [{star}{sizes}], but got input of size{list(x.shape)}"
        )


@silent
def _few_rows(x: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """Layer normalisation of short rows in few elements: sums as products with ones, which spread them over the rows too.

    12 µs become 7: what broadcasts takes 1.4 µs, what does not 0.4.
    """
    n = x.shape[1]
    mean = x.dot(SQUARES[n])
    np.divide(mean, _COUNTS[n], mean)
    out = np.subtract(x, mean)
    var = np.multiply(out, out).dot(SQUARES[n])
    np.divide(var, _COUNTS[n], var)
    np.add(var, np.array(eps, FLOAT), var)
    rstd = np.divide(_ONE, np.sqrt(var, var), var)
    np.multiply(out, rstd, out)
    if weight is not None:
        np.multiply(out, weight, out)
    if bias is not None:
        np.add(out, bias, out)
    return out, mean[:, :1].copy(), rstd[:, :1].copy()


def check_parameters(x: Array, *parameters: Array | None) -> None:
    """Parameters have the dtype of what they scale; those of half precision may be of single precision."""
    for p in parameters:
        if p is not None and p.dtype != x.dtype and not (x.dtype.itemsize == 2 and p.dtype == FLOAT and x.dtype.kind not in "iu"):
            wanted, found = (FROM_NUMPY[a.dtype].scalar_name for a in (x, p))
            raise RuntimeError(
                f"mixed dtype (CPU): expected parameters of scalar type {wanted}, as of the input, but found {found}"
            )


def native_layer_norm(
    input: Array,
    normalized_shape: Any,
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> tuple[Array, Array, Array]:
    check_normalized_shape(input, normalized_shape, weight, bias)
    check_parameters(input, weight, bias)
    if input.dtype is FLOAT and input.ndim == 2 and len(normalized_shape) == 1 and 0 < input.size <= 1024 and input.shape[1] <= 32:
        return _few_rows(input, weight, bias, eps)
    if input.dtype.char in "fd":
        return _layer_norm(input, len(normalized_shape), weight, bias, eps)
    if input.dtype.kind in "biuc":
        raise unimplemented("LayerNormKernelImpl", input)
    return _wide_layer_norm(input, len(normalized_shape), weight, bias, eps)


def _layer_norm(x: Array, normalized: int, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    m, n = _rows(x.shape, normalized)
    w = None if weight is None else weight.reshape(-1)
    b = None if bias is None else bias.reshape(-1)
    rows = x.reshape(m, n)
    if x.size < _LARGE or n < 16 or (w is not None and w.dtype != x.dtype) or (b is not None and b.dtype != x.dtype):
        out, mean, rstd = _normalize_rows(rows, w, b, eps)
    else:
        out, mean, rstd = _normalize_large_rows(rows, w, b, eps)
    if x.ndim == 2 and normalized == 1:
        return out, mean, rstd
    lead = (*x.shape[: x.ndim - normalized], *(1,) * normalized)
    return out.reshape(x.shape), mean.reshape(lead), rstd.reshape(lead)


def _normalize_rows(x: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    out, mean, rstd = _row_moments(x, eps)
    out *= rstd
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return out, mean, rstd


def _normalize_large_rows(x: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """The same as x * (rstd ⊗ w) - (mean * rstd) ⊗ w + 1 ⊗ b, block by block: 4.0 ms for 4096×1024, where plain passes take 6.1."""
    m, n = x.shape
    x = np.ascontiguousarray(x)
    out, mean, rstd = np.empty(x.shape, x.dtype), np.empty(m, x.dtype), np.empty(m, x.dtype)
    ones = np.ones(max(m, n), x.dtype)
    step = max(1, _BLOCK // n)
    scratch = np.empty((min(step, m), n), x.dtype)
    for i in range(0, m, step):
        at = slice(i, i + step)
        block, centre, scale = x[at], mean[at], rstd[at]
        if not _quick_moments(block, ones[:n], centre, scale):
            out[at], slow_mean, slow_rstd = _normalize_rows(block, weight, bias, eps)
            centre[:], scale[:] = slow_mean[:, 0], slow_rstd[:, 0]
            continue
        scale += eps
        np.sqrt(scale, out=scale)
        np.reciprocal(scale, out=scale)
        if weight is None:
            np.multiply(block, scale[:, None], out=out[at])
        else:
            factors = scratch[: len(block)]
            factors.fill(0)
            add_outer(factors, scale, weight)
            np.multiply(block, factors, out=out[at])
        add_outer(out[at], centre * scale, ones[:n] if weight is None else weight, -1.0)
        if bias is not None:
            add_outer(out[at], ones[: len(block)], bias)
    return out, mean[:, None], rstd[:, None]


def _quick_moments(x: Array, ones: Array, mean: Array, var: Array) -> bool:
    """Mean and variance of each row, the latter as mean(x²) - mean². False when a row's mean is so large that digits cancel."""
    n = x.shape[1]
    np.matmul(x, ones, out=mean)
    mean /= n
    square = mean * mean
    np.vecdot(x, x, out=var)
    var /= n
    var -= square
    square *= 0.125
    return bool((square <= var).all())


_wide_layer_norm = widened(_layer_norm)


@widened
def native_layer_norm_backward(
    grad_out: Array,
    input: Array,
    normalized_shape: Any,
    mean: Array,
    rstd: Array,
    weight: Array | None,
    bias: Array | None,
    output_mask: Any,
) -> tuple[Array | None, Array | None, Array | None]:
    m, n = _rows(input.shape, len(normalized_shape))
    g = grad_out.reshape(m, n)
    same_dtype = input.dtype == g.dtype and (weight is None or weight.dtype == g.dtype)
    if input.size >= _LARGE and n >= 16 and same_dtype and _digits_survive(mean, rstd):
        w = None if weight is None else weight.reshape(-1)
        made = _large_row_gradients(g, input.reshape(m, n), mean.reshape(m), rstd.reshape(m), w, output_mask)
        shapes = (input.shape, tuple(normalized_shape), tuple(normalized_shape))
        return tuple(None if a is None else a.reshape(shape) for a, shape in zip(made, shapes, strict=True))  # type: ignore[return-value]
    centred = input.reshape(m, n) - mean.reshape(m, 1)
    along = g * centred
    to_input = to_weight = to_bias = None
    # sums along columns as products with a vector: a quarter of the time of `np.add.reduce`
    if output_mask[1] and weight is not None:
        to_weight = (rstd.reshape(m) @ along).reshape(weight.shape)
    if output_mask[2]:
        to_bias = (np.ones(m, g.dtype) @ g).reshape(tuple(normalized_shape))
    if output_mask[0]:
        w = None if weight is None else weight.reshape(n)
        to_input = _layer_gradient(g, w, centred, along, rstd.reshape(m, 1)).reshape(input.shape)
    return to_input, to_weight, to_bias


def _layer_gradient(g: Array, weight: Array | None, centred: Array, along: Array, rstd: Array) -> Array:
    """What `_row_gradient` gives; `along` is g * centred, and is overwritten too.

    Weighted sums are products of matrices with the weight, so that no weighted copy is made.
    """
    n = max(g.shape[1], 1)
    w = np.ones(g.shape[1], g.dtype) if weight is None else weight
    scale = rstd / n
    mean = (g @ w)[:, None]
    mean *= scale
    slope = (along @ w)[:, None]
    scale *= rstd
    scale *= rstd
    slope *= scale
    centred *= slope
    out = np.multiply(g, rstd, out=along)
    if weight is not None:
        out *= weight
    out -= centred
    out -= mean
    return out


def _digits_survive(mean: Array, rstd: Array) -> bool:
    """Whether means are small enough beside the deviations to be subtracted after the elements were added up."""
    return bool((np.abs(mean * rstd) <= 3).all())


def _large_row_gradients(
    g: Array, x: Array, mean: Array, rstd: Array, weight: Array | None, output_mask: Any
) -> tuple[Array | None, Array | None, Array | None]:
    """The gradients from products of whole blocks with vectors: 4096×1024 takes half the time of centring the elements first."""
    m, n = x.shape
    g, x = np.ascontiguousarray(g), np.ascontiguousarray(x)
    ones = np.ones(max(m, n), x.dtype)
    w = ones[:n] if weight is None else weight
    out = np.empty(x.shape, x.dtype) if output_mask[0] else None
    to_weight = np.zeros(n, x.dtype) if output_mask[1] and weight is not None else None
    to_bias = np.zeros(n, x.dtype) if output_mask[2] else None
    step = max(1, _BLOCK // n)
    scratch = np.empty((min(step, m), n), x.dtype)
    for i in range(0, m, step):
        gb, xb, centre, scale = g[i : i + step], x[i : i + step], mean[i : i + step], rstd[i : i + step]
        product = np.multiply(gb, xb, out=scratch[: len(gb)])
        if to_weight is not None:
            to_weight += scale @ product
            to_weight -= (scale * centre) @ gb
        if to_bias is not None:
            to_bias += ones[: len(gb)] @ gb
        if out is not None:
            # rstd * (gw - mean(gw) - x_hat * mean(gw * x_hat)) with the terms in x, and those of whole rows, collected
            total = gb @ w
            along = product @ w
            along -= centre * total
            along *= scale * scale * scale
            along /= -n
            total *= scale
            total /= n
            total += along * centre
            dx = out[i : i + step]
            dx.fill(0)
            add_outer(dx, scale, w)
            dx *= gb
            dx += np.multiply(xb, along[:, None], out=product)
            add_outer(dx, total, ones[:n], -1.0)
    return out, to_weight, to_bias


def _row_gradient(g: Array, weight: Array | None, centred: Array, rstd: Array) -> Array:
    """rstd * (gw - mean(gw) - x_hat * mean(gw * x_hat)), row by row, with gw = g * weight; overwrites `centred`.

    torch: the terms are added in this order, so that rounding leaves what it leaves there.
    """
    n = max(g.shape[1], 1)
    weighted = g if weight is None else g * weight
    along = np.vecdot(weighted, centred)[:, None]
    mean = _row_sums(weighted)
    mean *= rstd
    mean /= n
    along *= rstd * rstd * rstd
    along /= -n
    centred *= along
    if weight is None:
        out = g * rstd
    else:
        out = np.multiply(g, rstd, out=weighted)
        out *= weight
    out += centred
    out -= mean
    return out


# --- batch ----------------------------------------------------------------------------------------------------------


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
    if dtype.kind in "biuc":
        raise unimplemented("batch_norm", input)
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


def _stats_dtype(dtype: Any, weight: Array | None, running_mean: Array | None) -> Any:
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
    output_mask: Any,
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


# --- group ----------------------------------------------------------------------------------------------------------


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
        if not _quick_moments(x[i].reshape(group, -1), ones, mean[i], rstd[i]):
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
    if x.size >= _LARGE and hw >= 64 and all(p is None or p.dtype == x.dtype for p in (weight, bias)):
        made = _group_norm_of_images(x.reshape(n, c, hw), weight, bias, group, eps)
        if made is not None:
            return made[0].reshape(x.shape), made[1], made[2]
    out, mean, rstd = _row_moments(x.reshape(n * group, c // group * hw), eps)
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
    output_mask: Any,
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
        to_input = _row_gradient(scaled.reshape(rows), None, centred, scale).reshape(input.shape)
    return to_input, to_weight, to_bias
