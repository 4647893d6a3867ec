"""Operators along dimensions that an argument names: the same along the next one of the value, whose first is the batch."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..._checks import wrap_dim
from ..._dispatch.op import Op
from ..._ops.machinery.calling import call_op
from ..._tensor import Tensor
from ..batched import Level
from .values import call, check_inplace, rank, use, with_front, wrapped

if TYPE_CHECKING:
    pass

__all__ = ["along", "shifted"]


def shifted(dim: Any, ndim: int) -> Any:
    """A dimension of a sample, or a list of them, as those of the value."""
    if isinstance(dim, list | tuple):
        return [wrap_dim(d, ndim) + 1 for d in dim]
    return wrap_dim(dim, ndim) + 1


def along(op: Op, level: Level, args: tuple[Any, ...], names: tuple[str, ...] = ("dim",), *, all_dims: bool = False) -> Any:
    """Call an operator on values with their batch in front, and dimensions one further on.

    `all_dims`: no dimension, or an empty list, stands for all of them.
    """
    if op.schema.is_inplace:
        check_inplace(op, args, level)
    tensors = [t for p, _, many in op.schema.tensor_positions for t in (args[p] if many else [args[p]]) if isinstance(t, Tensor)]
    ndim = rank(tensors[0])
    values = list(args)
    for p, _, many in op.schema.tensor_positions:
        values[p] = [_raised(t, level) for t in args[p]] if many else _raised(args[p], level)
    for p, a in enumerate(op.schema.arguments):
        if a.name in names:
            if args[p] is not None and not (all_dims and args[p] in ([], ())):
                values[p] = shifted(args[p], max(ndim, 1))
            elif all_dims:
                values[p] = list(range(1, max(ndim, 1) + 1))
    result = call_op(op, tuple(values))
    if op.schema.is_inplace:
        return args[0]
    return wrapped(_lowered(result) if not ndim else result, level)


def _raised(t: Any, level: Level) -> Any:
    """The value with its batch in front; a sample without dimensions gets one, as operators treat it."""
    value = with_front(t, level)
    return call("unsqueeze", value, 1) if isinstance(t, Tensor) and not rank(t) else value


def _lowered(result: Any) -> Any:
    """Results of samples without dimensions, which have none either."""
    if isinstance(result, Tensor):
        return call("squeeze.dim", result, 1) if result._array.ndim == 2 else result
    return type(result)(_lowered(r) for r in result) if type(result) in (list, tuple) else tuple(_lowered(r) for r in result)


use(
    """
    cumsum cumsum_ cumprod cumprod_ cummax cummin _logcumsumexp logcumsumexp sort.default sort.stable topk kthvalue mode
    median.dim nanmedian.dim max.dim min.dim any.dim all.dim prod.dim_int
    _softmax _log_softmax _softmax_backward_data _log_softmax_backward_data _safe_softmax glu glu_backward
    gather scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_
    linalg_cross _fft_c2c _fft_r2c _fft_c2r
    """.split(),
    along,
)
use(["flip"], functools.partial(along, names=("dims",)))
use(
    "sum.dim_IntList count_nonzero.dim_IntList mean.dim nansum amax amin any.dims all.dims logsumexp".split(),
    functools.partial(along, all_dims=True),
)
use(
    "std.correction var.correction std_mean.correction var_mean.correction linalg_vector_norm norm.ScalarOpt_dim".split(),
    functools.partial(along, all_dims=True),
)
