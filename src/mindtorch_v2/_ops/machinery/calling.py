"""Calls that take the long way: arguments that are not tensors, and the errors about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _device, _promotion
from ..._backends.backend import unavailable
from ..._creation import default_device
from ..._dispatch import keys
from ..._dispatch.entry import NUMBERS, keys_of, public_name
from ..._dispatch.op import Op
from ..._dispatch.quiet import call_traced
from ..._dispatch.resolver import takes_number_first
from ..._dispatch.schema import Argument
from ..._tensor import Tensor, wrap
from ..._types import OptionalDevice
from ...overrides import ask_modes, foreign_override, modes_are_on

__all__ = ["argument_keys", "call_op", "device_key", "retry_call"]


def argument_keys(op: Op, arguments: tuple[Any, ...]) -> int:
    """The key set of these arguments; raises TypeError about the first that has no place in the schema."""
    found = 0
    for position, a, is_list in op.schema.tensor_positions:
        value = arguments[position]
        if is_list:
            found |= _list_keys(op, a, position, value)
        elif isinstance(value, Tensor):
            found |= value._keys
        elif a.name in op.numbers and value.__class__ in NUMBERS:
            found |= keys.NUMBER
        elif not (value is None and a.type == "Tensor?"):
            raise _type_error(op, a, position, value)
    if op.schema.tensor_positions:
        return found
    if "device" in op.schema.argument_names:
        return device_key(arguments[op.schema.argument_names.index("device")])
    return keys.CPU


def _list_keys(op: Op, a: Argument, position: int, value: Any) -> int:
    if not isinstance(value, list | tuple):
        raise _type_error(op, a, position, value, "tuple of Tensors")
    for i, t in enumerate(value):
        if not isinstance(t, Tensor) and (t is not None or "?" not in a.type):
            raise TypeError(
                f"{op.name}(): argument '{public_name(a)}' (position {position + 1}) must be tuple of Tensors, "
                f"but found element of type {type(t).__name__} at pos {i}"
            )
    return keys_of(value)


def device_key(device: OptionalDevice) -> int:
    """The key of the backend that serves a device: the default one, if none is given."""
    if device is None:
        device = default_device()
    elif device.__class__ is not _device.device:
        device = _device.device(device)
    if not device.key:
        raise unavailable(device)
    return device.key


def _type_error(op: Op, a: Argument, position: int, value: object, expected: str = "Tensor") -> TypeError:
    return TypeError(
        f"{op.name}(): argument '{public_name(a)}' (position {position + 1}) must be {expected}, not {type(value).__name__}"
    )


def call_op(op: Op, arguments: tuple[Any, ...]) -> Any:
    """Call an operator with all of its arguments, after checking which of them are tensors."""
    return op.table[argument_keys(op, arguments)](*arguments)


def retry_call(op: Op, arguments: tuple[Any, ...]) -> Any:
    """Second attempt at a call whose arguments were not all tensors: convert what can be, hand over to overrides, or raise."""
    handler = foreign_override(arguments)
    if handler is not None:
        result = ask_modes(op, arguments) if modes_are_on() else NotImplemented
        if result is not NotImplemented:
            return result
        return call_traced(handler, op, arguments)
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
