"""Calls that reach operators which PyTorch's database does not, and what sets our registry apart from torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import mindtorch_v2 as mt
from mindtorch_v2._dispatch.op import Op

# Operators that torch has no overload of, with the reason.
OURS: dict[str, str] = {}

# Operators whose values differ on purpose, with the reason.
DIFFERENT: dict[str, str] = {}

EXTRA: list[Callable[[], Any]] = []


def torch_overload(op: Op) -> Any:
    """torch's overload of the same name, or None."""
    packet = getattr(torch.ops.aten, op.name, None)
    return None if packet is None else getattr(packet, op.overload_name, None)


def to_torch(op: Op, sample: tuple[Any, ...], *, keywords: bool = False) -> Any:
    """A sample's arguments as torch's: positional ones, or those that are keyword-only."""
    pairs = list(zip(op.schema.arguments, sample, strict=True))
    if keywords:
        return {a.name: _torch(v) for a, v in pairs if a.keyword_only}
    return [_torch(v) for a, v in pairs if not a.keyword_only]


def _torch(x: Any) -> Any:
    if isinstance(x, mt.Tensor):
        array = x._array.copy(order="K")
        if x.dtype is mt.bfloat16:
            return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
        return torch.from_numpy(array)
    if isinstance(x, mt.dtype):
        return getattr(torch, x.name)
    if isinstance(x, mt.device):
        return torch.device(str(x))
    if type(x).__name__ in ("memory_format", "layout"):
        return getattr(torch, str(x).removeprefix("torch."))
    if isinstance(x, list | tuple):
        return [_torch(v) for v in x]
    return x
