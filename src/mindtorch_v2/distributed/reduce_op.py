"""How the values of several processes become one."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["ReduceOp", "combine", "is_known_dtype", "reduce_op"]


class RedOpType(enum.IntEnum):
    """The ways, by name."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"


class _Meta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, RedOpType) or type.__instancecheck__(cls, instance)


class ReduceOp(metaclass=_Meta):
    """How values are combined: `ReduceOp.SUM` and the others are members of `ReduceOp.RedOpType`."""

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    def __init__(self, op: Any) -> None:
        self.op = kind_of(op)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ReduceOp):
            return int(self.op) == int(kind_of(other))
        return NotImplemented

    def __hash__(self) -> int:
        return int(self.op)


def kind_of(op: Any) -> RedOpType:
    """The member that an argument stands for."""
    return op.op if type(op) is ReduceOp else RedOpType(op)


class _Deprecated:
    """The old names of the ways, which warn."""

    def __getattr__(self, name: str) -> RedOpType:
        if name not in ("SUM", "PRODUCT", "MIN", "MAX"):
            raise AttributeError(name)
        warnings.warn(
            "`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead",
            FutureWarning,
            stacklevel=2,
        )
        return RedOpType[name]


reduce_op = _Deprecated()

_FUNCTIONS: dict[RedOpType, Callable[..., Any]] = {
    RedOpType.SUM: np.add,
    RedOpType.AVG: np.add,  # divided by the number of processes at the end
    RedOpType.PRODUCT: np.multiply,
    RedOpType.MIN: np.minimum,
    RedOpType.MAX: np.maximum,
    RedOpType.BAND: np.bitwise_and,
    RedOpType.BOR: np.bitwise_or,
    RedOpType.BXOR: np.bitwise_xor,
}
_KINDS = "float32 float64 float16 bfloat16 int8 uint8 int32 int64 bool complex64 complex128".split()


def is_known_dtype(dtype: np.dtype[Any]) -> bool:
    """Whether elements of a type can be combined; torch's gloo leaves out the same ones."""
    return dtype.name in _KINDS


def combine(op: RedOpType, dtype: np.dtype[Any]) -> Callable[..., Any]:
    """The NumPy function for a way and a type of elements, called with `out=`."""
    if op == RedOpType.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    if not is_known_dtype(dtype):
        raise RuntimeError("Invalid scalar type")
    if op in (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR) and dtype.kind not in "iub":
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    return _FUNCTIONS[op]
