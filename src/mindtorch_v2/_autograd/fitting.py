"""Bringing a gradient to the shape and dtype of what it is the gradient of."""

from __future__ import annotations

from .._dispatch import registry
from .._tensor import Tensor
from .._types import DType
from .node import Node

__all__ = ["fit", "sum_to"]


def fit(grad: Tensor, shape: tuple[int, ...], dtype: DType, node: Node, index: int) -> Tensor:
    """Sum a gradient to the shape its input had before broadcasting, and cast it to the input's dtype."""
    if grad._array.shape != shape:
        if not _expandable(shape, grad._array.shape):
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {index} - got {list(grad._array.shape)} but expected "
                f"shape compatible with {list(shape)}"
            )
        grad = sum_to(grad, shape)
    if grad.dtype is not dtype:
        if grad.dtype.is_complex and not dtype.is_complex:
            grad = grad.real
        if grad.dtype is not dtype:
            grad = grad.to(dtype)
    return grad


def _expandable(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether a tensor of the first shape broadcasts to the second."""
    if len(small) > len(large):
        return False
    return all(s in (1, n) for s, n in zip(reversed(small), reversed(large), strict=False))


def sum_to(grad: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Sum over the dimensions that broadcasting added or stretched, as ATen's `sum_to` does: one `sum` and a `view`."""
    if not shape:
        return grad.sum()
    have = grad._array.shape
    if have == shape:
        return grad
    leading = len(have) - len(shape)
    dims = [i for i in range(len(have)) if i < leading or (shape[i - leading] == 1 and have[i] != 1)]
    if dims:
        grad = registry.entry("sum", "dim_IntList")(grad, dims, True)
    return registry.entry("view")(grad, shape) if leading else grad
