"""The owners of live objects: the variables, attributes and containers through which the program reaches them.

The search goes from variables inwards, breadth first, and so finds the shortest way. The other direction, `gc.get_referrers`, does not see
objects that `gc.freeze()` has put aside, the dictionaries of modules among them.
"""

from __future__ import annotations

import gc
import inspect
import os
import sys
import types
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from ..._autograd.node import Node, Output
from .outside import LIBRARY, PACKAGE

__all__ = ["owners", "reachable"]

COPY_REFERENCES = 3  # to a copy of local variables that the program has not asked for: the frame's, a variable's, an argument's
SUSPENDED = {
    types.GeneratorType: "gi_frame",
    types.CoroutineType: "cr_frame",
    types.AsyncGeneratorType: "ag_frame",
}


def owners(targets: Sequence[Any]) -> list[str]:
    """For each object the shortest way to it from a variable: `trainer.losses[3], a variable of train (train.py:12)`; empty if none is found."""
    found = [""] * len(targets)
    for of_libraries in (False, True):  # a way through a library is longer to read, and its search takes longer
        search = _Search(_namespaces(of_libraries=of_libraries))
        missing = {id(target): i for i, target in enumerate(targets) if not found[i]}
        for reached in search:
            if id(reached) in missing:
                found[missing.pop(id(reached))] = search.way(reached)
            if not missing:
                return found
    return found


def reachable(kind: type) -> list[Any]:
    """The objects of a class that the program's own variables lead to."""
    return [each for each in _Search(_namespaces(of_libraries=False)) if _is(each, kind)]


def _is(value: object, kind: Any) -> bool:
    """Whether a value is of a class. Unlike `isinstance`, this does not ask the value, and so runs no code of the program."""
    return issubclass(type(value), kind)


class _Search:
    """Objects in the order of their distance from variables. The ways do not pass through modules, nor through graphs."""

    def __init__(self, namespaces: list[Namespace]) -> None:
        self._passed_over = (types.ModuleType, Node, Output)
        self._holders: dict[int, Any] = {}  # by the address of an object, who refers to it; None for the value of a variable
        self._variables: dict[int, tuple[str, str]] = {}  # by the address of the value: name and whose it is
        self._values: list[Any] = []
        for namespace in namespaces:
            for name, value in namespace.variables:
                if gc.is_tracked(value) and not _is(value, self._passed_over) and id(value) not in self._variables:
                    self._variables[id(value)] = name, namespace.where
                    self._values.append(value)
        # dictionaries of modules are no steps of a way: what is in them are variables
        self._closed = {id(names) for names in _globals().values()}
        self._closed |= {id(each) for each in (namespaces, self._values, self._variables, self._holders)}
        self._closed |= {id(namespace.variables) for namespace in namespaces}

    def __iter__(self) -> Iterator[Any]:
        holders, closed, passed_over = self._holders, self._closed, self._passed_over
        holders.update((address, None) for address in self._variables)
        level = self._values
        while level:
            inner: list[Any] = []
            closed.add(id(inner))
            for holder in level:
                yield holder
                for held in gc.get_referents(holder):
                    address = id(held)
                    if address not in holders and address not in closed and gc.is_tracked(held) and not _is(held, passed_over):
                        holders[address] = holder
                        inner.append(held)
            level = inner

    def way(self, target: object) -> str:
        """The way to an object that was reached."""
        path, held = "", target
        while (holder := self._holders[id(held)]) is not None:
            if _is(holder, types.FunctionType) and holder.__closure__ is held:
                code = holder.__code__
                where = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
                return f"{path.removeprefix('.')}, a variable that {code.co_name} uses ({where})"
            path = _step(holder, held, self._holders[id(holder)]) + path
            held = holder
        name, where = self._variables[id(held)]
        return f"{name}{path}, {where}"


# --- variables --------------------------------------------------------------------------------------------------------------


class Namespace(NamedTuple):
    """Variables of one function that runs, or of a module."""

    where: str
    variables: list[tuple[str, Any]]


def _namespaces(*, of_libraries: bool) -> list[Namespace]:
    """Those of the functions that run, the innermost first, and of modules; only of libraries, or only of the program itself."""
    found = [
        Namespace(f"a variable of {_function(frame)}", _locals(frame))
        for frame in _frames()
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED and _is_asked(frame.f_globals, frame.f_code.co_filename, of_libraries)
    ]
    for (name, _), names in _globals().items():
        if _is_asked(names, names.get("__file__"), of_libraries):
            found.append(Namespace(f"a global variable of {name}", [(str(key), value) for key, value in list(names.items())]))
    return found


def _globals() -> dict[tuple[str, int], dict[str, Any]]:
    """Global variables by the name of their module and their address: of modules, and of code that `exec` runs."""
    modules = sorted(sys.modules.items(), key=lambda item: item[0] != "__main__")
    found = {(name, id(vars(module))): vars(module) for name, module in modules if isinstance(module, types.ModuleType)}
    addresses = {address for _, address in found}
    for frame in _frames():
        names = frame.f_globals
        if id(names) not in addresses:
            found[str(names.get("__name__", "?")), id(names)] = names
    return found


def _is_asked(names: dict[str, Any], file: object, of_libraries: bool) -> bool:
    """Whether variables are of the program, or of libraries; those of this package are never asked for."""
    if not isinstance(file, str):  # of code that `exec` runs, or a module of the interpreter's own
        is_library = names.get("__spec__") is not None
    elif file.startswith(PACKAGE):
        return False
    else:
        is_library = LIBRARY.search(file) is not None or file.startswith("<frozen ")
    return is_library == of_libraries


def _frames() -> Iterator[types.FrameType]:
    """The frames of all threads, the innermost of each first."""
    for innermost in sys._current_frames().values():
        frame: types.FrameType | None = innermost
        while frame is not None:
            yield frame
            frame = frame.f_back
        del innermost  # a frame in a variable of its own would keep itself alive


def _function(frame: types.FrameType) -> str:
    return f"{frame.f_code.co_name} ({os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno})"


def _locals(frame: types.FrameType) -> list[tuple[str, Any]]:
    """Names and values. Before Python 3.13 asking for them leaves a copy in the frame, which would keep the values alive."""
    variables = frame.f_locals
    found = list(variables.items())
    if (
        sys.version_info < (3, 13)
        and frame.f_code.co_flags & inspect.CO_OPTIMIZED
        and sys.getrefcount(variables) == COPY_REFERENCES
    ):
        variables.clear()
    return found


# --- steps ------------------------------------------------------------------------------------------------------------------


def _step(holder: Any, held: Any, around: Any) -> str:
    """How one object refers to another: `.losses`, `[3]`; empty where the step before says it. `around` refers to the holder."""
    if _is(holder, dict):
        key = next((key for key, value in list(dict.items(holder)) if value is held), None)
        return f".{key}" if _is_dict_of(around, holder) else f"[{key!r}]"
    if _is(holder, list | tuple | deque):
        at = next((i for i, each in enumerate(holder) if each is held), "?")
        in_closure = _is(around, types.FunctionType) and around.__closure__ is holder and at != "?"
        return f".{around.__code__.co_freevars[at]}" if in_closure else f"[{at}]"
    if _is(holder, types.CellType) or _is_dict_of(holder, held):
        return ""
    return f".{_attribute(holder, held)}"


def _is_dict_of(holder: object, held: object) -> bool:
    if not _is(held, dict) or holder is None:
        return False
    return _is(holder, type) or _own_dict(holder) is held


def _own_dict(holder: object) -> dict[str, Any] | None:
    """The `__dict__` of an object, without running code of the program."""
    try:
        return object.__getattribute__(holder, "__dict__")
    except AttributeError:
        return None


def _attribute(holder: Any, held: object) -> str:
    """The attribute by which an object refers to another, or a word for it."""
    if _is(holder, types.FunctionType):
        return "__defaults__" if holder.__defaults__ is held else "__kwdefaults__"
    frame = getattr(holder, SUSPENDED[type(holder)]) if type(holder) in SUSPENDED else holder
    if _is(frame, types.FrameType):
        return _name_of(held, _locals(frame)) or "?"
    attributes = _own_dict(holder)
    if isinstance(attributes, dict) and (name := _name_of(held, attributes.items())):
        return name
    for kind in type(holder).__mro__:
        for name, member in list(vars(kind).items()):
            # of slots, and of what is written in C; not a property, which would run the program's code
            if isinstance(member, types.MemberDescriptorType) and _value(member, holder) is held:
                return name
    return "?"


def _name_of(held: object, items: Collection[tuple[Any, Any]]) -> str:
    return next((str(name) for name, value in list(items) if value is held), "")


def _value(member: types.MemberDescriptorType, holder: object) -> object:
    try:
        return member.__get__(holder)
    except AttributeError:  # not set
        return None
