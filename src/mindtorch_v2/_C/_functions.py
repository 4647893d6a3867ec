"""torch._C._functions: backward nodes that are written by hand."""

from __future__ import annotations

from typing import Any

from .._autograd.node import AccumulateGrad
from ..autograd.function import Function
from ..autograd.function import _DelayedError as DelayedError

__all__ = ["AccumulateGrad", "DelayedError", "UndefinedGrad"]


class _Undefined(Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        return tuple(t.view_as(t) for t in tensors) if len(tensors) > 1 else tensors[0].view_as(tensors[0])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(grads)


class UndefinedGrad:
    """Called with tensors, it returns them with a history that passes no gradient on."""

    def __call__(self, *tensors: Any) -> Any:
        return _Undefined.apply(*tensors)
