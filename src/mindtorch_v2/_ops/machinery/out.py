"""Calls with `out=`: results are computed, then written where the caller says.

As in torch each is an operator of its own, whose row in a profile has the tensors to write to among its inputs.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _promotion
from ..._autograd.inference import refuse_write
from ..._dispatch import keys, registry
from ..._dispatch.op import Op
from ..._dispatch.schema import Argument, Return
from ..._dispatch.tls import state
from ..._pending import resolved, write_pending
from ..._tensor import Tensor, set_array
from ...return_types import out_type
from .calling import argument_keys
from .out_dtypes import check_out_dtype

if TYPE_CHECKING:
    from ..._types import TensorOrTensors

__all__ = ["OPTIONS", "call_with_out", "out_variant", "write_out"]

OPTIONS = ("dtype", "layout", "device", "pin_memory")  # of a factory; its variant takes them from the tensor to write to
# Overloads that are not called after the functional one: `out`, `NAME_out`, and `grad_input` of backward operators.
_OVERLOADS = {
    "add.Tensor": "out", "sub.Tensor": "out", "mul.Tensor": "out", "div.Tensor": "out", "div.Tensor_mode": "out_mode",
    "xlogy.Tensor": "OutTensor", "sum.dim_IntList": "IntList_out", "mean.dim": "out", "any.dim": "out", "all.dim": "out", "any": "all_out",
    "all": "all_out", "prod.dim_int": "int_out", "max": "unary_out", "min": "unary_out", "max.dim": "dim_max", "min.dim": "dim_min",
    "max.other": "out", "min.other": "out", "var.dim": "out", "std.dim": "out", "norm.ScalarOpt_dim": "out", "geqrf": "a", "kthvalue": "values",
    "median.dim": "dim_values", "nanmedian.dim": "dim_values", "mode": "values", "sort": "values", "sort.stable": "values_stable",
    "topk": "values", "linalg_svd": "U", "linalg_eigh": "eigvals", "linalg_cholesky_ex": "L", "arange.start_step": "start_out",
    "soft_margin_loss_backward": "grad_input", "huber_loss_backward": "out",
}  # fmt: skip


def call_with_out(op: Op, arguments: tuple[Any, ...], out: TensorOrTensors) -> TensorOrTensors:
    """Compute and write the results to `out`, which is resized when its shape differs."""
    outs = (out,) if isinstance(out, Tensor) else tuple(out)
    if len(outs) != len(op.schema.returns) or (outs[0] is not out and not all(isinstance(t, Tensor) for t in outs)):
        return _compute(op, arguments, out)  # which refuses them
    return out_variant(op).table[argument_keys(op, arguments) & (keys.BACKENDS | keys.NUMBER)](*arguments, *outs)


@functools.cache
def out_variant(op: Op) -> Op:
    """The operator that writes to `out=`: the functional one computes, and its results are copied."""
    schema = op.schema
    kept = [a for a in schema.arguments if "factory" not in op.tags or a.name not in OPTIONS]
    count = len(schema.returns)
    outs = [Argument(f"out{i}" if count > 1 else "out", "Tensor", keyword_only=True, alias="a!") for i in range(count)]
    full_name = f"{schema.name}.{schema.overload}".rstrip(".")
    default = "grad_input" if schema.name.endswith("_backward") else "_".join([*filter(None, [schema.overload]), "out"])
    variant_schema = dataclasses.replace(
        schema,
        overload=_OVERLOADS.get(full_name, default),
        arguments=(*kept, *outs),
        returns=(Return("Tensor", alias="a!"),),
    )
    compute = functools.partial(_make if "factory" in op.tags else _compute_apart, op, len(kept))
    made = Op(variant_schema, composite=compute, numbers=op.numbers, tags=(*op.tags, "out_variant"))
    registry.add_variant(made)
    return made


def _compute_apart(op: Op, count: int, *given: Any) -> TensorOrTensors:
    """Make the kernel of a variant: `given` are the arguments, so many, and what is written to."""
    outs = given[count:]
    return _compute(op, given[:count], outs[0] if len(outs) == 1 else outs, keys.OUT_VARIANT)


def _make(op: Op, count: int, *given: Any) -> Tensor:
    """Make the kernel of a factory's variant."""
    out = given[count]
    options = {"dtype": out.dtype, "layout": None, "device": out.device, "pin_memory": None}
    values = iter(given)
    arguments = [options[a.name] if a.name in OPTIONS else next(values) for a in op.schema.arguments]
    made = op.table[out.device.key | keys.OUT_VARIANT](*arguments)
    if "keeps_out_shape" in op.tags and made._array.size == out._array.size:
        set_array(made, made._array.reshape(out._array.shape))
    write_out(out, made)
    return out


def _compute(op: Op, arguments: tuple[Any, ...], out: TensorOrTensors, extra_keys: int = 0) -> TensorOrTensors:
    outs = (out,) if isinstance(out, Tensor) else tuple(out)
    tensors = _tensors_among(arguments)
    if state.grad_enabled:
        for t in [*tensors, *_tensors_among(outs)]:
            if t._keys & keys.AUTOGRAD:
                raise RuntimeError(
                    f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
                    "arguments requires grad."
                )
    _check_out(op, tensors, outs)
    if "dtype_of_out" in op.tags:
        arguments = _with_dtype(op, arguments, outs[0])
    previous, state.grad_enabled = state.grad_enabled, False
    try:
        result = op.table[argument_keys(op, arguments) | extra_keys](*arguments)
    finally:
        state.grad_enabled = previous
    results = (result,) if isinstance(result, Tensor) else tuple(result)
    if len(results) != len(outs):
        raise TypeError(f"{op.name}(): argument 'out' must have {len(results)} elements, not {len(outs)}")
    for target, value in zip(outs, results, strict=True):
        check_out_dtype(op.name, op.tags, value.dtype, target.dtype)
        if "any_out_dtype" in op.tags:
            value = value.to(target.dtype)
        if "disjoint_out" in op.tags and target._array.shape != value._array.shape:
            _check_resized(tensors, target)
        write_out(target, value)
    return out if isinstance(out, Tensor) else out_type(type(result))(outs)


def _tensors_among(arguments: tuple[Any, ...]) -> list[Tensor]:
    """The tensors, and those in lists."""
    found: list[Tensor] = []
    for a in arguments:
        if isinstance(a, Tensor):
            found.append(a)
        elif isinstance(a, list | tuple):
            found += [t for t in a if isinstance(t, Tensor)]
    return found


def _with_dtype(op: Op, arguments: tuple[Any, ...], out: Tensor) -> tuple[Any, ...]:
    """The arguments with `dtype` that of `out=`, where none is given (tag "dtype_of_out")."""
    i = op.schema.argument_names.index("dtype")
    return arguments if arguments[i] is not None else (*arguments[:i], out.dtype, *arguments[i + 1 :])


def _check_resized(tensors: list[Tensor], target: Tensor) -> None:
    """Refuse an `out=` that, once resized, may reach into an argument's part of their common storage."""
    if any(t._storage is target._storage for t in tensors):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )


def _check_out(op: Op, tensors: list[Tensor], outs: tuple[Tensor, ...]) -> None:
    """Refuse an `out=` whose elements share memory, or (tag "disjoint_out") that shares memory with an argument."""
    for target in outs:
        array = target._array
        if target._keys & keys.SPARSE_LAYOUTS:  # its array only stands for its shape
            continue
        if 0 in array.strides and array.size and _overlaps(array):
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                "Please clone() the tensor before performing the operation."
            )
        if "disjoint_out" in op.tags and any(
            t is target or (t._storage is target._storage and np.may_share_memory(t._array, array)) for t in tensors
        ):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                "location. Please clone() the tensor before performing the operation."
            )


def write_out(target: Tensor, value: Tensor) -> None:
    """Copy a result into an `out=` tensor by torch's rules on dtypes and shapes."""
    value = resolved(value)
    if target._keys & keys.INFERENCE and not state.inference:
        refuse_write()
    if not _promotion.can_cast(value.dtype, target.dtype):
        raise RuntimeError(
            f"result type {value.dtype.scalar_name} can't be cast to the desired output type {target.dtype.scalar_name}"
        )
    if target.device != value.device:
        raise RuntimeError(f"Expected out tensor to have device {value.device}, but got {target.device} instead")
    if (target._keys | value._keys) & keys.SPARSE_LAYOUTS:
        _write_sparse(target, value)
        return
    if target._array.shape != value._array.shape:
        if target._array.size:
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(target._array.shape)}, which does "
                f"not match the required output shape {list(value._array.shape)}. This behavior is deprecated, and in a future "
                "PyTorch release outputs will not be resized unless they have zero elements.",
                UserWarning,
                stacklevel=5,
            )
        array = np.empty_like(value._array, dtype=target.dtype.np)
        set_array(target, array)
        target._storage.replace(array)
    if (target._array.size and not target._array.flags.writeable) or (0 in target._array.strides and _overlaps(target._array)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
            "clone() the tensor before performing the operation."
        )
    if target._keys & keys.PENDING:
        write_pending(target, value._array)
    elif target._array.size:  # NumPy refuses to write nothing to memory that is not writable
        target._array[...] = value._array
    target._storage.version += 1


def _write_sparse(target: Tensor, value: Tensor) -> None:
    if target.layout is not value.layout:
        raise RuntimeError(f"Expected out tensor to have layout {value.layout}, but got {target.layout} instead; use to_dense()")
    if target._keys & keys.SPARSE and target._array.shape != value._array.shape:
        target.sparse_resize_and_clear_(value.shape, value.sparse_dim(), value.dense_dim())
    target.copy_(value)


def _overlaps(array: np.ndarray[Any, Any]) -> bool:
    """Whether an expanded dimension makes several elements share their memory."""
    return bool(array.size) and any(step == 0 and n > 1 for step, n in zip(array.strides, array.shape, strict=True))
