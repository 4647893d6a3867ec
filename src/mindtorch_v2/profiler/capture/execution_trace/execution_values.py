"""Arguments and results as an execution trace writes them: value, shape, type and strides, each as JSON."""

from __future__ import annotations

import math
import re
import weakref
from typing import Any, NamedTuple

import numpy as np

from .... import _device
from ...._dispatch import keys
from ...._dispatch.op import Op
from ...._dispatch.schema import Argument
from ...._dtype import dtype
from ...._memory_format import layout, memory_format
from ...._random import Generator
from ...._storage import UntypedStorage, identify, identity, next_identity
from ...._tensor import Tensor
from ...model import inputs
from ...model.session import TensorInput
from ...output.input_text import number as number_text
from ...writing.json_text import json_text
from ..operators.call_inputs import ENUMERATED, tensor_input

__all__ = [
    "MOST_TEMPLATES",
    "NONE",
    "Described",
    "argument",
    "described",
    "facts",
    "object_of",
    "object_of_new_tensor",
    "object_of_tensor",
    "offset_of",
    "schema_text",
    "tensor_value",
]


class Described(NamedTuple):
    """One argument or result, as four texts."""

    value: str
    shape: str = "[]"
    type: str = "None"  # without quotes
    strides: str = "[]"


NONE = Described('"<None>"')
MOST_TEMPLATES = 512  # of a kind: programs with ever new numbers and shapes begin anew
UNDEFINED = "Tensor(nullptr (uninitialized))"  # what torch calls a tensor that is not there
_WRAPPED = {bool: ("bool", 1), int: ("int64", 8), float: ("float64", 8), complex: ("complex128", 16)}


def object_of(values: list[Described]) -> str:
    """The `inputs` or `outputs` of a node."""
    value, shape, kind, strides = (",".join(parts) for parts in zip(*values, strict=True)) if values else ("",) * 4
    types = ",".join(f'"{v.type}"' for v in values) if kind else ""
    return f'{{"values": [{value}], "shapes": [{shape}], "types": [{types}], "strides": [{strides}]}}'


# Tensors -----------------------------------------------------------------------------------------------------------------------


class _Placed(int):
    """The number of a tensor or a storage, with the address of its first element: asking NumPy for it takes 1.3 µs."""

    address: int
    array: weakref.ref[Any]  # whose address it is; a tensor may get another


def _address(thing: Tensor | UntypedStorage, array: np.ndarray[Any, Any]) -> int:
    number = identity(thing)
    if number.__class__ is not _Placed or number.array() is not array:
        number = _Placed(number)
        number.address = array.__array_interface__["data"][0]
        number.array = weakref.ref(array)
        thing._identity = number
    return number.address


def offset_of(t: Tensor) -> int:
    """Return the offset of a view in its storage, in elements."""
    if not t._array.size or t.device is not _device.cpu:
        return t.storage_offset() if t._array.size else 0
    return (_address(t, t._array) - _address(t._storage, t._storage.array)) // t.dtype.itemsize


def tensor_value(t: Tensor) -> str:
    """Numbers of the tensor and of its storage, offset, elements, bytes of one, device."""
    if t._keys & keys.SPARSE_LAYOUTS:
        return f'[{identity(t)},0,0,0,0,""]'  # torch: what has no storage says no more
    array, storage = t._array, t._storage
    offset = 0 if array is storage.array else offset_of(t)
    return f"[{identity(t)},{identity(storage)},{offset}{facts(array.shape, t.dtype, t.device)}"


def facts(shape: tuple[int, ...], kind: dtype, device: _device.device) -> str:
    """The part of a tensor's value that all tensors of this geometry share."""
    return f',{math.prod(shape)},{kind.itemsize},"{device}"]'


def _geometry(t: Tensor) -> TensorInput:
    if t._keys & keys.SPARSE_LAYOUTS:
        return TensorInput(tuple(t.shape), (0,) * len(t.shape), t.dtype.name)
    return tensor_input(t._array.shape, t._array.strides, t.dtype)


def tensor(geometry: TensorInput, value: str) -> Described:
    """A tensor, with the value that it is said to have."""
    shape, strides = (f"[{','.join(map(str, numbers))}]" for numbers in (geometry.shape, geometry.strides))
    return Described(value, shape, f"Tensor({inputs.dtypes([geometry])[0]})", strides)


def undefined(number: int) -> Described:
    """A gradient or an entry of a list that is not there."""
    return Described(f'[{number},0,0,0,0,""]', type=UNDEFINED)


def _wrapped(number: float) -> Described:
    """torch: a number in a tensor's place is a tensor without dims, made for the call."""
    name, size = _WRAPPED.get(type(number), ("int64", 8))
    return tensor(TensorInput((), (), name), f'[{next_identity()},{next_identity()},0,1,{size},"cpu"]')


_objects: dict[Any, str] = {}  # by shape, strides, dtype and device


def object_of_tensor(t: Tensor) -> str:
    """`object_of` for one dense tensor, with a template for each geometry."""
    array, storage = t._array, t._storage
    try:
        template = _objects[array.shape, array.strides, t.dtype, t.device.key]
    except KeyError:
        template = _object_template(t)
    number = getattr(t, "_identity", 0) or identify(t)  # an exception would take 0.6 µs, this half of it
    memory = getattr(storage, "_identity", 0) or identify(storage)
    return template % (number, memory, 0 if array is storage.array else offset_of(t))


def object_of_new_tensor(t: Tensor) -> str:
    """As `object_of_tensor`, of what a kernel has just made and nobody has seen yet: it needs not be asked for a number."""
    array, storage = t._array, t._storage
    try:
        template = _objects[array.shape, array.strides, t.dtype, t.device.key]
    except KeyError:
        template = _object_template(t)
    t._identity = number = next_identity()
    storage._identity = memory = next_identity()
    return template % (number, memory, 0 if array is storage.array else offset_of(t))


def _object_template(t: Tensor) -> str:
    array = t._array
    value = f"[%d,%d,%d{facts(array.shape, t.dtype, t.device)}"
    if len(_objects) >= MOST_TEMPLATES:
        _objects.clear()
    text = _objects[array.shape, array.strides, t.dtype, t.device.key] = object_of([tensor(_geometry(t), value)])
    return text


# Other values ------------------------------------------------------------------------------------------------------------------


def described(value: Any) -> Described:
    """Any value, by its own type."""
    match value:
        case None:
            return NONE
        case Tensor():
            return tensor(_geometry(value), tensor_value(value))
        case bool() | np.bool_():
            return Described("true" if value else "false", type="Bool")
        case int() | np.integer():
            return Described(str(int(value)), type="Int")
        case float() | np.floating():
            number = float(value)
            return Described(repr(number) if math.isfinite(number) else f'"{number}"', type="Double")
        case complex() | np.complexfloating():
            return Described('"<ComplexDouble>"', type="ComplexDouble")  # torch: says no more
        case str():
            return Described(json_text(value), type="String")
        case _device.device():
            return Described(json_text(str(value)), type="Device")
        case dtype() | layout() | memory_format():
            return Described(str(ENUMERATED.get(value.name, -1)), type="Int")
        case Generator():
            return Described('"<Generator>"', type="Generator")
        case np.ndarray():
            return described(value.tolist())
        case list() | tuple():
            return _list([described(v) for v in value])
    name = re.sub(r"\W", "_", type(value).__name__)
    return Described(f'"<{name}>"', type=name)


def _list(items: list[Described]) -> Described:
    value, shape, kind, strides = (",".join(parts) for parts in zip(*items, strict=True)) if items else ("",) * 4
    return Described(f"[{value}]", f"[{shape}]", f"GenericList[{kind}]", f"[{strides}]")


def argument(a: Argument, value: Any, *, undefined_number: int) -> Described:
    """An argument, in the form that the schema gives it."""
    if value is None:
        return NONE
    if a.is_tensor_list:
        return _list([undefined(undefined_number) if t is None else described(t) for t in value])
    if a.is_tensor:
        return described(value) if isinstance(value, Tensor) else _wrapped(value)
    if isinstance(value, Tensor) and value._array.size == 1:
        value = value._array.item()
    if a.type.rstrip("?") == "float" and isinstance(value, int):
        value = float(value)
    elif "[" in a.type and not isinstance(value, list | tuple | str | np.ndarray):
        value = [value] * int(a.type.partition("[")[2].partition("]")[0] or 1)
    return described(value)


# Schemas -----------------------------------------------------------------------------------------------------------------------


def takes_generator(op: Op, a: Argument) -> bool:
    """Whether an argument decides the overload: for torch, a factory without a generator is another one, without this argument."""
    return a.type == "Generator?" and "factory" in op.tags and op.name != "normal"


def schema_text(op: Op, *, with_generator: bool = False) -> str:
    """The schema in ATen's own spelling."""
    schema = op.schema
    head, paren, rest = schema.text.partition("(")
    if "::" not in head:
        head = f"{schema.namespace}::{head}"
    if any(takes_generator(op, a) for a in schema.arguments):
        if with_generator:
            head = head.removesuffix("_dtype") + ("_generator" if schema.overload else ".generator")
            head += "_dtype" if schema.overload.endswith("_dtype") else ""
        rest = rest.replace("Generator? generator=None", "Generator? generator" if with_generator else "")
        rest = rest.replace("*, , ", "*, ").replace(", , ", ", ")
    rest = rest.replace(" from_", " from")  # no name for an argument in Python
    return head + paren + re.sub(r"=([^,\s)\[\]']+|\[[^\]]*\]|'[^']*')", lambda m: "=" + _default(m[1]), rest)


def _default(text: str) -> str:
    if text in ENUMERATED:
        return str(ENUMERATED[text])
    if text.startswith("["):
        return f"[{', '.join(_default(part.strip()) for part in text[1:-1].split(','))}]" if len(text) > 2 else text
    if text.startswith("'"):
        return f'"{text[1:-1]}"'
    if re.fullmatch(r"-?\d+(\.\d*)?(e-?\d+)?", text) and not re.fullmatch(r"-?\d+", text):
        return number_text(float(text))
    return text
