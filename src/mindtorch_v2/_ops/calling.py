"""Calls that take the long way: `out=`, arguments that are not tensors, and the errors about them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _promotion
from .._dispatch import keys
from .._dispatch.entry import NUMBERS, keys_of, public_name
from .._dispatch.op import Op
from .._dispatch.resolver import takes_number_first
from .._dispatch.tls import state
from .._tensor import Tensor, wrap
from ..return_types import out_type

# Element types as C++ spells them, for messages that torch words so.
C_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int",
    "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long", "float16": "c10::Half",
    "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip
__all__ = ["call_op", "call_with_out", "retry_call", "write_out"]


def argument_keys(op: Op, arguments: tuple[Any, ...]) -> int:
    """The key set of these arguments; raises TypeError about the first that has no place in the schema."""
    found = 0
    seen = False
    for position, (a, value) in enumerate(zip(op.schema.arguments, arguments, strict=True)):
        if a.is_tensor:
            seen = True
            if isinstance(value, Tensor):
                found |= value._keys
            elif a.name in op.numbers and value.__class__ in NUMBERS:
                found |= keys.NUMBER
            elif not (value is None and a.type == "Tensor?"):
                raise _type_error(op, a, position, value)
        elif a.is_tensor_list:
            seen = True
            if not isinstance(value, list | tuple):
                raise _type_error(op, a, position, value, "tuple of Tensors")
            for i, t in enumerate(value):
                if not isinstance(t, Tensor) and (t is not None or "?" not in a.type):
                    raise TypeError(
                        f"{op.name}(): argument '{public_name(a)}' (position {position + 1}) must be tuple of Tensors, "
                        f"but found element of type {type(t).__name__} at pos {i}"
                    )
            found |= keys_of(value)
    if not seen:
        from .declare import _device_key

        if "device" in op.schema.argument_names:
            return _device_key(arguments[op.schema.argument_names.index("device")])
        return keys.CPU
    return found


def _type_error(op: Op, a: Any, position: int, value: Any, expected: str = "Tensor") -> TypeError:
    return TypeError(
        f"{op.name}(): argument '{public_name(a)}' (position {position + 1}) must be {expected}, not {type(value).__name__}"
    )


def call_op(op: Op, arguments: tuple[Any, ...]) -> Any:
    """Call an operator with all of its arguments, after checking which of them are tensors."""
    return op.table[argument_keys(op, arguments)](*arguments)


def retry_call(op: Op, arguments: tuple[Any, ...]) -> Any:
    """Second attempt at a call whose arguments were not all tensors: convert what can be, hand over to overrides, or raise."""
    from ..overrides import foreign_override

    handler = foreign_override(arguments)
    if handler is not None:
        return handler(op, arguments)
    converted = []
    for a, value in zip(op.schema.arguments, arguments, strict=True):
        if isinstance(value, np.generic) and a.name in op.numbers:
            value = value.item()
        elif a.is_tensor and takes_number_first(op, a) and isinstance(value, bool | int | float | complex | np.generic):
            value = _first_number(value.item() if isinstance(value, np.generic) else value, arguments)
        elif a.name in op.numbers and value.__class__ not in NUMBERS and isinstance(value, bool | int | float | complex):
            value = _plain_number(value)
        converted.append(value)
    return call_op(op, tuple(converted))


def _first_number(value: Any, arguments: tuple[Any, ...]) -> Tensor:
    """A number as a zero-dim tensor that gives way to the other operand."""
    other = next((a for a in arguments if isinstance(a, Tensor)), value)
    made = wrap(_promotion.operand_arrays(_promotion.result_type_of((value, other)), value)[0])
    return made.to(other.device) if isinstance(other, Tensor) else made


def _plain_number(value: Any) -> Any:
    kinds: tuple[Any, ...] = (bool, int, float, complex)
    for kind in kinds:
        if isinstance(value, kind):
            return kind(value)
    return value


def call_with_out(op: Op, arguments: tuple[Any, ...], out: Any) -> Any:
    """Compute and write the results to `out`, which is resized when its shape differs."""
    outs = (out,) if isinstance(out, Tensor) else tuple(out)
    tensors = [a for a in arguments if isinstance(a, Tensor)] + [t for a in arguments if isinstance(a, list | tuple) for t in a]
    if state.grad_enabled and any(isinstance(t, Tensor) and t._keys & keys.AUTOGRAD for t in (*tensors, *outs)):
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    _check_out(op, [t for t in tensors if isinstance(t, Tensor)], outs)
    if "dtype_of_out" in op.tags:
        arguments = _with_dtype(op, arguments, outs[0])
    previous, state.grad_enabled = state.grad_enabled, False
    try:
        result = call_op(op, arguments)
    finally:
        state.grad_enabled = previous
    results = (result,) if isinstance(result, Tensor) else tuple(result)
    if len(results) != len(outs):
        raise TypeError(f"{op.name}(): argument 'out' must have {len(results)} elements, not {len(outs)}")
    for target, value in zip(outs, results, strict=True):
        if "exact_out" in op.tags and target.dtype is not value.dtype:
            raise RuntimeError(
                f"Expected out tensor to have dtype {C_NAMES[value.dtype.name]}, but got {C_NAMES[target.dtype.name]} instead"
            )
        if "disjoint_out" in op.tags and target._array.shape != value._array.shape:
            _check_resized(tensors, target)
        write_out(target, value)
    return out if isinstance(out, Tensor) else out_type(type(result))(outs)


def _with_dtype(op: Op, arguments: tuple[Any, ...], out: Tensor) -> tuple[Any, ...]:
    """The arguments with `dtype` that of `out=`, where none is given (tag "dtype_of_out")."""
    i = op.schema.argument_names.index("dtype")
    return arguments if arguments[i] is not None else (*arguments[:i], out.dtype, *arguments[i + 1 :])


def _check_resized(tensors: list[Any], target: Tensor) -> None:
    """Refuse an `out=` that, once resized, may reach into an argument's part of their common storage."""
    if any(isinstance(t, Tensor) and t._storage is target._storage for t in tensors):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )


def _check_out(op: Op, tensors: list[Tensor], outs: tuple[Tensor, ...]) -> None:
    """Refuse an `out=` whose elements share memory, or (tag "disjoint_out") that shares memory with an argument."""
    for target in outs:
        array = target._array
        if any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True)) and array.size:
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                "Please clone() the tensor before performing the operation."
            )
        if "disjoint_out" in op.tags and any(
            t is target or (t._storage is target._storage and np.may_share_memory(t._array, array)) for t in tensors
        ):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                "location. Please clone() the tensor before performing the operation."
            )


def write_out(target: Tensor, value: Tensor) -> None:
    """Copy a result into an `out=` tensor by torch's rules on dtypes and shapes."""
    if not _promotion.can_cast(value.dtype, target.dtype):
        raise RuntimeError(
            f"result type {value.dtype.scalar_name} can't be cast to the desired output type {target.dtype.scalar_name}"
        )
    if target.device != value.device:
        raise RuntimeError(f"Expected out tensor to have device {value.device}, but got {target.device} instead")
    if target._array.shape != value._array.shape:
        if target._array.size:
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(target._array.shape)}, which does "
                f"not match the required output shape {list(value._array.shape)}. This behavior is deprecated, and in a future "
                "PyTorch release outputs will not be resized unless they have zero elements.",
                UserWarning,
                stacklevel=5,
            )
        array = np.empty_like(value._array, dtype=target.dtype.np)
        target._array = array
        target._storage.replace(array)
        if hasattr(target._storage, "_bytes"):
            del target._storage._bytes
    if not target._array.flags.writeable or (0 in target._array.strides and _overlaps(target._array)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
            "clone() the tensor before performing the operation."
        )
    target._array[...] = value._array
    target._storage.version += 1


def _overlaps(array: np.ndarray[Any, Any]) -> bool:
    """Whether an expanded dimension makes several elements share their memory."""
    return any(step == 0 and n > 1 for step, n in zip(array.strides, array.shape, strict=True))
