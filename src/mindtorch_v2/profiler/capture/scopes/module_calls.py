"""Calls of modules: while recording, `Module.__call__` notes which module runs and where it stands in its network.

The call of a module is an event `nn.Module: Linear_0`. Its label says where the module stands: the names that lead to it, from the
outermost module that was called, and their classes. Operators are not touched: which module they belong to follows from what is
around them (see `modules`).
"""

from __future__ import annotations

import functools
import heapq
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...._dispatch import quiet
from ...._forking import new_lock
from ....nn.modules.module import Module, call_unobserved, observe_calls
from ...model.session import Label, ModulePart
from .. import tasks
from ..labels import label_number
from ..late_exceptions import begin_without_handlers, kept
from ..operators import recorder
from ..operators.recorder import Log
from ..source import Findings, Source

if TYPE_CHECKING:
    from ...._tensor import Tensor

__all__ = ["ModuleCalls"]

Parts = tuple[ModulePart, ...]


class Place:
    """A module where it is called: inside another, or by the program. `inside` has those that it calls, by their addresses."""

    __slots__ = ("inside", "label", "parts")

    def __init__(self, label: int, parts: Parts) -> None:
        self.label = label
        self.parts = parts
        self.inside: dict[int, Place] = {}


# A call that runs: place, start (negative if it is not to be recorded here), module, the call around it on its thread. A plain tuple and
# no list of calls, because methods of lists are calls that `sys.setprofile` reports.
Running = tuple[Place, float, Any, Any]


class Instance:
    """A module that was called. `listed_in` are the dictionaries that have its address as a key, to be taken out when it dies."""

    __slots__ = ("below", "class_name", "listed_in", "number", "parts", "reference")

    def __init__(self, class_name: str, number: int) -> None:
        self.class_name = class_name
        self.number = number
        self.parts: Parts = ()  # where it was called first
        self.below: dict[int, str] | None = None  # addresses and names of all modules that it holds
        self.listed_in: list[dict[int, Any]] = []
        self.reference: Any = None


def _on_freed(instance: Instance, address: int, free: list[int], _: weakref.ReferenceType[Any]) -> None:
    """The address and the number of a module may belong to another from now on."""
    try:
        _forget(instance, address, free)
    except BaseException as error:
        request: Any = kept(error)
        _forget(instance, address, free)
        request = None  # noqa: F841 - it is made here


begin_without_handlers(_on_freed)


def _forget(instance: Instance, address: int, free: list[int]) -> None:
    for places in instance.listed_in:
        places.pop(address, None)
    if instance.number not in free:
        heapq.heappush(free, instance.number)


class _Innermost(dict[int, Running | None]):
    """Thread → the call of a module that runs on it, within all others."""

    def __missing__(self, thread: int) -> None:
        self[thread] = None


class ModuleCalls(Source):
    """The calls of modules in one recording. Modules and parameters are not kept alive.

    They come here by themselves if they `record`; else the tracer of Python functions records them and has them noted here.
    """

    def __init__(self, log: Log, *, record: bool) -> None:
        self.log: Log | None = log
        self._record = record
        self.collecting = False
        self.running = _Innermost()
        self.called: dict[int, Place] = {}  # by the program, and not by a module
        self._instances: dict[int, Instance] = {}
        self._networks: list[Instance] = []
        self._owners: dict[int, tuple[Any, Parts]] = {}  # address of a parameter → reference to it, place of the module that has it
        self._next_number: dict[str, int] = {}
        self._free_numbers: dict[str, list[int]] = {}
        self._lock = new_lock()

    # --- when -----------------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        if self._record:
            observe_calls(_recorded(self, call_unobserved))

    def resume(self) -> None:
        self.collecting = True

    def pause(self, now: float) -> None:
        self.collecting = False

    def end(self) -> None:
        if self._record:
            observe_calls(None)

    def take(self, findings: Findings) -> None:
        """Calls that still run end here."""
        log, self.log = self.log, None
        for thread, innermost in list(self.running.items()):
            for place, start, _ in _outwards(innermost):
                if log is not None and 0 <= start <= findings.stopped:
                    log.write(place.label, start, findings.stopped, thread)

    def discard(self) -> None:
        self.log = None
        self.end()

    # --- calls that the tracer records ----------------------------------------------------------------------------------------

    def note(self, module: Module, thread: int) -> int:
        """Note a call that the tracer records; returns its label."""
        around = self.running[thread]
        place = (self.called if around is None else around[0].inside).get(id(module)) or self.enter(around, module)
        self.running[thread] = (place, -1.0, module, around)
        return place.label

    def leave(self, thread: int) -> None:
        """Note the end of a call."""
        innermost = self.running[thread]
        self.running[thread] = None if innermost is None else innermost[3]

    def keep(self, thread: int, count: int) -> None:
        """Forget the noted calls that run, except the outermost `count`."""
        for _ in range(sum(1 for _ in _outwards(self.running[thread])) - count):
            self.leave(thread)

    # --- where ----------------------------------------------------------------------------------------------------------------

    def enter(self, around: Running | None, module: Module) -> Place:
        """The place of a module that was not called from here before."""
        inside = self.called if around is None else around[0].inside
        with self._lock:
            instance = self._instances.get(id(module)) or self._meet(module)
            parts = self._parts(around, module, instance)
            instance.parts = instance.parts or parts
            name = f"nn.Module: {instance.class_name}_{instance.number}"
            place = Place(label_number(Label(name, "python_function", module=parts)), parts)
            inside[id(module)] = place
            instance.listed_in.append(inside)
        return place

    def owner(self, parameter: Tensor) -> Parts:
        """Return the place of the module that has this parameter; nothing if no module that was called has it."""
        reference, parts = self._owners.get(id(parameter), (None, ()))
        return parts if reference is not None and reference() is parameter else ()

    def _meet(self, module: Module) -> Instance:
        name = type(module).__name__
        free = self._free_numbers.setdefault(name, [])
        if free:
            number = heapq.heappop(free)
        else:
            number = self._next_number.get(name, 0)
            self._next_number[name] = number + 1
        address, instance = id(module), Instance(name, number)
        instance.reference = weakref.ref(module, functools.partial(_on_freed, instance, address, free))
        self._instances[address] = instance
        instance.listed_in.append(self._instances)
        return instance

    def _parts(self, around: Running | None, module: Module, instance: Instance) -> Parts:
        for place, _, caller in _outwards(around):
            if caller is module:
                return place.parts  # it calls itself
            name = self._name_inside(self._instances[id(caller)], caller, module)
            if name is not None:
                return *place.parts, ModulePart(name, instance.class_name)
        # On a thread of its own, or computed once more in a backward pass: none of the modules that hold it is running.
        if instance.parts:
            return instance.parts
        for network in self._networks:
            root = network.reference()
            name = None if root is None else self._name_inside(network, root, module)
            if name is not None:
                return *network.parts, ModulePart(name, instance.class_name)
        self._networks = [network for network in self._networks if network.reference() is not None]
        self._networks.append(instance)
        instance.parts = (
            ModulePart(f"{instance.class_name}_{instance.number}" if instance.number else instance.class_name, instance.class_name),
        )
        self._note_parameters(module, instance.parts)
        return instance.parts

    def _name_inside(self, holder: Instance, around: Module, module: Module) -> str | None:
        """The name by which one module holds another, directly or in others; None if it does not."""
        children = _children(around)
        for name, child in children.items():
            if child is module:
                return name
        for name, child in children.items():
            for inner, grandchild in _children(child).items():
                if grandchild is module:
                    return f"{name}.{inner}"
        # Networks hardly change while they run, and a module that was made on the spot must not be looked for in all of one at each call.
        if holder.below is None:
            holder.below = {id(found): name for name, found in reversed(list(_walk(around)))}
        known = holder.below.get(id(module))
        return known if known is not None and _find(around, known) is module else None

    def _note_parameters(self, network: Module, parts: Parts) -> None:
        for name, module in _walk(network):
            own = (*parts, ModulePart(name, type(module).__name__)) if name else parts
            for parameter in module.__dict__.get("_parameters", {}).values():
                if parameter is not None and self.owner(parameter) == ():
                    self._owners[id(parameter)] = (weakref.ref(parameter), own)


def _recorded(calls: ModuleCalls, call: Callable[..., Any]) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]:
    """A function that calls a module and notes when."""
    log = calls.log
    assert log is not None
    hidden = quiet.unreported if log.stacks else lambda function: function
    address, ident, clock, extend = map(hidden, (id, threading.get_ident, recorder.clock, log.records.extend))
    running, called, nothing, tracks = calls.running, calls.called, (-1, *log.nothing), tasks.tracks

    def recorded(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if calls.log is None:
            return call(module, *args, **kwargs)
        thread = ident()
        around = running[thread]
        try:
            place = (called if around is None else around[0].inside)[address(module)]
        except KeyError:
            place = calls.enter(around, module)
        start = clock() if calls.collecting else -1.0
        running[thread] = (place, start, module, around)
        try:
            return call(module, *args, **kwargs)
        finally:
            running[thread] = around
            # asked for after that: what still runs is ended by `take`
            if calls.log is not None and start >= 0:
                extend((place.label, start, clock(), tasks.track_number() if tracks else thread, *nothing))

    return recorded


def _outwards(innermost: Running | None) -> Iterator[tuple[Place, float, Any]]:
    while innermost is not None:
        place, start, module, innermost = innermost
        yield place, start, module


def _children(module: Module) -> dict[str, Any]:
    # from the dictionary: a class may have another idea of what attributes are
    return {} if module is None else module.__dict__.get("_modules") or {}


def _walk(module: Module) -> Iterator[tuple[str, Any]]:
    """A module and all that it holds, with their names, the nearest first."""
    level, seen = [("", module)], {id(module)}
    while level:
        yield from level
        below = []
        for name, holder in level:
            for inner, child in _children(holder).items():
                if child is not None and id(child) not in seen:
                    seen.add(id(child))
                    below.append((f"{name}.{inner}" if name else inner, child))
        level = below


def _find(module: Any, name: str) -> Any:
    """Return what a module holds by this name now; None for nothing."""
    for part in name.split("."):
        module = _children(module).get(part)
    return module
