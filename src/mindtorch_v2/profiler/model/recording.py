"""Values computed from the columns of a session, for all events at once."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import flops, links, live_memory, modules, places, tree
from .events import Kernel
from .facts import ATTRIBUTES, KEYS, Facts, ListsByName
from .session import BACKWARD_FUNCTION, Label, MemoryLog, Session, Track
from .waiting import BUILT_IN

if TYPE_CHECKING:
    from .recorded_events import RecordedEvent

__all__ = ["Recording"]

Column = np.ndarray[Any, np.dtype[Any]]

_STEP = "ProfilerStep#"


class Recording:
    """A session and the tree of its events.

    `rows` are the events to show and `around` the row of the event around each, -1 for none. A dispatched operator's time must not depend
    on whether the Python functions inside it were recorded: these have no time of their own (`has_self` is False), and `parent`, by
    which times are summed, passes over them. Functions that autograd calls back (a `Function`'s, hooks) have their own. Functions written
    in C have none where an event is around them: a function that sleeps has the time of its sleep. `events` are the objects that stand for all rows. `written` are the rows of those that someone has
    written to; `lists` are the lists that readers have got, by attribute and row, and `ranges` the intervals.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.names = ["ProfilerStep*" if label.name.startswith(_STEP) else label.name for label in session.labels]
        self.events: Any = []
        self.written: set[int] = set()
        self.lists = ListsByName(self)
        self.ranges: dict[int, Any] = {}
        parent = tree.parents(session)
        parent[~self.on_cpu] = -1
        function = self.of_labels(lambda label: label.kind == "python_function")
        in_c = self.of_labels(lambda label: label.name.startswith(BUILT_IN)) & (parent >= 0)
        self.has_self = ~(function & (in_c | tree.inside(session, self.of_labels(links.is_dispatched), parent)))
        around, parent = parent, _passing_over(parent, ~self.has_self, self.has_self)
        repeat = self._repeats(parent)
        self.around = _passing_over(around, repeat)
        self.parent = _passing_over(parent, repeat)
        self.rows = np.flatnonzero(~repeat)

    def __getstate__(self) -> dict[str, Any]:
        """The state to be pickled: cached columns are left out, and computed anew."""
        return {name: value for name, value in vars(self).items() if name not in ("facts", "keys", "ranges")} | {"ranges": {}}

    @functools.cached_property
    def facts(self) -> Facts:
        """The attributes of the events, by name and row."""
        return Facts(self, ATTRIBUTES)

    @functools.cached_property
    def keys(self) -> Facts:
        """Return the facts of events as mappings, by key and row."""
        return Facts(self, KEYS)

    def event(self, row: int) -> RecordedEvent | None:
        """The event of a row; None for -1."""
        return None if row < 0 else self.events[row]

    def of_labels(self, fact: Callable[[Label], bool]) -> Column:
        return np.array([fact(label) for label in self.session.labels], bool)[self.session.label]

    def _repeats(self, parent: Column) -> Column:
        """Whether each operator is all there is in an operator of the same name. torch leaves these out, as the overload that does
        the work of another; it leaves out scopes and recursive functions too, which are lost without need.
        """
        numbers = {name: i for i, name in enumerate(dict.fromkeys(self.names))}
        name = np.array([numbers[name] for name in self.names], np.int32)[self.session.label]
        child = (parent >= 0) & self.has_self & ~self.of_labels(lambda label: label.kind == "compile")
        if not child.any():
            return child
        alone = np.bincount(parent[child], minlength=len(parent))[parent] == 1
        return child & alone & (name == name[parent]) & self.of_labels(lambda label: label.kind == "op")

    def label(self, row: int) -> Label:
        return self.session.labels[self.session.label.item(row)]

    def track(self, row: int) -> Track:
        return self.session.tracks[self.session.track.item(row)]

    def inputs(self, row: int) -> tuple[Any, ...]:
        column = self.session.inputs
        number = -1 if column is None or not self.session.info.record_shapes else column.item(row)
        return self.session.input_table[number] if number >= 0 else ()

    @functools.cached_property
    def places(self) -> list[str]:
        """The session's frames as torch writes them."""
        return places.places(self.session)

    def children(self, row: int) -> list[Any]:
        """The events directly inside of one."""
        order, starts = self._children
        return [self.events[child] for child in order[starts[row] : starts[row + 1]].tolist()]

    def all_children(self) -> list[list[Any]]:
        """`children` of every row. Most have none: these share one list."""
        order, starts = self._children
        inside, bounds, none = list(map(self.events.__getitem__, order.tolist())), starts.tolist(), list[Any]()
        return [inside[first:end] if first < end else none for first, end in itertools.pairwise(bounds)]

    def all_around(self) -> list[Any]:
        """The events around those of every row; None where there is none."""
        return list(map([*map(self.events.__getitem__, range(len(self.session))), None].__getitem__, self.around.tolist()))

    @property
    def has_plain_children(self) -> Column:
        """Whether all events directly inside of one have a time of their own."""
        plain = np.full(len(self.session), True)
        without = self.rows[~self.has_self[self.rows]]
        plain[self.around[without[self.around[without] >= 0]]] = False
        return plain

    @functools.cached_property
    def _children(self) -> tuple[Column, Column]:
        """Rows in order of their parents, and where the children of each begin."""
        rows = self.rows[self.around[self.rows] >= 0]
        order = rows[np.argsort(self.around[rows], kind="stable")]
        return order, np.searchsorted(self.around[order], np.arange(len(self.session) + 1))

    @functools.cached_property
    def duration_ns(self) -> Column:
        return self.session.end_ns - self.session.start_ns

    @functools.cached_property
    def on_cpu(self) -> Column:
        """Whether each event is on the CPU."""
        return np.array([track.device_type == "CPU" for track in self.session.tracks], bool)[self.session.track]

    @functools.cached_property
    def cpu_ns(self) -> Column:
        """Return the CPU time of each event."""
        return np.where(self.on_cpu, self.duration_ns, 0)

    @property
    def cpu_memory_bytes(self) -> Column:
        """`memory_bytes` of the events on the CPU."""
        return np.where(self.on_cpu, self.memory_bytes, 0)

    def without_children(self, amount: Column) -> Column:
        """The part of each event's amount that its children do not have."""
        counted = np.zeros_like(amount)
        rows = self.rows[self.has_self[self.rows]]
        counted[rows] = amount[rows]
        return counted - tree.children_ns(counted, self.parent)

    def with_children(self, amount: Column, parent: Column) -> Column:
        """The amount of each event together with those of all events inside it."""
        total = amount.copy()
        for rows in reversed(tree.levels(self.session)[1:]):
            inner = rows[parent[rows] >= 0]
            np.add.at(total, parent[inner], total[inner])
        return total

    @functools.cached_property
    def live_memory(self) -> tuple[Column, Column]:
        """Bytes in use on the CPU when each event began and when it ended."""
        found = live_memory.around(self.session)
        assert found is not None, "memory was not recorded"
        return found

    @functools.cached_property
    def memory_bytes(self) -> Column:
        """Bytes made and not freed while each event was open on its thread; of the heap, what it grew by in that time."""
        own = np.zeros(len(self.session), np.int64)
        log = self.session.memory
        if self.session.heap_before is not None:
            return self._heap_growth()
        if log is None:
            return own
        inside = log.event >= 0
        np.add.at(own, log.event[inside], log.size_bytes[inside])
        return self.with_children(own, tree.parents(self.session))

    def change(self, row: int) -> MemoryLog:
        """Return the change of memory that an event stands for, as a log of one row."""
        log = self.session.memory
        assert log is not None, "memory was not recorded"
        return MemoryLog(*(None if column is None else column.item(self._changes[row]) for column in log))  # type: ignore[arg-type]

    @functools.cached_property
    def _changes(self) -> dict[int, int]:
        """Places in the log of the changes that are events, by row."""
        log = self.session.memory
        assert log is not None, "memory was not recorded"
        return {row: at for at, row in enumerate(log.event.tolist()) if row >= 0 and self.label(row).kind == "memory"}

    def _heap_growth(self) -> Column:
        before, after = self.live_memory
        growth, parent, is_read = after - before, tree.parents(self.session), before != 0
        for rows in reversed(tree.levels(self.session)[1:]):
            inner = rows[(parent[rows] >= 0) & ~is_read[parent[rows]]]  # in a Python function, of which the heap is not known
            np.add.at(growth, parent[inner], growth[inner])
        return growth

    @functools.cached_property
    def operator(self) -> Column:
        """For calls of a device's runtime and for kernels, the row of the operator that made or started them; -1 for others."""
        row = np.arange(len(self.session))
        owner = links.device_rows(self.session)[0]
        shown = np.isin(owner, self.rows)
        return np.where(owner == row, -1, np.where(shown, owner, self.parent[owner]))

    @functools.cached_property
    def ids(self) -> Column:
        """The number of each event."""
        return links.ids(self.session)

    @functools.cached_property
    def device_id(self) -> Column:
        """The number of each event, the same for a call of a device's runtime and the kernel that it started."""
        return self.ids[links.device_rows(self.session)[1]]

    @functools.cached_property
    def kernels(self) -> dict[int, list[int]]:
        """Rows of kernels by the row of the operator that started them."""
        started: dict[int, list[int]] = {}
        _, kernels = links.launches(self.session)
        for kernel, operator in zip(kernels.tolist(), self.operator[kernels].tolist(), strict=True):
            started.setdefault(operator, []).append(kernel)
        return started

    def kernels_of(self, row: int) -> list[Kernel]:
        """The work that an operator started on a device."""
        rows = self.kernels.get(row, [])
        return [Kernel(self.label(i).name, self.track(i).device_index, self.duration_ns.item(i) / 1000) for i in rows]

    @functools.cached_property
    def self_device_ns(self) -> Column:
        """Return the time of the kernels that each operator started, and of each kernel; nothing without a device."""
        if not self.session.info.use_device:
            return np.zeros(len(self.session), np.int64)
        waits = self.of_labels(lambda label: label.kind == "sync")  # a row about a device that does nothing
        own = np.where(self.on_cpu | waits, 0, self.duration_ns)
        _, kernels = links.launches(self.session)
        kernels = kernels[(self.operator[kernels] >= 0) & ~waits[kernels]]
        np.add.at(own, self.operator[kernels], self.duration_ns[kernels])
        return own

    @functools.cached_property
    def device_ns(self) -> Column:
        """`self_device_ns` together with what the events inside started."""
        return self.with_children(self.self_device_ns, self.parent)

    @functools.cached_property
    def python_ids(self) -> tuple[Column | None, Column | None]:
        """Numbers of Python functions and of the function around each, from 1; 0 for none."""
        return links.python_ids(self.session)

    @functools.cached_property
    def runtime_label(self) -> Column | None:
        """For operators that called a device's runtime, the label of the first such call; -1 for others."""
        return links.runtime_labels(self.session)

    def runtime_name(self, row: int) -> str:
        number = -1 if self.runtime_label is None else self.runtime_label.item(row)
        return self.session.labels[number].name if number >= 0 else "dispatch_kernel"

    @functools.cached_property
    def flops(self) -> Column:
        """Floating point operations of each event; 0 where they are not asked for or not known."""
        return flops.counts(self.session)

    @functools.cached_property
    def attribution(self) -> modules.Attribution:
        """Return the module that each event belongs to, and the phase."""
        return modules.attribute(self.session)

    @functools.cached_property
    def forward_track(self) -> Column:
        """For events of a backward pass, the track on which the forward pass made their node; -1 for others."""
        forward = links.first_forward(self.session)
        return np.where(forward >= 0, self.session.track[forward], -1) if len(forward) else forward

    @functools.cached_property
    def stack(self) -> Column:
        """Into the session's table of stacks. Inside a backward pass: where the forward pass made the node, unless a function of the
        program is called back there, a hook or a `Function`'s backward: what that calls has its own stack.
        """
        session = self.session
        if session.stack is None:
            return np.full(len(session), -1, np.int32)
        stack = session.stack.copy()
        inside = np.flatnonzero((self._node >= 0) & self.of_labels(lambda label: label.kind != "python_function"))
        node = self._node[inside]
        depth = np.array([*map(len, session.stack_table), 0])  # the last is that of -1, no stack
        called_back = depth[session.stack[inside]] > depth[session.stack[node]]
        inside, node = inside[~called_back], node[~called_back]
        forward = links.first_forward(session)[node]
        # torch: a node that was made before the recording has the stack of the pass, and a leaf's has none
        stack[inside] = np.where(
            forward >= 0, session.stack[forward], np.where(session.sequence[node] >= 0, session.stack[inside], -1)
        )
        return stack

    @functools.cached_property
    def _node(self) -> Column:
        """The innermost node of a backward pass that each event is or is inside of; -1 for none."""
        is_node = self.of_labels(lambda label: label.scope == BACKWARD_FUNCTION)
        node = np.where(is_node, np.arange(len(self.session)), -1)
        for rows in tree.levels(self.session)[1:]:
            inner = rows[(node[rows] < 0) & (self.parent[rows] >= 0)]
            node[inner] = node[self.parent[inner]]
        return node

    @functools.cached_property
    def arrows(self) -> dict[int, tuple[int, bool]]:
        """Number of the arrow between forward and backward that a row begins (True) or ends."""
        forward, back = links.flows(self.session)
        ends = {row: (i, False) for i, row in enumerate(back.tolist(), 1)}
        return ends | {row: (i, True) for i, row in enumerate(forward.tolist(), 1)}


def _passing_over(parent: Column, skipped: Column, rows: Column | bool = True) -> Column:
    """The parents of these rows, or where they are skipped, their parents'."""
    found = parent.copy()
    while (over := (found >= 0) & skipped[found] & rows).any():
        found[over] = parent[found[over]]
    return found
