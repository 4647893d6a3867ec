"""What each opcode of a pickle does to the stack of `WeightsOnlyUnpickler`, for all protocols. Those that are not here are refused."""

from __future__ import annotations

import codecs
import pickle
import struct
import types
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .rebuild import check_key

if TYPE_CHECKING:
    from .weights_only import WeightsOnlyUnpickler

__all__ = ["BYTES_A_CALL", "HANDLERS", "StopReadingError", "described"]

BYTES_A_CALL = 512  # of memory, for an object and what belongs to it
_DICTS = (dict, OrderedDict, Counter)
_U2, _I4, _U4, _U8, _F8 = (struct.Struct(format) for format in ("<H", "<i", "<I", "<Q", ">d"))


class StopReadingError(Exception):
    """The value is complete."""


def described(value: object) -> str:
    """A value of a file in an error: its name or its type, for the file may nest values without end."""
    if isinstance(value, type):
        return f"the class {value.__module__}.{value.__qualname__}"
    if isinstance(value, types.BuiltinMethodType | types.MethodType):
        return f"{value.__name__}, which belongs to {described(value.__self__)}"
    return f"{value.__module__}.{value.__qualname__}" if type(value) is type(described) else f"a value of {type(value)}"


_Handler = Callable[["WeightsOnlyUnpickler"], None]


def _refuse(u: WeightsOnlyUnpickler) -> None:
    u.refuse()


HANDLERS: list[_Handler] = [_refuse] * 256


def _opcode(code: bytes) -> Callable[[_Handler], _Handler]:
    def register(handler: _Handler) -> _Handler:
        HANDLERS[code[0]] = handler
        return handler

    return register


def _pushing(code: bytes, value: Callable[[WeightsOnlyUnpickler], Any]) -> None:
    """Declare an opcode that pushes a value."""

    def handler(u: WeightsOnlyUnpickler) -> None:
        u.stack.append(value(u))

    HANDLERS[code[0]] = handler


def _on_items(code: bytes, value: Callable[[list[Any]], Any]) -> None:
    """Declare an opcode that makes one value of what was pushed since the mark."""

    def handler(u: WeightsOnlyUnpickler) -> None:
        items = u.pop_mark()
        u.stack.append(value(items))

    HANDLERS[code[0]] = handler


def _set_of(u: WeightsOnlyUnpickler) -> set[Any]:
    u.charge(BYTES_A_CALL)
    return set()


def _checked_elements(items: list[Any]) -> list[Any]:
    for item in items:
        check_key(item)
    return items


def _dict_of(items: list[Any]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    _update(made, items)
    return made


def _update(target: Any, items: list[Any]) -> None:
    if len(items) % 2:
        raise ValueError("a key without a value")
    for at in range(0, len(items), 2):
        check_key(items[at])
        target[items[at]] = items[at + 1]


def _number(text: bytes) -> int | float | bool:
    return text == b"01" if text in (b"00", b"01") else int(text)


def _quoted(u: WeightsOnlyUnpickler) -> str:
    text = u.line()
    if len(text) < 2 or text[:1] != text[-1:] or text[:1] not in (b"'", b'"'):
        raise ValueError("a text without quotes")
    return u.decoded(codecs.escape_decode(text[1:-1])[0])


def _integer(u: WeightsOnlyUnpickler, size: int) -> int:
    return int.from_bytes(u.take(size), "little", signed=True)


def _text(u: WeightsOnlyUnpickler, size: int) -> str:
    return str(u.take(size), "utf-8", "surrogatepass")


def _sized(layout: struct.Struct) -> Callable[[WeightsOnlyUnpickler], int]:
    """A reader of a length that is at most what is left of the pickle."""

    def read(u: WeightsOnlyUnpickler) -> int:
        (size,) = layout.unpack(u.take(layout.size))
        if not 0 <= size <= len(u.data) - u.at:
            raise EOFError("Ran out of input: the pickle ends early. The file is damaged; copy or save it again")
        return int(size)

    return read


_size_1, _size_i4, _size_4, _size_8 = _sized(struct.Struct("B")), _sized(_I4), _sized(_U4), _sized(_U8)

_pushing(pickle.NONE, lambda u: None)
_pushing(pickle.NEWTRUE, lambda u: True)
_pushing(pickle.NEWFALSE, lambda u: False)
_pushing(pickle.EMPTY_TUPLE, lambda u: ())
_pushing(pickle.EMPTY_LIST, lambda u: [])
_pushing(pickle.EMPTY_DICT, lambda u: {})
_pushing(pickle.EMPTY_SET, _set_of)
_pushing(pickle.BININT, lambda u: _I4.unpack(u.take(4))[0])
_pushing(pickle.BININT1, lambda u: u.byte())
_pushing(pickle.BININT2, lambda u: _U2.unpack(u.take(2))[0])
_pushing(pickle.BINFLOAT, lambda u: _F8.unpack(u.take(8))[0])
_pushing(pickle.LONG1, lambda u: _integer(u, _size_1(u)))
_pushing(pickle.LONG4, lambda u: _integer(u, _size_i4(u)))
_pushing(pickle.INT, lambda u: _number(u.line()))
_pushing(pickle.LONG, lambda u: int(u.line().removesuffix(b"L")))
_pushing(pickle.FLOAT, lambda u: float(u.line()))
_pushing(pickle.STRING, _quoted)
_pushing(pickle.BINSTRING, lambda u: u.decoded(u.take(_size_i4(u))))
_pushing(pickle.SHORT_BINSTRING, lambda u: u.decoded(u.take(_size_1(u))))
_pushing(pickle.UNICODE, lambda u: str(u.line(), "raw-unicode-escape"))
_pushing(pickle.BINUNICODE, lambda u: _text(u, _size_4(u)))
_pushing(pickle.SHORT_BINUNICODE, lambda u: _text(u, _size_1(u)))
_pushing(pickle.BINUNICODE8, lambda u: _text(u, _size_8(u)))
_pushing(pickle.BINBYTES, lambda u: u.take(_size_4(u)))
_pushing(pickle.SHORT_BINBYTES, lambda u: u.take(_size_1(u)))
_pushing(pickle.BINBYTES8, lambda u: u.take(_size_8(u)))
_pushing(pickle.BYTEARRAY8, lambda u: bytearray(u.take(_size_8(u))))
_pushing(pickle.GET, lambda u: u.memo[int(u.line())])
_pushing(pickle.BINGET, lambda u: u.memo[u.byte()])
_pushing(pickle.LONG_BINGET, lambda u: u.memo[_U4.unpack(u.take(4))[0]])
_pushing(pickle.DUP, lambda u: u.stack[-1])
_pushing(pickle.BINPERSID, lambda u: u.typed_storage(u.stack.pop()))

_on_items(pickle.TUPLE, tuple)
_on_items(pickle.LIST, list)
_on_items(pickle.DICT, _dict_of)
_on_items(pickle.FROZENSET, lambda items: frozenset(_checked_elements(items)))


@_opcode(pickle.PROTO)
def _proto(u: WeightsOnlyUnpickler) -> None:
    if u.byte() > pickle.HIGHEST_PROTOCOL:
        raise ValueError("an unknown pickle protocol")


@_opcode(pickle.FRAME)
def _frame(u: WeightsOnlyUnpickler) -> None:
    _size_8(u)


@_opcode(pickle.STOP)
def _stop(u: WeightsOnlyUnpickler) -> None:
    if not u.stack:
        raise IndexError("nothing was made")
    raise StopReadingError


@_opcode(pickle.MARK)
def _mark(u: WeightsOnlyUnpickler) -> None:
    u.below.append(u.stack)
    u.stack = []


@_opcode(pickle.POP)
def _pop(u: WeightsOnlyUnpickler) -> None:
    if u.stack:
        u.stack.pop()
    else:
        u.pop_mark()


@_opcode(pickle.POP_MARK)
def _drop_items(u: WeightsOnlyUnpickler) -> None:
    u.pop_mark()


@_opcode(pickle.TUPLE1)
def _tuple_1(u: WeightsOnlyUnpickler) -> None:
    u.stack[-1] = (u.stack[-1],)


@_opcode(pickle.TUPLE2)
def _tuple_2(u: WeightsOnlyUnpickler) -> None:
    second = u.stack.pop()
    u.stack[-1] = (u.stack[-1], second)


@_opcode(pickle.TUPLE3)
def _tuple_3(u: WeightsOnlyUnpickler) -> None:
    third, second = u.stack.pop(), u.stack.pop()
    u.stack[-1] = (u.stack[-1], second, third)


@_opcode(pickle.PUT)
def _put(u: WeightsOnlyUnpickler) -> None:
    u.memo[int(u.line())] = u.stack[-1]


@_opcode(pickle.BINPUT)
def _bin_put(u: WeightsOnlyUnpickler) -> None:
    u.memo[u.byte()] = u.stack[-1]


@_opcode(pickle.LONG_BINPUT)
def _long_bin_put(u: WeightsOnlyUnpickler) -> None:
    at = u.at
    u.at = at + 4
    u.memo[_U4.unpack_from(u.data, at)[0]] = u.stack[-1]


@_opcode(pickle.MEMOIZE)
def _memoize(u: WeightsOnlyUnpickler) -> None:
    u.memo[len(u.memo)] = u.stack[-1]


@_opcode(pickle.GLOBAL)
def _global(u: WeightsOnlyUnpickler) -> None:
    u.push_global(u.line().decode(), u.line().decode())


@_opcode(pickle.STACK_GLOBAL)
def _stack_global(u: WeightsOnlyUnpickler) -> None:
    name, module = u.stack.pop(), u.stack.pop()
    if type(name) is not str or type(module) is not str:
        raise TypeError("a name is two texts")
    u.push_global(module, name)


@_opcode(pickle.REDUCE)
def _reduce(u: WeightsOnlyUnpickler) -> None:
    args = u.stack.pop()
    u.stack[-1] = u.call(u.stack[-1], args)


@_opcode(pickle.NEWOBJ)
def _newobj(u: WeightsOnlyUnpickler) -> None:
    args = u.stack.pop()
    u.stack[-1] = u.new_object(u.stack[-1], args, {})


@_opcode(pickle.NEWOBJ_EX)
def _newobj_ex(u: WeightsOnlyUnpickler) -> None:
    kwargs, args = u.stack.pop(), u.stack.pop()
    u.stack[-1] = u.new_object(u.stack[-1], args, kwargs)


@_opcode(pickle.BUILD)
def _build(u: WeightsOnlyUnpickler) -> None:
    state = u.stack.pop()
    u.build(u.stack[-1], state)


def _target(u: WeightsOnlyUnpickler, opcode: str, *types: type) -> Any:
    """The container on top of the stack, which this file made and may fill."""
    target = u.stack[-1]
    if type(target) in types:
        fillable = id(target) not in u.foreign
    else:
        fillable = id(target) in u.made and isinstance(target, types)
    if not fillable:
        names = ", ".join(f"{t.__module__}.{t.__name__}".removeprefix("builtins.") for t in types)
        raise pickle.UnpicklingError(f"Can only {opcode} for {names}, made by this file, but got {described(target)}")
    return target


@_opcode(pickle.APPEND)
def _append(u: WeightsOnlyUnpickler) -> None:
    item = u.stack.pop()
    _target(u, "APPEND", list).append(item)


@_opcode(pickle.APPENDS)
def _appends(u: WeightsOnlyUnpickler) -> None:
    items = u.pop_mark()
    _target(u, "APPENDS", list).extend(items)


@_opcode(pickle.SETITEM)
def _setitem(u: WeightsOnlyUnpickler) -> None:
    value, key = u.stack.pop(), u.stack.pop()
    _update(_target(u, "SETITEM", *_DICTS), [key, value])


@_opcode(pickle.SETITEMS)
def _setitems(u: WeightsOnlyUnpickler) -> None:
    items = u.pop_mark()
    _update(_target(u, "SETITEMS", *_DICTS), items)


@_opcode(pickle.ADDITEMS)
def _additems(u: WeightsOnlyUnpickler) -> None:
    items = _checked_elements(u.pop_mark())
    _target(u, "ADDITEMS", set).update(items)
