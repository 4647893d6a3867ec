"""The arguments of a recorded call, as torch lists them: one entry an argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .session import TensorInput

__all__ = ["ELEMENT_TYPES", "concrete", "dtypes", "shapes", "strides", "tensor_shapes"]

# C++'s names of the element types, which is how torch writes them down.
ELEMENT_TYPES = {
    "bool": "bool",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "uint16": "short unsigned int",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long int",
    "uint64": "long unsigned int",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
    "complex32": "c10::complex<c10::Half>",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


def shapes(inputs: Sequence[Any]) -> list[Any]:
    """The shape of each tensor, a list of shapes for a list of tensors, `[]` for anything else."""
    return [_of_tensors(value, lambda tensor: list(tensor.shape)) for value in inputs]


def strides(inputs: Sequence[Any]) -> list[Any]:
    """Strides in elements, in the form of `shapes`."""
    return [_of_tensors(value, lambda tensor: list(tensor.strides)) for value in inputs]


def tensor_shapes(inputs: Sequence[Any]) -> list[list[int]]:
    """The shape of each tensor, `[]` for anything else."""
    # torch: lists of tensors have no shape here
    return [list(value.shape) if isinstance(value, TensorInput) else [] for value in inputs]


def concrete(inputs: Sequence[Any]) -> list[Any]:
    """The value of each argument that is a number, a truth value or a list of them, `None` for anything else."""
    return [_value(value) for value in inputs]


def dtypes(inputs: Sequence[Any]) -> list[str]:
    """`float` and so on for tensors, `TensorList`, `Scalar`, `ScalarList`, and an empty string for anything else."""
    return [_type(value) for value in inputs]


def _is_tensor_list(value: object) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(item, TensorInput) for item in value)


def _of_tensors(value: Any, fact: Callable[[TensorInput], list[int]]) -> list[Any]:
    if isinstance(value, TensorInput):
        return fact(value)
    if _is_tensor_list(value):
        return [fact(item) if isinstance(item, TensorInput) else [] for item in value]
    return []


def _value(value: object) -> Any:
    if isinstance(value, str | TensorInput) or _is_tensor_list(value):
        return None
    return list(value) if isinstance(value, tuple) else value


def _type(value: object) -> str:
    if isinstance(value, TensorInput):
        return ELEMENT_TYPES.get(value.dtype, f"c10::{value.dtype.capitalize()}")
    if _is_tensor_list(value):
        return "TensorList"
    if isinstance(value, list | tuple):
        return "ScalarList"
    return "Scalar" if isinstance(value, bool | int | float | complex) else ""
