"""Unpickling that is restricted to data: what a file says can make values and nothing else.

Names come from a table. Only calls of that table and the user's allowed classes and functions run. Items, elements and
attributes are set on objects that this file made, never on what a name stands for. The memo is a dict, and lengths are compared
with the pickle's own before memory is taken.
"""

from __future__ import annotations

import _compat_pickle
import enum
import pickle
import struct
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from .._tensor import Tensor
from ..nn import Parameter
from .locations import passing_through
from .names import torch_module
from .opcodes import BYTES_A_CALL, HANDLERS, StopReadingError, described
from .rebuild import CALLS, NAMES, TENSOR_CALLS, parameter, set_attributes, set_state, subclass

__all__ = ["WeightsOnlyUnpickler", "python3_name"]

_BLOCKED_MODULES = ("sys", "os", "posix", "nt")  # torch: not even with the user's permission
_SIZED = (str, bytes, list, tuple, dict)
_SUBCLASS_CALLS = frozenset(map(id, TENSOR_CALLS.values()))

# What calls may take of memory: calls can copy what they are given, so that a few bytes each make a large object again and again.
_MEMORY_FLOOR, _MEMORY_FACTOR = 256 << 20, 128
_BYTES_AN_ELEMENT = 64


class WeightsOnlyUnpickler:
    """Reads one pickle. What is wrong with it is an UnpicklingError, an EOFError, or a RuntimeError of a tensor."""

    def __init__(
        self,
        data: Any,
        typed_storage: Callable[[Any], Any],
        *,
        start: int = 0,
        allowed: Mapping[str, Any],
        encoding: str,
        file_bytes: int,
    ) -> None:
        self.data, self.at = data, start
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # what is under each mark
        self.memo: dict[int, Any] = {}
        self.names: dict[str, Any] = {}
        self.typed_storage = typed_storage
        self.allowed = allowed
        self.allowed_ids = {id(value) for value in allowed.values()}
        self.foreign: dict[int, Any] = {id(value): value for value in allowed.values()}  # not to be changed
        self.made: dict[int, Any] = {}  # instances of the user's classes, by identity
        self.encoding = encoding
        self.memory_left = max(_MEMORY_FLOOR, _MEMORY_FACTOR * file_bytes)

    def load(self) -> Any:
        """The value that the pickle describes."""
        data, handlers = self.data, HANDLERS
        try:
            while True:
                code = data[self.at]
                self.at += 1
                handlers[code](self)
        except StopReadingError:
            return self.stack.pop()
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError, struct.error) as error:
            if self.at >= len(data):
                raise EOFError("Ran out of input: the pickle ends early. The file is damaged; copy or save it again") from None
            raise pickle.UnpicklingError(
                f"The pickle is damaged at byte {self.at} ({type(error).__name__}: {error!s:.200}). Copy or save the file again"
            ) from error

    # --- reading ----------------------------------------------------------------------------------------------------

    def take(self, size: int) -> bytes:
        start = self.at
        self.at = end = start + size
        if end > len(self.data):
            raise EOFError("Ran out of input: the pickle ends early. The file is damaged; copy or save it again")
        return self.data[start:end]

    def byte(self) -> int:
        at = self.at
        self.at = at + 1
        return self.data[at]

    def line(self) -> bytes:
        start, end = self.at, self.data.find(b"\n", self.at)
        if end < 0:
            raise EOFError("Ran out of input: the pickle ends early. The file is damaged; copy or save it again")
        self.at = end + 1
        return self.data[start:end]

    def pop_mark(self) -> list[Any]:
        """Pop and return what was pushed since the last mark."""
        items = self.stack
        self.stack = self.below.pop()
        return items

    def decoded(self, content: bytes) -> Any:
        return content if self.encoding == "bytes" else content.decode(self.encoding)

    # --- names and calls --------------------------------------------------------------------------------------------

    def push_global(self, module: str, name: str) -> None:
        key = f"{module}\n{name}"
        found = self.names.get(key, self)
        if found is self:
            found = self.names[key] = self.find(module, name)
        self.stack.append(found)

    def find(self, module: str, name: str) -> Any:
        """Return the object a name stands for: in torch's table, or among what the user allowed."""
        module, name = python3_name(module, name)
        module = torch_module(module)
        full = f"{module}.{name}"
        if module in _BLOCKED_MODULES:
            raise pickle.UnpicklingError(f"Trying to load unsupported GLOBAL {full:.200} whose module {module} is blocked.")
        if full in NAMES:
            return NAMES[full]
        if full == "torch.nn.parameter.Parameter":
            return Parameter
        if full in self.allowed:
            return self.allowed[full]
        shown = f"{full:.200}".removeprefix("builtins.")
        raise pickle.UnpicklingError(
            f"Unsupported global: GLOBAL {shown} was not an allowed global by default. "
            f"Please use `torch.serialization.add_safe_globals([{shown}])` or the `torch.serialization.safe_globals([{shown}])` "
            "context manager to allowlist this global if you trust this class/function, or load with weights_only=False if you "
            "trust the source of the file."
        )

    def call(self, function: Any, args: Any) -> Any:
        """The result of a call that is in the table or that the user allowed."""
        if type(args) is not tuple:
            raise TypeError(f"arguments are a tuple, not {type(args).__name__}")
        known = CALLS.get(id(function))
        if known is not None:
            copied = 0 if id(function) in _SUBCLASS_CALLS else sum(len(a) for a in args if type(a) in _SIZED)
            self.charge(BYTES_A_CALL + copied * _BYTES_AN_ELEMENT)
            return known(*args)
        if function is subclass:
            return self.call_subclass(*args)
        if _is_parameter(function):
            self.charge(BYTES_A_CALL)
            return parameter(*args)
        if self.is_allowed(function):
            return self.keep(function, self.as_user(function, *args))
        raise pickle.UnpicklingError(
            f"Trying to call reduce for unrecognized function {described(function)}, which makes no data. If you trust it, allow it with "
            "`torch.serialization.add_safe_globals`; if you trust the source of the file, load with weights_only=False."
        )

    def is_allowed(self, function: Any) -> bool:
        """Whether the user allowed this object; a bound method is another object each time, and equal."""
        if isinstance(function, types.BuiltinMethodType | types.MethodType):
            return any(isinstance(known, type(function)) and known == function for known in self.allowed.values())
        return id(function) in self.allowed_ids

    def call_subclass(self, function: Any, cls: Any, args: Any, state: Any) -> Any:
        user_function, user_class = id(function) in self.allowed_ids, id(cls) in self.allowed_ids
        if not (user_function or id(function) in _SUBCLASS_CALLS):
            raise pickle.UnpicklingError(f"Trying to make a tensor with {described(function)}, which makes none.")
        if not (cls is Tensor or _is_parameter(cls) or (user_class and isinstance(cls, type) and issubclass(cls, Tensor))):
            raise pickle.UnpicklingError(f"Trying to make a tensor of {described(cls)}, which is no class of tensors.")
        t = self.call(function, args)
        if cls is not Tensor and type(t) is not cls:
            t = self.as_user(t.as_subclass, cls)
        if not isinstance(t, Tensor) or id(t) in self.foreign:
            raise pickle.UnpicklingError(f"{described(function)} made no tensor.")
        if user_class:
            self.as_user(set_state, t, state)
        else:
            set_attributes(t, state)
        return t

    def as_user(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what the user allowed: its exceptions are the user's."""
        self.charge(BYTES_A_CALL)
        with passing_through():
            return function(*args, **kwargs)

    def keep(self, function: Any, result: Any) -> Any:
        """Remember whether a result of the user's code is an instance that was made for this file."""
        if type(result) is function and not isinstance(result, enum.Enum | type):
            self.made[id(result)] = result
        else:
            self.foreign[id(result)] = result
        return result

    def new_object(self, cls: Any, args: Any, kwargs: Any) -> Any:
        if id(cls) not in self.allowed_ids or not isinstance(cls, type):
            if kwargs:
                raise TypeError(f"{described(cls)} takes no arguments by name")
            return self.call(cls, args)
        if type(args) is not tuple or type(kwargs) is not dict:
            raise TypeError("arguments are a tuple and a dict")
        return self.keep(cls, self.as_user(cls.__new__, cls, *args, **kwargs))

    def build(self, made: Any, state: Any) -> None:
        """Give an object that this file made its state."""
        if type(made) is OrderedDict and id(made) not in self.foreign:
            set_attributes(made, state)
        elif self.made.get(id(made)) is made and made is not None:
            if hasattr(made, "__setstate__"):
                self.as_user(made.__setstate__, state)
            else:
                self.set_state(made, state)
        else:
            raise pickle.UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, each made by this file, "
                f"but got {described(made)}"
            )

    def set_state(self, made: Any, state: Any) -> None:
        slots = None
        if type(state) is tuple and len(state) == 2:
            state, slots = state
        set_attributes(made, state)
        for name, value in (slots or {}).items():
            if type(name) is not str or name.startswith("__"):
                raise TypeError("an attribute needs a name, and one without two underscores before it")
            self.as_user(setattr, made, name, value)

    def charge(self, size_bytes: int) -> None:
        self.memory_left -= size_bytes
        if self.memory_left < 0:
            raise pickle.UnpicklingError(
                "The pickle makes objects that take more than 128 times the memory of the file. No torch.save writes such a file; "
                "load with weights_only=False if you trust its source."
            )

    def refuse(self) -> NoReturn:
        code = self.data[self.at - 1]
        raise pickle.UnpicklingError(
            f"Unsupported operand {code} at byte {self.at - 1}. The file is damaged; copy or save it again"
        )


def python3_name(module: str, name: str) -> tuple[str, str]:
    """A name of Python 2, which pickles of protocol 2 have, as Python 3 knows it."""
    if (module, name) in _compat_pickle.NAME_MAPPING:
        return _compat_pickle.NAME_MAPPING[module, name]
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name


def _is_parameter(cls: Any) -> bool:
    return cls is Parameter
