"""Reductions of consecutive segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backends.cpu.machinery.dtype_rules import refusal, refuse
from ..._backends.cpu.reductions import segment as kernels
from ..._checks import wrap_dim
from ..._dtype import FROM_NUMPY
from ..._tensor import Tensor
from ..._types import Number
from ..machinery.declare import op

Array = np.ndarray[Any, Any]


def _segment_reduce(
    data: Array, reduce: str, lengths: Array | None, offsets: Array | None, axis: int, unsafe: bool, initial: Number | None
) -> Array:
    if reduce not in kernels.IDENTITY:
        raise RuntimeError(f"unsupported reduction given! {reduce}")
    axis = wrap_dim(axis, data.ndim)
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    given = lengths if lengths is not None else offsets
    assert given is not None
    name = "lengths" if lengths is not None else "offsets"
    if data.ndim < given.ndim:
        raise RuntimeError(f"Expected data.dim() >= {name}_value.dim() to be true, but got false.")
    if given.ndim != axis + 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")  # fmt: skip
    if lengths is not None and not unsafe:
        refuse("min_all", lengths, "c")
        if lengths.size and lengths.min() < 0:
            raise RuntimeError("lengths contains negative value!")
        if not (lengths.sum(-1) == data.shape[axis]).all():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
            )
    if given.dtype.name not in ("int64", "int32"):
        raise refusal(f"_segment_reduce_{name}_cpu_kernel1", FROM_NUMPY[given.dtype])
    return kernels.segment_reduce(data, reduce, lengths, offsets, axis, initial)


def _backward(
    grad: Tensor,
    result: Tensor,
    data: Tensor,
    reduce: str,
    lengths: Tensor | None,
    offsets: Tensor | None,
    axis: int,
    initial: float | None,
) -> Tensor:
    return _segment_reduce_backward(
        grad.contiguous(), result, data, reduce, lengths=lengths, offsets=offsets, axis=axis, initial=initial
    )


segment_reduce = op(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, "
    "bool unsafe=False, Scalar? initial=None) -> Tensor",
    cpu=_segment_reduce,
    variants="function",
    grad={"data": _backward},
    refuses=("_segment_reduce_cpu", "bic"),
)
_segment_reduce_backward = op(
    "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor? offsets=None, "
    "int axis=0, Scalar? initial=None) -> Tensor",
    cpu=lambda grad, output, data, reduce, lengths, offsets, axis, initial: kernels.segment_reduce_backward(
        grad, output, data, reduce, lengths, offsets, axis % data.ndim, initial
    ),
    variants="function",
)
