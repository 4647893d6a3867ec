"""torch._subclasses: tensors that stand for others while a program is traced. Nothing is traced here, so that no tensor is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
