"""An operator without a batching rule: it is called for each sample, and the results are stacked."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..._dispatch.op import Op
from ..._ops.machinery.calling import call_op
from ..._tensor import Tensor
from ..batch_key import fallbacks
from ..batched import Level, UnreadableError, unwrapped
from .values import call, check_inplace, wrapped, zero_sample

if TYPE_CHECKING:
    from ..._types import TensorOrTensors

__all__ = ["check_loop", "one_by_one", "quietly_one_by_one", "switches"]


class Switches:
    """What is done about an operator without a rule, in the whole process."""

    enabled = True  # it is called for each sample; otherwise it raises
    warns = True
    displays = False  # of PyTorch's first `vmap`, which is gone


switches = Switches()


def one_by_one(op: Op, level: Level, args: tuple[Any, ...]) -> Any:
    """Call the operator for each sample, and say that this is slow."""
    check_loop(op)
    return quietly_one_by_one(op, level, args)


def check_loop(op: Op) -> None:
    """Refuse to call an operator for each sample where that is not the same, and say that it is slow."""
    if not switches.enabled:
        raise RuntimeError(f"{op.qualified_name} hit the vmap fallback which is currently disabled")
    _refuse(op)
    if switches.warns:
        warnings.warn(
            f"There is a performance drop because we have not yet implemented the batching rule for {op.qualified_name}. The operator is "
            "called once for each sample.",
            UserWarning,
            stacklevel=2,
        )


def _refuse(op: Op) -> None:
    if "data_dependent" in op.tags:
        raise UnreadableError(
            f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over {op.qualified_name}, whose "
            "result has a shape that depends on values, which differ between samples; write the function without it."
        )
    returned = op.schema.returns
    if op.schema.is_view or not returned or any(not r.type.startswith("Tensor") for r in returned):
        raise NotImplementedError(
            f"Batching rule not implemented for {op.qualified_name}; the fallback path doesn't work on out= or view ops."
        )


def quietly_one_by_one(op: Op, level: Level, args: tuple[Any, ...]) -> Any:
    """Call the operator for each sample."""
    if op.schema.is_inplace:
        check_inplace(op, args, level)
    if not level.batch_size:
        return _of_none(op, level, args)
    found = [call_op(op, tuple(_sample(a, level, i) for a in args)) for i in range(level.batch_size)]
    if op.schema.is_inplace:
        return args[0]
    if isinstance(found[0], Tensor):
        return wrapped(call("stack", found), level)
    columns = [None if column[0] is None else call("stack", list(column)) for column in zip(*found, strict=True)]
    return wrapped(columns if isinstance(found[0], list) else tuple(columns), level)


def _of_none(op: Op, level: Level, args: tuple[Any, ...]) -> TensorOrTensors:
    """The result for no samples: empty, in the shape that one of zeros would have."""
    if op.schema.is_inplace:
        return args[0]
    found = call_op(op, tuple(zero_sample(a, level) for a in args))

    def empty(t: Tensor) -> Tensor:
        return None if t is None else call("new_empty", t, [0, *t._array.shape])

    return wrapped(empty(found) if isinstance(found, Tensor) else tuple(empty(t) for t in found), level)


def _sample(a: Any, level: Level, i: int) -> Any:
    if isinstance(a, list | tuple):
        return [_sample(x, level, i) for x in a]
    if not isinstance(a, Tensor):
        return a
    value, bdim = unwrapped(a, level)
    return value if bdim is None else call("select.int", value, bdim, i)


fallbacks.operator = one_by_one
