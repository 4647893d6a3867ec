"""How much work a call is: the tensors it was given, and operators whose work is known by their name."""

from __future__ import annotations

from typing import Any

from ..model.session import TensorInput

__all__ = ["PASSES", "VIEWS", "largest", "tensors"]

# Operators that pass over all elements of what they are given once, or nearly so.
PASSES = tuple(
    f"aten::{name}"
    for name in (
        "add add_ sub sub_ mul mul_ div div_ neg abs relu relu_ threshold_backward square pow sqrt exp sum mean clamp clamp_min sigmoid tanh gelu "
        "silu where copy_ clone"
    ).split()
)
VIEWS = tuple(
    f"aten::{name}"
    for name in (
        "select slice narrow view t transpose permute expand unsqueeze squeeze unbind split chunk detach alias as_strided "
        "unflatten _unsafe_view view_as expand_as movedim diagonal unfold"
    ).split()
)


def tensors(inputs: tuple[Any, ...]) -> list[TensorInput]:
    """The tensors among the arguments of a call, those in lists too."""
    found: list[TensorInput] = []
    for value in inputs:
        if isinstance(value, TensorInput):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += [item for item in value if isinstance(item, TensorInput)]
    return found


def largest(inputs: tuple[Any, ...]) -> int:
    return max((count(tensor.shape) for tensor in tensors(inputs)), default=0)


def count(shape: tuple[int, ...]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total
