"""Kernels of the loss functions. `reduction`: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...._checks import broadcast_shapes
from ...._dtype import FROM_NUMPY
from ...._promotion import can_cast, promote_types
from ...._types import Number
from ..machinery.dtype_rules import refuse, unimplemented
from ..machinery.dtypes import FLOAT, LONG, scalar_name
from ..machinery.floating_errors import quiet, silent
from ..machinery.half_precision import widened
from ..reductions.sums import ONES

Array = np.ndarray[Any, Any]

NONE, MEAN, SUM = 0, 1, 2


def check_reduction(reduction: int) -> None:
    if reduction not in (NONE, MEAN, SUM):
        raise RuntimeError(f"{reduction} is not a valid value for reduction")


def reduced(loss: Array, reduction: int) -> Array:
    """Every element, their mean, or their sum."""
    if reduction == NONE:
        return loss
    check_reduction(reduction)
    if reduction == SUM or not loss.size:
        total = total_of(loss)
        return total if reduction == SUM else total / np.zeros((), loss.dtype)
    return (total_of(loss) / loss.size).astype(loss.dtype)


def total_of(x: Array) -> Array:
    """The sum of all elements; rows first, because NumPy adds a long flat array three times slower."""
    if x.size >= 1 << 14 and x.flags.c_contiguous and x.size % 1024 == 0:
        x = x.reshape(-1, 1024).dot(np.ones(1024, x.dtype))
    return x.sum(dtype=x.dtype)


def promoted_pair(a: Array, b: Array) -> tuple[Array, Array]:
    if a.dtype == b.dtype:
        return a, b
    dtype = promote_types(FROM_NUMPY[a.dtype], FROM_NUMPY[b.dtype]).np
    return a.astype(dtype, copy=False), b.astype(dtype, copy=False)


def product_total(a: Array, b: Array) -> Any:
    """The sum of the products of two row-major arrays of one shape, in runs that bound the rounding error."""
    a, b = a.reshape(-1), b.reshape(-1)
    rows = a.size & -1024
    return np.vecdot(a[:rows].reshape(-1, 1024), b[:rows].reshape(-1, 1024)).sum() + np.vecdot(a[rows:], b[rows:])


def _pairwise(
    name: str, formula: Callable[..., Array], total: Callable[..., tuple[Any, int]] | None = None
) -> Callable[..., Array]:
    """A loss of two operands; `total` gives the sum of large ones, and their number, without every element's loss."""

    def loss(self: Array, target: Array, reduction: int, *rest: Any) -> Array:
        self, target = promoted_pair(self, target)
        if self.dtype.kind in "biuc":
            raise unimplemented(name, self)
        check_reduction(reduction)
        if total is not None and reduction and self.size >= 1 << 14 and self.shape == target.shape and self.dtype.kind == "f":
            value, n = total(self, target, *rest)
            return np.asarray(value / n if reduction == MEAN else value, self.dtype)
        return reduced(formula(self, target, *rest), reduction)

    return widened(loss)


def _squared_total(x: Array, y: Array) -> tuple[Any, int]:
    d = np.subtract(x, y, order="C")
    return product_total(d, d), d.size


def _huber_total(x: Array, y: Array, delta: float) -> tuple[Any, int]:
    """The sum of m (d - m / 2) with m = clip(d, -delta, delta), as products: four passes, where elements take seven."""
    d = np.subtract(x, y, order="C")
    m = np.clip(d, -delta, delta)
    return product_total(m, d) - product_total(m, m) / 2, d.size


def _smooth_l1_total(x: Array, y: Array, beta: float) -> tuple[Any, int]:
    if beta == 0:
        d = np.subtract(x, y, order="C")
        return total_of(np.abs(d, out=d)), d.size
    value, n = _huber_total(x, y, beta)
    return value / beta, n


def _squared_error(x: Array, y: Array) -> Array:
    d = np.asarray(x - y)
    return np.multiply(d, d, out=d)


def _huber(x: Array, y: Array, delta: float) -> Array:
    """m (|d| - m / 2) with m = min(|d|, delta): d² / 2 below delta, delta (|d| - delta / 2) above, and no branch."""
    d = np.asarray(x - y)
    np.abs(d, out=d)
    m = np.asarray(np.clip(d, 0, delta))
    half = np.asarray(m * 0.5)
    d -= half
    d *= m
    return d


def _smooth_l1(x: Array, y: Array, beta: float) -> Array:
    if beta == 0:
        return np.asarray(np.abs(x - y))
    out = _huber(x, y, beta)
    out /= beta
    return out


_mse = _pairwise("mse_cpu", _squared_error, _squared_total)
_smooth = _pairwise("smooth_l1_cpu", _smooth_l1, _smooth_l1_total)
_hub = _pairwise("huber_cpu", _huber, _huber_total)


@silent
def mse_loss(self: Array, target: Array, reduction: int) -> Array:
    if self.dtype is FLOAT and target.dtype is FLOAT and self.shape == target.shape and 0 < self.size < len(ONES) and reduction:
        difference = np.subtract(self, target).ravel()
        total = difference.dot(difference).item()
        return np.array(total / self.size if reduction == MEAN else total, FLOAT)
    with quiet():
        return _mse(self, target, reduction)


def smooth_l1_loss(self: Array, target: Array, reduction: int, beta: float) -> Array:
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return _smooth(self, target, reduction, beta)


def huber_loss(self: Array, target: Array, reduction: int, delta: float) -> Array:
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if self.dtype == target.dtype:
        return _hub(self, target, reduction, delta)
    # torch: unlike the losses above, of the dtype of `self`
    wanted, common = FROM_NUMPY[self.dtype], promote_types(FROM_NUMPY[self.dtype], FROM_NUMPY[target.dtype])
    if not can_cast(common, wanted):
        raise RuntimeError(f"result type {common.scalar_name} can't be cast to the desired output type {wanted.scalar_name}")
    return _hub(self, target, reduction, delta).astype(self.dtype)


def _share(grad_output: Array, n: int, reduction: int) -> Array:
    return grad_output / n if reduction == MEAN else grad_output


@widened
def mse_loss_backward(grad_output: Array, self: Array, target: Array, reduction: int) -> Array:
    self, target = promoted_pair(self, target)
    out = np.asarray(self - target)
    out *= 2 * _share(grad_output, out.size, reduction)
    return out


@widened
def smooth_l1_loss_backward(grad_output: Array, self: Array, target: Array, reduction: int, beta: float) -> Array:
    out = np.asarray(self - target)
    if beta:
        np.clip(out, -beta, beta, out=out)
        out /= beta
    else:
        np.sign(out, out=out)
    out *= _share(grad_output, out.size, reduction)
    return out


@widened
def huber_loss_backward(grad_output: Array, self: Array, target: Array, reduction: int, delta: float) -> Array:
    out = np.asarray(self - target)
    np.clip(out, -delta, delta, out=out)
    out *= _share(grad_output, out.size, reduction)
    return out


# --- binary cross entropy -------------------------------------------------------------------------------------------


def _squeezed(x: Array) -> tuple[int, ...]:
    return tuple(n for n in x.shape if n != 1)


@widened
def binary_cross_entropy(self: Array, target: Array) -> Array:
    if self.dtype == target.dtype and self.dtype.kind in "biuc":
        raise unimplemented("binary_cross_entropy", self)
    if self.shape != target.shape and _squeezed(self) == _squeezed(target):
        target = target.reshape(self.shape)
    if self.dtype.kind == target.dtype.kind and self.size and not ((self >= 0) & (self <= 1)).all():
        raise RuntimeError("all elements of input should be between 0 and 1")
    if self.dtype.kind == target.dtype.kind and self.size and not ((target >= 0) & (target <= 1)).all():
        raise RuntimeError("all elements of target should be between 0 and 1")
    if self.dtype != target.dtype:
        raise RuntimeError(f"Found dtype {scalar_name(target)} but expected {scalar_name(self)}")
    if self.shape != target.shape and broadcast_shapes(self.shape, target.shape) != self.shape:
        raise RuntimeError(
            f"binary_cross_entropy: expected target to broadcast to the input's size {list(self.shape)}, but got {list(target.shape)}"
        )
    # torch: logarithms are held above -100, so that a certain and wrong prediction costs a finite amount
    loss = np.asarray(1 - self)  # exact from 1/2 on, and elsewhere within half a unit of log1p(-x)'s own rounding
    np.log(loss, out=loss)
    np.clip(loss, -100, 0, out=loss)
    loss *= target - 1
    high = np.asarray(np.log(self))
    np.clip(high, -100, 0, out=high)
    high *= target
    loss -= high
    return loss


@widened
def binary_cross_entropy_backward(grad_output: Array, self: Array, target: Array, reduction: int) -> Array:
    out = (self - target) / np.maximum((1 - self) * self, 1e-12)
    return out * _share(grad_output, self.size, reduction)


# --- negative log likelihood ----------------------------------------------------------------------------------------


def check_nll(self: Array, target: Array, weight: Array | None) -> None:
    if not 0 < self.ndim <= 2:
        raise RuntimeError("input tensor should be 1D or 2D")
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if self.ndim == 1 and target.ndim == 1 and target.size != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.size}")
    if self.ndim == 2 and not target.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if self.ndim == 2 and self.shape[0] != target.shape[0]:
        raise RuntimeError(f"size mismatch (got input: {list(self.shape)}, target: {list(target.shape)})")
    check_class_weight(weight, self.shape[-1])


def check_class_weight(weight: Array | None, classes: int) -> None:
    if weight is not None and (weight.ndim != 1 or weight.size != classes):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: "
            f"{list(weight.shape)}"
        )


def check_nll2d(self: Array, target: Array, weight: Array | None) -> None:
    if target.ndim != 3:
        raise RuntimeError(f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.ndim}")
    if self.ndim != 4:
        raise RuntimeError(f"only batches of spatial inputs supported (4D tensors), but got input of dimension: {self.ndim}")
    if weight is not None and weight.size != self.shape[1]:
        raise RuntimeError("weight tensor should be defined either for all or no classes")
    if (self.shape[0], *self.shape[2:]) != target.shape:
        raise RuntimeError(f"size mismatch (got input: {list(self.shape)} , target: {list(target.shape)}")


def _indices(target: Array, classes: int, ignore_index: int) -> tuple[Array, Array | None]:
    """Class indices with ignored ones set to 0, and the mask of those that count when some do not."""
    if target.dtype not in (np.int64, np.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {scalar_name(target)}")
    if not target.size:
        return target, None
    low, high = np.minimum.reduce(target, axis=None), np.maximum.reduce(target, axis=None)
    if low >= 0 and high < classes and not 0 <= ignore_index < classes:
        return target, None
    kept = np.asarray(target != ignore_index)
    index = np.where(kept, target, np.zeros((), target.dtype))
    bad = (index < 0) | (index >= classes)
    if bad.any():
        raise IndexError(f"Target {int(index[bad].ravel()[0] if index.ndim else index)} is out of bounds.")
    return index, None if kept.all() else kept


def _class_weights(weight: Array | None, index: Array, kept: Array | None, dtype: np.dtype[Any]) -> Array | None:
    """The weight of every target, or None when all are 1."""
    if weight is None:
        return None if kept is None else kept.astype(dtype)
    w = weight.reshape(-1)[index]
    return w if kept is None else w * kept


def nll_forward(picked: Array, index: Array, kept: Array | None, weight: Array | None, reduction: int) -> tuple[Array, Array]:
    """The losses of the log probabilities picked by the targets, reduced, and the sum of the weights."""
    check_reduction(reduction)
    dtype = picked.dtype
    w = _class_weights(weight, index, kept, dtype)
    if w is None and reduction:
        value = -np.add.reduce(picked, axis=None)
        return (
            value / picked.size if reduction == MEAN and picked.size else value if reduction == SUM else value * np.nan
        ), np.asarray(picked.size, dtype)
    loss = np.negative(picked) if w is None else np.where(w == 0, np.zeros((), dtype), -picked * w)
    if reduction == NONE:
        # torch: one sample without a batch counts its weight even so
        return loss, np.zeros((), dtype) if picked.ndim else np.asarray(1 if w is None else w, dtype)
    total = np.asarray(picked.size if w is None else w.sum(dtype=dtype), dtype)
    value = np.asarray(loss).sum(dtype=dtype)
    if reduction == MEAN:
        value = value / total
    return np.asarray(value, dtype), total


@silent
def _few_losses(self: Array, target: Array, reduction: int, ignore_index: int) -> tuple[Array, Array] | None:
    """The mean or sum of a few unweighted float32 losses, 3 µs instead of 10; None for other cases and for errors."""
    n = target.size
    if (
        self.dtype is not FLOAT
        or self.ndim != 2
        or target.dtype is not LONG
        or target.shape != self.shape[:1]
        or not 0 < n < len(ONES)
    ):
        return None
    classes = self.shape[1]
    if not reduction or 0 <= ignore_index < classes or target.item(target.argmin()) < 0 or target.item(target.argmax()) >= classes:
        return None
    at = np.arange(0, n * classes, classes)
    at += target
    # a quotient of Python floats rounds to the same float32, and takes a tenth of the time of one of NumPy's scalars
    total = -ONES[n].dot(self.ravel().take(at)).item()
    return np.array(total / n if reduction == MEAN else total, FLOAT), np.array(n, FLOAT)


def nll_loss_forward(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> tuple[Array, Array]:
    if weight is None:
        made = _few_losses(self, target, reduction, ignore_index)
        if made is not None:
            return made
    check_nll(self, target, weight)
    if self.dtype.kind in "biuc":
        raise unimplemented("nll_loss_out_frame", self)
    return _nll_loss_forward(self, target, weight, reduction, ignore_index)


@widened
def _nll_loss_forward(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> tuple[Array, Array]:
    index, kept = _indices(target, self.shape[-1], ignore_index)
    if self.ndim == 1:
        if index.ndim:
            index = index.reshape(())
        picked = np.asarray(self[int(index)])
    else:
        flat = index.reshape(-1)
        picked = self[np.arange(self.shape[0]), flat].reshape(index.shape if index.ndim else (self.shape[0],))
        index = index.reshape(picked.shape)
        kept = None if kept is None else kept.reshape(picked.shape)
    return nll_forward(picked, index, kept, weight, reduction)


@widened
def nll_loss2d_forward(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> tuple[Array, Array]:
    check_nll2d(self, target, weight)
    index, kept = _indices(target, self.shape[1], ignore_index)
    picked = np.take_along_axis(self, index[:, None].astype(np.int64, copy=False), 1)[:, 0]
    return nll_forward(picked, index, kept, weight, reduction)


def _nll_grads(
    grad_output: Array, index: Array, kept: Array | None, weight: Array | None, reduction: int, total_weight: Array
) -> Array:
    w = _class_weights(weight, index, kept, grad_output.dtype)
    g = np.negative(grad_output)
    if reduction == MEAN:
        g = g / total_weight
    if w is None:
        return np.broadcast_to(g, index.shape)
    return np.where(w == 0, np.zeros((), grad_output.dtype), g * w)


@widened
def nll_loss_backward(
    grad_output: Array, self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int, total_weight: Array,
) -> Array:  # fmt: skip
    check_nll(self, target, weight)
    index, kept = _indices(target, self.shape[-1], ignore_index)
    grads = _nll_grads(grad_output, index, kept, weight, reduction, total_weight)
    out = np.zeros(self.shape, grad_output.dtype)
    if self.ndim == 1:
        out[int(index)] = grads.reshape(())
    else:
        out[np.arange(self.shape[0]), index.reshape(-1)] = grads.reshape(-1)
    return out


@widened
def nll_loss2d_backward(
    grad_output: Array, self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int, total_weight: Array,
) -> Array:  # fmt: skip
    check_nll2d(self, target, weight)
    index, kept = _indices(target, self.shape[1], ignore_index)
    grads = _nll_grads(grad_output, index, kept, weight, reduction, total_weight)
    out = np.zeros(self.shape, grad_output.dtype)
    np.put_along_axis(out, index[:, None].astype(np.int64, copy=False), grads[:, None], 1)
    return out


# --- margins --------------------------------------------------------------------------------------------------------


def _margin_inputs(self: Array, target: Array, weight: Array | None) -> tuple[Array, Array]:
    if self.ndim > 2 or (self.ndim == 2 and self.shape[1] == 0) or (self.ndim <= 1 and self.size == 0):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(self.shape)}")
    rows = self.reshape(1, -1) if self.ndim < 2 else self
    if target.ndim > 1 or target.size != rows.shape[0]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected "
            f"target size [{rows.shape[0]}], but got {list(target.shape)}. Input has shape {list(self.shape)}."
        )
    if weight is not None and (weight.ndim > 1 or weight.size != rows.shape[1]):
        raise RuntimeError(f"inconsistent weight size, expected {rows.shape[1]} but got {list(weight.shape)}")
    if target.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(target)}")
    flat = target.reshape(-1)
    if flat.size and (flat.min() < 0 or flat.max() >= rows.shape[1]):
        raise RuntimeError("target out of range")
    return rows, flat


def _check_p(p: Number) -> None:
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")


@widened
def multi_margin_loss(self: Array, target: Array, p: Number, margin: Number, weight: Array | None, reduction: int) -> Array:
    _check_p(p)
    x, t = _margin_inputs(self, target, weight)
    at = np.arange(x.shape[0])
    z = np.maximum(margin - x[at, t][:, None] + x, 0)
    if p == 2:
        z = z * z
    if weight is not None:
        z = z * weight[t][:, None]
    z[at, t] = 0
    loss = z.sum(1) / x.shape[1]
    if reduction == NONE:
        return loss.reshape(target.shape).astype(x.dtype, copy=False)
    return reduced(loss, reduction)


@widened
def multi_margin_loss_backward(
    grad_output: Array, self: Array, target: Array, p: Number, margin: Number, weight: Array | None, reduction: int
) -> Array:
    _check_p(p)
    x, t = _margin_inputs(self, target, weight)
    at = np.arange(x.shape[0])
    z = margin - x[at, t][:, None] + x
    slope = np.where(z > 0, 2 * z if p == 2 else np.ones((), x.dtype), np.zeros((), x.dtype))
    if weight is not None:
        slope = slope * weight[t][:, None]
    slope[at, t] = 0
    slope[at, t] = -slope.sum(1)
    scale = grad_output.reshape(-1, 1) if reduction == NONE else _share(grad_output, x.shape[0], reduction)
    return (slope * (scale / x.shape[1])).reshape(self.shape).astype(x.dtype, copy=False)


def _multilabel_inputs(self: Array, target: Array) -> tuple[Array, Array, Array]:
    """Rows of scores, which classes are targets, and how often each row names each class before its first -1."""
    shape = list(self.shape)
    if not ((self.ndim <= 1 and self.size) or (self.ndim == 2 and self.shape[1])):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {shape}")
    if (self.ndim <= 1 and (target.ndim > 1 or target.size != self.size)) or (self.ndim == 2 and target.shape != self.shape):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {shape}")
    refuse("min_all", target, "c")
    if target.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(target)}")
    rows = self.reshape(-1, self.shape[-1] if self.ndim else 1)
    t = target.reshape(rows.shape)
    if t.size and t.min() < -1:
        raise RuntimeError("target out of range")
    if t.size and t.max() >= rows.shape[1]:
        raise RuntimeError("target out of range")
    listed = np.logical_and.accumulate(t >= 0, axis=1)
    times = np.zeros(rows.shape, rows.dtype)
    r, c = np.nonzero(listed)
    np.add.at(times, (r, t[r, c]), 1)
    return rows, times > 0, times


@widened
def multilabel_margin_loss_forward(self: Array, target: Array, reduction: int) -> tuple[Array, Array]:
    x, is_target, times = _multilabel_inputs(self, target)
    # margins[n, i, j]: class i is a target, class j is none
    margins = np.maximum(1 - x[:, :, None] + x[:, None, :], 0) * (~is_target)[:, None, :]
    loss = (margins.sum(2) * times).sum(1) / x.shape[1]
    flags = is_target.reshape(target.shape).astype(x.dtype)
    if reduction == NONE:
        return loss.reshape(self.shape[:-1]).astype(x.dtype, copy=False), flags
    return reduced(loss, reduction), flags


@widened
def multilabel_margin_loss_backward(grad_output: Array, self: Array, target: Array, reduction: int) -> Array:
    x, is_target, times = _multilabel_inputs(self, target)
    active = (1 - x[:, :, None] + x[:, None, :] > 0) & (~is_target)[:, None, :]
    weighted = active * times[:, :, None]
    slope = weighted.sum(1) - weighted.sum(2)
    scale = grad_output.reshape(-1, 1) if reduction == NONE else _share(grad_output, x.shape[0], reduction)
    return (slope * (scale / x.shape[1])).reshape(self.shape).astype(x.dtype, copy=False)
