"""The arguments of an operator as traces show them: shapes, strides, types, and the values that are not tensors."""

from __future__ import annotations

import json
import math
from typing import Any

from .session import TensorInput

__all__ = ["concrete_inputs", "input_dims", "input_shapes", "input_strides", "input_types", "json_text"]

LONGEST_LIST = 30  # torch: of lists with more elements nothing is shown

# torch: the names that C++ compilers give the element types
_CPP_NAMES = {
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "uint8": "unsigned char",
    "uint16": "short unsigned int",
    "uint32": "unsigned int",
    "uint64": "long unsigned int",
    "bool": "bool",
    "complex32": "c10::complex<c10::Half>",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


def json_text(value: Any, *, compact: bool = False) -> str:
    """JSON of any value that JSON knows, and of any text: a lone surrogate, which UTF-8 has no bytes for, is spelled out."""
    if isinstance(value, str):
        return json.dumps(_encodable(value), ensure_ascii=False)
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":") if compact else None)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _plain(value: Any) -> Any:
    match value:
        case str():
            return _encodable(value)
        case float() if not math.isfinite(value):
            return str(value)  # JSON has no such numbers
        case dict():
            return {_encodable(str(k)): _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
        case None | bool() | int() | float():
            return value
    return _encodable(str(value))


def input_dims(inputs: tuple[Any, ...]) -> list[Any]:
    return [_of_tensors(value, lambda t: list(t.shape)) for value in inputs]


def input_strides(inputs: tuple[Any, ...]) -> list[Any]:
    return [_of_tensors(value, lambda t: list(t.strides)) for value in inputs]


def input_shapes(inputs: tuple[Any, ...]) -> list[Any]:
    """As `input_dims`, with the shapes of long lists of tensors too."""
    return [_of_tensors(value, lambda t: list(t.shape), longest=math.inf) for value in inputs]


def _of_tensors(value: Any, fact: Any, longest: float = LONGEST_LIST) -> list[Any]:
    if isinstance(value, TensorInput):
        return fact(value)
    if _is_tensor_list(value) and len(value) <= longest:
        return [fact(t) for t in value]
    return []


def _is_tensor_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(v, TensorInput) for v in value)


def input_types(inputs: tuple[Any, ...]) -> list[str]:
    return [_input_type(value) for value in inputs]


def _input_type(value: Any) -> str:
    match value:
        case TensorInput():
            return _CPP_NAMES.get(value.dtype, "c10::" + value.dtype.capitalize())
        case bool() | int() | float() | complex():
            return "Scalar"
        case list() | tuple():
            return "TensorList" if _is_tensor_list(value) else "ScalarList" if _is_short_number_list(value) else ""
    return ""


def concrete_inputs(inputs: tuple[Any, ...]) -> list[str]:
    return [_concrete_input(value) for value in inputs]


def _concrete_input(value: Any) -> str:
    match value:
        case TensorInput():
            return ""
        case bool() | int() | float() | complex():
            return _number(value)
        case list() | tuple():
            return f"[{', '.join(map(_number, value))}]" if _is_short_number_list(value) else ""
    return ""  # torch: nothing of strings


def _is_short_number_list(value: Any) -> bool:
    return len(value) <= LONGEST_LIST and all(isinstance(v, bool | int | float | complex) for v in value)


def _number(value: complex) -> str:
    """A number as C++ streams print it with 17 digits; one without fraction ends in a point."""
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, complex):
        imaginary = _number(value.imag)
        return f"{_number(value.real)}{'' if imaginary.startswith('-') else '+'}{imaginary}j"
    if value.is_integer() and -(2.0**63) <= value < 2.0**63:
        return f"{int(value)}."
    return f"{value:.17g}"
