"""The inputs of operators: each distinct combination of shapes, dtypes and numbers once, and a number in the record."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...._checks import contiguous_strides, torch_strides
from ...._dispatch.codegen import indent
from ...._dispatch.entry import NUMBERS
from ...._dispatch.op import Op
from ...._dtype import dtype
from ...._memory_format import layout, memory_format
from ...._record import Arguments
from ...._tensor import Tensor
from ...model.session import TensorInput

if TYPE_CHECKING:
    from ...._dispatch.schema import Argument

__all__ = [
    "GEOMETRY",
    "CallInputs",
    "geometries",
    "gradient_inputs",
    "no_inputs",
    "one_gradient",
    "table",
    "tensor_input",
    "text_inputs",
]

# The numbers that torch's traces show for dtypes, memory formats and layouts.
ENUMERATED = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7, "complex64": 9,
    "complex128": 10, "bool": 11, "bfloat16": 15, "uint16": 27, "uint32": 28, "uint64": 29,
    "contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3, "strided": 0, "sparse_coo": 1,
}  # fmt: skip
LIMIT = 1 << 16  # some 20 MB; meeting a combination again takes 3 µs

table: dict[int, tuple[Any, ...]] = {}  # what the numbers stand for
_count = itertools.count()  # never begins anew: a number means one thing, whichever thread or recording asked for it
_all: set[weakref.ref[CallInputs]] = set()  # forgotten by a function in C, in which no signal is met


def forget_if_many() -> None:
    """Begin anew when programs with ever new shapes have filled the table; between recordings only."""
    if len(table) > LIMIT:
        table.clear()
        geometries.clear()  # those that tensors hold stay what they are, and are other keys than new ones
        _known.clear()
        one_gradient.clear()
        for inputs in [reference() for reference in list(_all)]:
            if inputs is not None:
                inputs.clear()


class Geometry:
    """Shape, strides and dtype of tensors: one object for all that are alike.

    A tensor keeps it once it is asked for, and so pays only once for reading shape and strides from NumPy, which makes a tuple each
    time (45 ns), and for hashing and comparing them (80 ns). As a key it is told from others by identity.
    """

    __slots__ = ("input",)

    def __init__(self, input: TensorInput) -> None:
        self.input = input


class _Geometries(dict[tuple[Any, ...], Geometry]):
    """Shape, strides in bytes, dtype → their geometry."""

    def __missing__(self, facts: tuple[Any, ...]) -> Geometry:
        return self.setdefault(facts, Geometry(tensor_input(*facts)))  # of two threads, one is first


geometries = _Geometries()
GEOMETRY = "geometries_[{0}._array.shape, {0}._array.strides, {0}.dtype]"


def geometry(t: Tensor) -> Geometry:
    """The geometry of a tensor; written out where each operator needs it (`CallInputs.lines`)."""
    try:
        known: Geometry | None = t._geometry
    except AttributeError:  # it was made while no shapes were recorded
        known = None
    if known is None:
        known = t._geometry = geometries[t._array.shape, t._array.strides, t.dtype]
    return known


class CallInputs(dict[tuple[Any, ...], int]):
    """The calls of one operator: its arguments, with the geometry for a tensor, → their number in the table.

    `lines` see to it that tensors have their geometry, `expression` is the key, and `names` are what both use.
    """

    __slots__ = ("__weakref__", "_kept", "expression", "lines", "names")
    __hash__ = object.__hash__  # type: ignore[assignment]  # as its weak reference has it, in the set of all

    def __init__(self, op: Op, *, numbers: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._kept: list[Callable[[Any], Any]] = []
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"geometries_": geometries, "geometry_": geometry, "NUMBERS_": NUMBERS, "plain_": self.plain}
        parts, asking, asking_first = [], [], []
        for a in op.schema.arguments:
            is_number = a.name in numbers
            kept, expression = _argument(a, is_number=is_number)
            if a.type == "Generator?" and "factory" in op.tags:
                kept = _generator
            self._kept.append(kept)
            parts.append(expression)
            if a.is_tensor and not a.is_tensor_list:
                there = f"{a.name}.__class__ not in NUMBERS_ and " * is_number + f"{a.name} is not None and " * ("?" in a.type)
                asking += [f"if {there}{a.name}._geometry is None:", f"    {a.name}._geometry = {GEOMETRY.format(a.name)}"]
                asking_first.append(f"{there}geometry_({a.name})")
        if (
            asking
        ):  # of tensors that were made while no shapes were recorded, there is none; a `try` that nothing leaves costs nothing
            self.lines = ["try:", *indent(asking), "except AttributeError:", *indent(asking_first)]
        self.expression = f"({', '.join(parts)},)" if parts else "()"
        _all.add(weakref.ref(self, _all.discard))

    def __missing__(self, call: tuple[Any, ...]) -> int:
        number = self[call] = _number(_resolved(call, self._kept))
        return number

    def unusual(self, call: tuple[Any, ...]) -> int:
        """The number of a call with arguments that cannot be looked up, such as an array for a list of numbers."""
        return _number(_resolved(call, self._kept))

    @staticmethod
    def plain(value: object) -> tuple[Any, type]:
        """Return the plain number for one that came as a tensor or as NumPy's, which are not kept; for anything else, its type's name."""
        array = value._array if isinstance(value, Tensor) else value
        if not isinstance(array, np.ndarray | np.generic) or array.size != 1:
            return type(value).__name__, str
        number = array.item()
        return (number, type(number)) if isinstance(number, bool | int | float | complex) else (float(number), float)


def _argument(a: Argument, *, is_number: bool) -> tuple[Callable[[Any], Any], str]:
    """The form in which an argument is kept, and the expression for it."""
    n = a.name
    if a.is_tensor_list:
        of_one = "None if t is None else geometry_(t)"
        # torch: nothing is kept of lists that may have gaps
        return _nothing if "?" in a.type else _value, f"None if {n} is None else tuple([{of_one} for t in {n}])"
    if a.is_tensor and is_number:
        return _tensor_or_number, f"({n}, {n}.__class__) if {n}.__class__ in NUMBERS_ else {n}._geometry"
    if a.is_tensor:
        return _value, f"None if {n} is None else {n}._geometry" if "?" in a.type else f"{n}._geometry"
    if a.type in ("Scalar", "Scalar?", "Any"):
        # 1, 1.0 and True are equal, and yet different arguments
        typed = f"({n}, {n}.__class__) if {n}.__class__ in NUMBERS_ else None if {n} is None else plain_({n})"
        return _value, f"{n} if {n}.__class__ is int else {typed}"
    if "[" in a.type:
        size = int(a.type.partition("[")[2].partition("]")[0] or 1)
        return functools.partial(_list, size), f"tuple({n}) if {n}.__class__ is list else {n}"
    return _float if a.type in ("float", "float?") else _value, n


def _resolved(call: tuple[Any, ...], kept: list[Callable[[Any], Any]]) -> tuple[Any, ...]:
    values = [keep(value) for keep, value in zip(kept, call, strict=True)]
    return tuple([value for value in values if value is not _LEFT_OUT])


_LEFT_OUT = object()
# torch: a number in a tensor's place is a tensor without dims
_NUMBERS = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


def _generator(value: object) -> Any:
    # torch: a factory without a generator is another overload, which has no such argument
    return _LEFT_OUT if value is None else _value(value)


def _nothing(value: object) -> None:
    return None


def _tensor_or_number(value: Geometry | tuple[Any, type]) -> TensorInput:
    return value.input if isinstance(value, Geometry) else TensorInput((), (), _NUMBERS.get(value[1], "int64"))


def _list(size: int, value: Any) -> Any:
    """A list; one number stands for so many of it."""
    return _value(value if value is None or isinstance(value, list | tuple | str | np.ndarray) else (value,) * size)


def _float(value: Any) -> Any:
    return float(value) if isinstance(value, int) else _value(value)


def _value(value: Any) -> Any:
    """An argument as it is kept: tensors by their geometry, numbers and texts as they are, anything else by its text."""
    if isinstance(value, Geometry):
        return value.input
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], type):
        return value[0]
    if value is None or isinstance(value, bool | int | float | complex | str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Tensor):
        return CallInputs.plain(value)[0]
    if isinstance(value, list | tuple):
        return [_value(v) for v in value]
    return ENUMERATED.get(value.name, str(value)) if isinstance(value, dtype | memory_format | layout) else str(value)


def tensor_input(shape: tuple[int, ...], strides: tuple[int, ...], kind: dtype) -> TensorInput:
    if 0 in shape:
        return TensorInput(shape, contiguous_strides(shape), kind.name)
    steps = tuple([s // kind.itemsize for s in strides])
    return TensorInput(shape, torch_strides(shape, steps) if 0 in steps else steps, kind.name)


def _number(values: tuple[Any, ...]) -> int:
    number = next(_count)
    table[number] = values
    return number


class _Known(dict[Any, int]):
    """As CallInputs, for what is not an operator."""

    def __missing__(self, values: tuple[Any, ...]) -> int:
        number = self[values] = _number(tuple([_value(v) for v in values]))
        return number


_known = _Known()


class _OneGradient(dict[Geometry, int]):
    """The geometry of a backward node's one gradient → the number of what the node is called with."""

    def __missing__(self, of_gradient: Geometry) -> int:
        number = self[of_gradient] = _known[(of_gradient,)]
        return number


one_gradient = _OneGradient()


def gradient_inputs(grads: list[Any]) -> int:
    """The number of what a backward node is called with."""
    return _known[tuple([None if g is None else geometry(g) for g in grads])]


def operand_inputs(operands: tuple[Any, ...]) -> int:
    """The number of what an operator written in Python is called with: its tensors and numbers, or all of its arguments."""
    if isinstance(operands, Arguments):
        return _known[tuple([_operand(o) for o in operands])]
    # torch: other arguments are left out
    kept = [geometry(o) if isinstance(o, Tensor) else (o, o.__class__) for o in operands if isinstance(o, Tensor | int | float)]
    return _known[tuple(kept)]


def _operand(value: Any) -> Any:
    """An argument as a key: lists of tensors by their geometries, other objects by nothing."""
    if isinstance(value, Tensor):
        return geometry(value)
    if isinstance(value, list | tuple):
        return tuple([_operand(v) for v in value])
    return (value, value.__class__) if isinstance(value, bool | int | float) else None


def no_inputs() -> int:
    """The number of a call without arguments."""
    return _known[()]


class _Texts(dict[str, int]):
    """The `args` of scopes in one recording → their numbers in `table`."""

    def __init__(self) -> None:
        super().__init__()
        self.table: dict[int, tuple[Any, ...]] = {}

    def __missing__(self, args: str) -> int:
        number = self[args] = next(_count)
        self.table[number] = (args,)
        return number


_texts = _Texts()


def text_inputs(args: str | None) -> int:
    """The number of the `args` of a scope."""
    return no_inputs() if args is None else _texts[args]


def numbered() -> Mapping[int, tuple[Any, ...]]:
    """What numbers of inputs stand for, so far."""
    return ChainMap(_texts.table, table)


def take_texts() -> dict[int, tuple[Any, ...]]:
    """Return what the numbers of this recording's texts stand for, and forget them."""
    global _texts
    taken, _texts = _texts, _Texts()
    return taken.table
