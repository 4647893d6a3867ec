"""The history of memory: every storage that is made and freed, with the Python stacks of both, for as long as somebody asks.

Nothing here waits for a lock, because storages die in any thread and at any time, by the garbage collector too: each step on what
threads share is one that Python does not interrupt.
"""

from __future__ import annotations

import ctypes
import re
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ...._storage import UntypedStorage
from ...model import places
from ...model.leaks import Place, Survivor
from ...model.session import ROLE_NAMES, Frame
from ...output import snapshot
from ...output.snapshot import FREED, KINDS, MADE, OPERATOR, TAKEN, Block, Record, entry_count
from ..stacks import stack_walk
from . import live_objects, roles, storage_hooks
from .storage_hooks import Hooks, array_slot

__all__ = ["History", "Settings", "live_blocks"]

Array = np.ndarray[Any, Any]
Stack = tuple[tuple[CodeType, ...], tuple[int, ...]]  # codes and the offsets in them, innermost first

MOST_STACKS = 1 << 17  # that are found again; a program of endlessly many distinct ones must not fill the memory


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of a history. The words are torch's."""

    enabled: str = "all"
    context: str | None = "all"
    stacks: str = "all"
    max_entries: int = sys.maxsize
    skip_actions: frozenset[str] = frozenset()
    oom_snapshot: str | None = None


_SIZE, _ADDRESS, _STACK, _TIME, _STORAGES = range(5)


class History:
    """A history of storages since `start`: a trace of what happened, and the storages that live."""

    def __init__(self, settings: Settings) -> None:
        self._live: dict[int, list[Any]] = {}  # by the address of the array
        self._known: dict[tuple[int, ...], Stack] = {}
        self._hooks: Hooks | None = None
        self._trace: deque[tuple[int, int, int, int, Stack | None]] = deque()
        self._counts = [0] * len(KINDS)  # records of each kind, kept or not
        self.change(settings)

    def change(self, settings: Settings) -> None:
        """Go on with other settings."""
        self.settings = settings
        self._entries = [entry_count(kind, settings.skip_actions) for kind in KINDS]
        self._notes = [settings.enabled == "all" and entries > 0 for entries in self._entries]
        self._trace = deque(self._trace, settings.max_entries)
        if self._hooks is not None:
            former, self._hooks = self._hooks, self._make_hooks()
            storage_hooks.replace(former, self._hooks)

    def start(self) -> None:
        """Watch from here on. Other threads may make and free storages meanwhile."""
        told: set[int] = set()
        hooks = self._make_hooks()

        def on_array(storage: UntypedStorage, array: Array) -> None:
            told.add(id(storage))
            hooks.on_array(storage, array)

        first = Hooks(on_array, hooks.on_free)
        storage_hooks.add(first)
        storages = _live_storages()  # none of them dies before it is known
        for storage, array in storages:
            if id(storage) not in told:
                self._live.setdefault(id(array), [array.nbytes, address_of(array), None, 0, 0])[_STORAGES] += 1
        self._hooks = hooks
        storage_hooks.replace(first, hooks)

    def stop(self) -> None:
        """Watch no more, and forget."""
        if self._hooks is not None:
            storage_hooks.remove(self._hooks)
            self._hooks = None
        self._live.clear()
        self.clear()

    def clear(self) -> None:
        """Forget the trace; what lives keeps its stacks."""
        self._trace.clear()
        self._counts[:] = [0] * len(KINDS)

    def note(self, kind: int, size_bytes: int, address: int = 0, frame: FrameType | None = None) -> None:
        """Put into the trace what is no storage."""
        if self._notes[kind]:
            stack = None if frame is None or self.settings.context not in ("alloc", "all") else self.stack_of(frame)
            self._counts[kind] += 1
            self._trace.append((kind, time.time_ns(), size_bytes, address, stack))

    def snapshot(self) -> dict[str, Any]:
        """Return what is known now, in torch's form."""
        blocks = self.live()
        self.note(TAKEN, sum(block.size_bytes for block in blocks))
        records, resolved = list(self._trace), _Resolved()
        return snapshot.of(
            blocks,
            [
                Record(kind, time_ns, size, address, None if stack is None else resolved[stack])
                for kind, time_ns, size, address, stack in records
            ],
            entries=sum(count * entries for count, entries in zip(self._counts, self._entries, strict=True)),
            max_entries=self.settings.max_entries,
            skip_actions=self.settings.skip_actions,
            with_operators=self.settings.stacks == "all",
        )

    def live(self) -> list[Block]:
        """The memory that lives, in order of its making."""
        return [block for _, block in self._blocks()]

    def survivors(self, group_by_stack_n: int | None) -> list[Survivor]:
        """The storages that live and were made since the start."""
        roots, roles_now = places.search_path(), roles.now()
        return [
            Survivor(
                block.size_bytes, _place(block, roots, group_by_stack_n), ROLE_NAMES[roles_now[key]] if key in roles_now else ""
            )
            for key, block in self._blocks()
            if block.time_ns
        ]

    def _blocks(self) -> list[tuple[int, Block]]:
        """Return the live storages, by the address of the array."""
        resolved = _Resolved()
        return [
            (key, Block(size, address, () if stack is None else resolved[stack], time_ns))
            for key, (size, address, stack, time_ns, _) in self._live.copy().items()
        ]

    def stack_of(self, frame: FrameType | None) -> Stack:
        """The stack from this frame outwards; the same object for the same place."""
        innermost = frame
        # by address, because hashing a code object hashes its constants; a known stack keeps its codes alive
        parts: list[int] = []
        append = parts.append
        while frame is not None:
            append(id(frame.f_code))
            append(frame.f_lasti)
            frame = frame.f_back
        key = tuple(parts)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_STACKS:
                self._known.clear()
            known = self._known[key] = _codes_and_offsets(innermost)
        return known

    def _make_hooks(self) -> Hooks:
        """Make the callback for each storage. All it uses is bound here, and what it does is decided here."""
        set_slot, get_slot, live, clock, caller = array_slot.__set__, array_slot.__get__, self._live, time.time_ns, sys._getframe
        append, counts, stack_of = self._trace.append, self._counts, self.stack_of
        notes_made, notes_freed = self._notes[MADE], self._notes[FREED]
        has_stack = self.settings.context is not None
        stack_of_made, stack_of_free = self.settings.context in ("alloc", "all"), self.settings.context == "all"

        def on_array(storage: UntypedStorage, array: Array) -> None:
            set_slot(storage, array)
            size, key = array.nbytes, id(array)
            if not size or storage.__class__ is not UntypedStorage:
                return
            known = live.get(key)
            if known is not None:
                known[_STORAGES] += 1
                return
            now, address, stack = clock(), address_of(array), stack_of(caller().f_back) if has_stack else None
            live[key] = [size, address, stack, now, 1]
            if notes_made:
                counts[MADE] += 1
                append((MADE, now, size, address, stack if stack_of_made else None))

        def on_free(storage: UntypedStorage) -> None:
            if storage.__class__ is not UntypedStorage:
                return
            try:
                key = id(get_slot(storage))
            except AttributeError:  # it never got an array
                return
            block = live.get(key)
            if block is None:  # of an array without a byte, or the history has just ended
                return
            block[_STORAGES] -= 1
            if block[_STORAGES]:
                return
            live.pop(key, None)
            if notes_freed:
                counts[FREED] += 1
                append((FREED, clock(), block[_SIZE], block[_ADDRESS], stack_of(caller().f_back) if stack_of_free else None))

        return Hooks(on_array, on_free)


class _Resolved:
    """Frames of stacks, innermost first: those of the program, and those of operators, whose functions are named after them."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Frame, ...]] = {}  # by address: hashing a stack hashes its codes

    def __getitem__(self, stack: Stack) -> tuple[Frame, ...]:
        found = self._found.get(id(stack))
        if found is None:
            frames = [_frame(code, offset) for code, offset in zip(*stack, strict=True)]
            found = self._found[id(stack)] = tuple([frame for frame in frames if frame is not None])
        return found


def _place(block: Block, roots: Sequence[str], group_by_stack_n: int | None) -> Place:
    operator = next((frame.function for frame in block.frames if frame.file == OPERATOR), "")
    stack = [places.place(frame, roots) for frame in block.frames if frame.file != OPERATOR]
    return Place(operator, tuple(stack[:group_by_stack_n]), "")


_OPERATOR_CODE = re.compile(r"<mindtorch_v2 (\S+::\S+) \d+>")


def _frame(code: CodeType, offset: int) -> Frame | None:
    if not stack_walk.is_internal(code):
        return stack_walk.frame_at(code, offset)
    operator = _OPERATOR_CODE.fullmatch(code.co_filename)
    return None if operator is None else Frame(OPERATOR, 0, operator[1])


def _codes_and_offsets(frame: FrameType | None) -> Stack:
    codes, offsets = [], []
    while frame is not None:
        codes.append(frame.f_code)
        offsets.append(frame.f_lasti)
        frame = frame.f_back
    return tuple(codes), tuple(offsets)


def live_blocks() -> list[Block]:
    """The memory that lives now, of which no history is known."""
    arrays = {id(array): array for _, array in _live_storages()}
    return [Block(array.nbytes, address_of(array)) for array in arrays.values()]


def _live_storages() -> list[tuple[UntypedStorage, Array]]:
    """All storages with memory, and their arrays."""
    found = []
    for storage in [s for s in live_objects.find(UntypedStorage) if type(s) is UntypedStorage]:
        try:
            array = array_slot.__get__(storage)
        except AttributeError:  # another thread is about to give it one
            continue
        if array.nbytes:
            found.append((storage, array))
    return found


def _address_by_interface(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


_POINTER = ctypes.c_void_p.from_address


def _address_by_layout(array: Array) -> int:
    """The first field of NumPy's public `PyArrayObject`: a fifth of the time that the dict of `__array_interface__` takes."""
    return _POINTER(id(array) + object.__basicsize__).value or 0


_sample = np.zeros(1)
address_of = _address_by_layout if _address_by_layout(_sample) == _address_by_interface(_sample) else _address_by_interface
