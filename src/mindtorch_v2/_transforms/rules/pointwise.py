"""Operators on elements at the same place: values broadcast as samples do, once their batches are in front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._dispatch import registry
from ..._dispatch.entry import NUMBERS
from ..._dispatch.op import Op
from ..._promotion import result_type_of
from ..._tensor import Tensor
from ..batched import Level, unwrapped
from .values import call, check_inplace, expanded, front, is_batched, rank, rule, use, wrapped, written

if TYPE_CHECKING:
    pass

__all__ = ["aligned", "pointwise"]


def aligned(tensors: list[Any], level: Level) -> list[Any]:
    """Values whose batches are in front and broadcast; dimensions of one are put where samples would have them."""
    most = max(rank(t) for t in tensors if isinstance(t, Tensor))
    found = []
    for t in tensors:
        if isinstance(t, Tensor):
            value = front(t, level)
            if is_batched(t, level):
                for _ in range(most - rank(t)):
                    value = call("unsqueeze", value, 1)
            found.append(value)
        else:
            found.append(t)
    return found


def _promoted(op: Op, tensors: list[Any], values: list[Any], level: Level) -> list[Any]:
    """Samples without dimensions give way to tensors with some, which their values must do too."""
    operands = [t for t in tensors if isinstance(t, Tensor) or t.__class__ in NUMBERS]
    if len({t.dtype for t in operands if isinstance(t, Tensor)}) < 2 or op.schema.is_inplace:
        return values
    if not any(isinstance(t, Tensor) and not rank(t) and is_batched(t, level) for t in operands):
        return values
    common = result_type_of(operands)
    return [
        call("to.dtype", v, common)
        if isinstance(t, Tensor) and not rank(t) and is_batched(t, level) and t.dtype is not common
        else v
        for t, v in zip(tensors, values, strict=True)
    ]


def pointwise(op: Op, level: Level, args: tuple[Any, ...]) -> Any:
    """The operator on aligned values."""
    positions = [p for p, _, _ in op.schema.tensor_positions]
    tensors = [args[p] for p in positions]
    given = [t for t in tensors if isinstance(t, Tensor)]
    if op.schema.is_inplace:
        check_inplace(op, args, level)
    if len(given) == 1:
        value, bdim = unwrapped(given[0], level)
        values = list(args)
        values[next(p for p in positions if args[p] is given[0])] = value
        return written(op, args, level, tuple(values), bdim)
    aligned_values = aligned(tensors, level)
    if op.name.endswith("_backward"):  # kernels that write to what is like one of their operands, and broadcast nothing
        aligned_values = [
            v if is_batched(t, level) or t is None else expanded(v, level) for t, v in zip(tensors, aligned_values, strict=True)
        ]
    if op.name not in KEEPING_DTYPES:
        aligned_values = _promoted(op, tensors, aligned_values, level)
    values = list(args)
    for p, v in zip(positions, aligned_values, strict=True):
        values[p] = v
    return written(op, args, level, tuple(values), 0 if any(is_batched(t, level) for t in given) else None)


@rule("fill_.Tensor")
def _fill(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    """A value that differs between samples is copied: it is no number any more."""
    x, value = args
    if not is_batched(value, level):
        return pointwise(op, level, args)
    check_inplace(op, args, level)
    target, given = aligned([x, value], level)
    target.copy_(given)
    return x


@rule("masked_fill.Tensor", "masked_fill_.Tensor")
def _masked_fill(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    """A value that differs between samples is no number any more, and chosen where the mask holds."""
    x, mask, value = args
    if not is_batched(value, level):
        return pointwise(op, level, args)
    if op.schema.is_inplace:
        check_inplace(op, args, level)
    values = aligned([x, mask, value], level)
    found = call("where.self", values[1], call("to.dtype", values[2], x.dtype), values[0])
    if op.schema.is_inplace:
        front(x, level).copy_(found)
        return x
    return wrapped(found, level)


# The dtype of the result is that of the first tensor, or of those that are not masks: nothing is promoted.
KEEPING_DTYPES = frozenset(
    """masked_fill masked_fill_ copy_ fill_ fill bernoulli_ where _prelu_kernel_backward lerp lerp_ heaviside heaviside_
    complex polar""".split()
)

# Pointwise operators whose declarations do not say so, as their kernels do more than one ufunc.
MORE = """
    clone _to_copy copy_ zero_ fill_.Scalar fill.Scalar mul_.Scalar rsub pow.Scalar ldexp.Tensor ldexp_ mvlgamma mvlgamma_ deg2rad deg2rad_ rad2deg rad2deg_
    polygamma_ where.self masked_fill.Scalar masked_fill_.Scalar lerp lerp_ addcmul_ addcdiv_ heaviside heaviside_ clamp clamp_ clamp_min clamp_min_
    clamp_max clamp_max_ frexp.Tensor _conj _conj_physical angle complex polar alias view_as_real relu relu_ hardtanh hardtanh_ celu celu_
    _prelu_kernel_backward log_sigmoid_forward log_sigmoid_backward native_dropout_backward alias_copy
""".split()

use(
    [f"{op.name}.{op.overload_name}" for op in registry.all_ops() if op.pointwise is not None and op.schema.namespace == "aten"],
    pointwise,
)
use(MORE, pointwise)
