"""How tensors print."""

from __future__ import annotations

from ._tensor import Tensor

__all__ = ["tensor_text"]


def tensor_text(self: Tensor) -> str:
    """The tensor as torch prints it."""
    return f"tensor({self._array}, dtype={self.dtype})"
