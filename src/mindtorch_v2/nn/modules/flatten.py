"""Flattening dimensions, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Makes a range of dimensions one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Makes one dimension several."""

    def __init__(self, dim: int | Sequence[int] | None, unflattened_size: Any) -> None:
        super().__init__()
        if isinstance(dim, int):
            if not isinstance(unflattened_size, tuple | list):
                raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}")
            for i, size in enumerate(unflattened_size):
                if not isinstance(size, int):
                    raise TypeError(
                        f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos {i}"
                    )
        elif not isinstance(dim, str):
            raise TypeError("invalid argument type for dim parameter")
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
