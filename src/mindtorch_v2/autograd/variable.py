"""`torch.autograd.Variable`: the old name of a tensor that takes part in autograd."""

from __future__ import annotations

from typing import Any

from .._autograd.engine import queue_callback
from .._tensor import Tensor

__all__ = ["Variable"]


class _Engine:
    """The object that code reaches as `Variable._execution_engine`."""

    queue_callback = staticmethod(queue_callback)


class _VariableMeta(type):
    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=_VariableMeta):
    """`Variable(tensor)` returns a tensor over the same memory."""

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Any:
        if volatile:
            raise RuntimeError("volatile was removed from autograd; use `with torch.no_grad():` instead")
        return data.detach().requires_grad_(requires_grad)
