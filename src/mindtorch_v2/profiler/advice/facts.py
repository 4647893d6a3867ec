"""The columns of a recording, as rules look at them: rows of events by name, what is around them and what comes before and after."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable
from typing import Any

import numpy as np

from ..model import links, places, tree
from ..model.recording_costs import costs_ns
from ..model.session import CALL_IN_C, Label, Session
from .functions import Functions
from .kinds import combinations, medians
from .outside import FUNCTION_NS, Outside
from .sizes import PASSES, VIEWS, largest, tensors

__all__ = ["Facts"]

Column = np.ndarray[Any, np.dtype[Any]]

STEP = "Optimizer.step#"
# Kinds of events that are no part of the tree of operators and scopes.
PASSED_OVER = ("python_function", "memory", "runtime", "gc", "compile")


# What recording adds to x + y, and what each option adds to that; calls of Python functions are events of their own.
PLAIN_NS, SHAPES_NS, STACK_NS, MEMORY_NS = 310, 200, 200, 330


class Facts:
    """A session with what rules ask of it. Arrays of rows are in order of start.

    `claimed` marks the events that a finding accounts for already; a rule of general nature leaves them to it.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.duration_ns: Column = session.end_ns - session.start_ns
        self.claimed = np.zeros(len(session), bool)

    # --- which rows ---------------------------------------------------------------------------------------------------

    def where(self, fact: Callable[[Label], bool]) -> Column:
        """Rows of the events whose label is such."""
        mask = self._of_labels(fact)
        if not mask.any():
            return np.empty(0, np.int64)
        return np.flatnonzero(mask[self.session.label])

    def find(self, *names: str) -> Column:
        """Rows of the operators and nodes of these names."""
        return self.where(lambda label: label.name in names and label.kind == "op")

    def scopes(self, prefix: str) -> Column:
        """Rows of the scopes whose name begins so, those inside another such scope left out."""
        return self.outermost(self.where(lambda label: label.kind == "scope" and label.name.startswith(prefix)))

    def outermost(self, rows: Column) -> Column:
        """Return those of these rows that are not inside another."""
        kept = [self._outermost_of_track(rows[of_track]) for of_track in tree.groups(self.session.track[rows])]
        return np.sort(np.concatenate(kept)) if kept else rows

    def _outermost_of_track(self, rows: Column) -> Column:
        ends = self.session.end_ns[rows]
        latest = np.maximum.accumulate(ends)
        # events nest: one that starts before all before it have ended is inside
        inside = np.concatenate([[False], self.session.start_ns[rows[1:]] < latest[:-1]])
        return np.asarray(rows[~inside])

    def union(self, *rows: Column) -> Column:
        """All of these rows, each once."""
        mark = np.zeros(len(self.session), bool)
        for each in rows:
            mark[each] = True
        return np.flatnonzero(mark)

    def unclaimed(self, rows: Column) -> Column:
        return np.asarray(rows[~self.claimed[rows]])

    def _of_labels(self, fact: Callable[[Label], bool]) -> Column:
        return np.array([fact(label) for label in self.session.labels], bool)

    def of_labels(self, fact: Callable[[Label], bool]) -> Column:
        """Whether the label of each event is such."""
        return np.asarray(self._of_labels(fact)[self.session.label]) if len(self.session) else np.zeros(0, bool)

    def of_kind(self, *kinds: str) -> Column:
        """Whether each event is of one of these kinds."""
        return self.of_labels(lambda label: label.kind in kinds)

    @functools.cached_property
    def is_operator(self) -> Column:
        """Whether each event is a dispatched operator: not a scope, nor a node of a backward pass or the engine around it."""
        return self._of_labels(links.is_dispatched)[self.session.label]

    @functools.cached_property
    def in_operator(self) -> Column:
        """Whether each event is an operator, a node or a compilation, or inside one: what a kernel calls is the kernel's."""
        is_op = self.of_kind("op", "kernel", "compile")
        return is_op | tree.inside(self.session, is_op, self.any_parent)

    @functools.cached_property
    def outermost_operators(self) -> Column:
        """Whether each event is an operator or a node on the CPU that is not inside another."""
        on_cpu = np.array([track.device_type == "CPU" for track in self.session.tracks], bool)[self.session.track]
        is_op = self.of_kind("op")
        return is_op & on_cpu & ~tree.inside(self.session, is_op, self.any_parent)

    # --- what is around, before and after -----------------------------------------------------------------------------

    @functools.cached_property
    def parent(self) -> Column:
        """Row of the operator, node or scope around each event, -1 for none."""
        return tree.parents(self.session, skip=PASSED_OVER)

    @functools.cached_property
    def any_parent(self) -> Column:
        """Row of the event around each, Python functions too; -1 for none."""
        return tree.parents(self.session)

    def name(self, row: int) -> str:
        return self.session.labels[self.session.label.item(row)].name

    def is_named(self, rows: Column, names: Collection[str]) -> Column:
        """Whether each row is an event of one of these names; -1 is none."""
        named = np.append(self._of_labels(lambda label: label.name in names), False)
        return np.asarray(named[np.where(rows < 0, -1, self.session.label[rows])])

    def called(self, rows: Column, names: Collection[str]) -> Column:
        """Return those of these rows that have these names."""
        return np.asarray(rows[self.is_named(rows, names)])

    def called_by_program(self, rows: Column) -> Column:
        """Return those of these rows that no operator, backward node or optimizer called."""
        parent = self.parent[rows]
        free = (parent < 0) | self._is_plain_scope[parent]
        return np.asarray(rows[free])

    @functools.cached_property
    def _is_plain_scope(self) -> Column:
        return self._of_labels(lambda label: label.kind == "scope" and not label.name.startswith("Optimizer."))[self.session.label]

    def module(self, rows: Column) -> Column:
        """The label of the innermost call of a module around each row, -1 for none, and where calls of modules were not recorded."""
        is_module = np.append(self._of_labels(lambda label: label.name.startswith("nn.Module: ")), True)
        if is_module.sum() == 1:  # the last, which stands for none
            return np.full(len(rows), -1, np.int64)
        parent, label = tree.parents(self.session), np.append(self.session.label, -1)
        found = parent[rows]
        while (over := ~is_module[label[found]]).any():
            found[over] = parent[found[over]]
        return np.asarray(label[found], np.int64)

    def around(self, rows: Column, scopes: Column) -> Column:
        """For each row the one of these events that it is inside of, -1 for none. Of the events none may be inside another."""
        found = np.full(len(rows), -1, np.int64)
        session = self.session
        for of_track in tree.groups(session.track[scopes]):
            here = scopes[of_track]
            mine = np.flatnonzero(session.track[rows] == session.track[here[0]])
            last = np.searchsorted(here, rows[mine]) - 1
            fits = (last >= 0) & (session.end_ns[rows[mine]] <= session.end_ns[here[last]])
            found[mine[fits]] = here[last[fits]]
        return found

    @functools.cached_property
    def siblings(self) -> Column:
        """A number for each event, the same for those directly inside one event, or outermost on one track in one step."""
        top = len(self.session) + self.session.track.astype(np.int64) * (self.step_count + 1) + self.step
        return np.where(self.parent >= 0, self.parent, top)

    @functools.cached_property
    def _in_line(self) -> tuple[Column, Column]:
        """Operators and nodes in order of their siblings, and the place of each row in that order."""
        shown = self._of_labels(lambda label: label.kind not in PASSED_OVER)[self.session.label]
        rows = np.flatnonzero(shown)
        order = rows[np.argsort(self.siblings[rows], kind="stable")]
        place = np.full(len(self.session), -1, np.int64)
        place[order] = np.arange(len(order))
        return order, place

    def neighbour(self, rows: Column, distance: int) -> Column:
        """The sibling so many places after each row, before it if negative; -1 for none."""
        order, place = self._in_line
        at = place[rows] + distance
        inside = (rows >= 0) & (place[rows] >= 0) & (at >= 0) & (at < len(order))
        found = np.where(inside, order[np.where(inside, at, 0)], -1)
        return np.where((found >= 0) & (self.siblings[found] == self.siblings[rows]), found, -1)

    def children(self, rows: Column) -> Column:
        """Rows of the events directly inside of these."""
        mark = np.zeros(len(self.session) + 1, bool)
        mark[rows] = True
        return np.flatnonzero(mark[self.parent])  # the last entry stands for no parent

    @functools.cached_property
    def backward_of(self) -> Column:
        """For the engine's events, the outermost operator of the forward pass that made their node; -1 for others and for none."""
        forward = np.where(self._of_labels(lambda x: x.name.startswith(links.EVALUATE))[self.session.label], self._forward, -1)
        while (inner := (forward >= 0) & (self.parent[forward] >= 0) & self.is_operator[self.parent[forward]]).any():
            forward[inner] = self.parent[forward[inner]]
        return forward

    @functools.cached_property
    def _forward(self) -> Column:
        return links.first_forward(self.session)

    def with_backward(self, rows: Column) -> Column:
        """These rows, and those of the backward pass that follow from them."""
        mark = np.zeros(len(self.session) + 1, bool)
        mark[rows] = True
        return self.union(rows, np.flatnonzero(mark[self.backward_of]))

    # --- time ---------------------------------------------------------------------------------------------------------

    def time_ns(self, rows: Column) -> int:
        """Sum the time of these events."""
        return int(self.duration_ns[rows].sum())

    def usual_ns(self, rows: Column) -> Column:
        """For each row the median time of events of its name and shapes among these, without the recorder's work inside them.

        The first recorded call of an operator takes a thousand times as long, and no advice changes that. Where the system was busy
        with other work all along, all is slower by what that took.
        """
        return medians(self._kinds(rows), self.net_ns(rows)) * self.slowdown

    def net_ns(self, rows: Column) -> Column:
        """The time of each event, without the recorder's work inside it."""
        took = self.duration_ns[rows]
        return np.asarray(np.maximum(took - self._recorder_inside(rows), took // 4))

    def _kinds(self, rows: Column) -> Column:
        return self.session.label[rows] * np.int64(len(self.session.input_table) + 2) + self.shapes(rows) + 1

    @functools.cached_property
    def slowdown(self) -> float:
        """Return how much longer operators took than they usually do, the longest call of each kind left out; 1 on a quiet machine."""
        rows = self.called_by_program(np.flatnonzero(self.is_operator))
        if not len(rows):
            return 1.0
        kinds, took = self._kinds(rows), self.duration_ns[rows]
        _, which = np.unique(kinds, return_inverse=True)
        longest = np.zeros(which.max() + 1, np.int64)
        np.maximum.at(longest, which, took)
        usual = medians(kinds, took)
        once = np.bincount(which, usual) / np.bincount(which)
        rest, expected = took.sum() - longest.sum(), usual.sum() - once.sum()
        return max(float(rest / expected), 1.0) if expected > 0 else 1.0

    @functools.cached_property
    def least_call_ns(self) -> float:
        """The least time of calling an operator: the usual time of the one that took least, of those without operators inside."""
        rows = np.flatnonzero(self.is_operator)
        rows = rows[~np.isin(rows, self.parent[rows])]
        return float(self.usual_ns(rows).min(initial=np.inf)) if len(rows) else 0.0

    def pass_ns(self, elements: Column) -> Column:
        """The time of one pass over so many elements: the least that an operator on about as many took for each; 0 if there is none."""
        rows = self.find(*PASSES)
        sizes, times = self.elements(rows), self.usual_ns(rows)
        found = np.zeros(len(elements))
        for size in np.unique(elements[elements > 0]).tolist():
            alike = (4 * sizes >= size) & (sizes <= 4 * size)  # half of the values may be what a mask leaves, more or less
            if alike.any():
                found[elements == size] = size * (times[alike] / sizes[alike]).min()
        return found

    def _recorder_inside(self, rows: Column) -> Column:
        """The time of recording the events that are inside of each."""
        session, found = self.session, np.zeros(len(rows), np.int64)
        track = session.track[rows]
        for of_track, until in self._costs_by_track:
            here = np.flatnonzero(track == session.track[of_track[0]])
            ended = np.searchsorted(session.start_ns[of_track], session.end_ns[rows[here]], side="left")
            found[here] = until[ended] - until[np.searchsorted(of_track, rows[here], side="right")]
        return np.maximum(found, 0)

    @functools.cached_property
    def _costs_by_track(self) -> list[tuple[Column, Column]]:
        """The events of each track in their order, and the time of recording all before each of them."""
        costs = (
            costs_ns(self.session, self.parent) if self.session.info.event_costs_ns else np.full(len(self.session), self.event_ns)
        )
        costs[self.of_kind("python_function")] = self.function_ns
        return [(rows, np.concatenate([[0], np.cumsum(costs[rows])])) for rows in tree.groups(self.session.track)]

    @functools.cached_property
    def event_ns(self) -> int:
        """The time of recording an operator on the machine that recorded; a constant where that was not measured."""
        info = self.session.info
        usual = PLAIN_NS + SHAPES_NS * info.record_shapes + STACK_NS * info.with_stack + MEMORY_NS * info.profile_memory
        return dict(info.event_costs_ns).get("op", usual)

    @functools.cached_property
    def function_ns(self) -> int:
        """The time of recording the call of a Python function."""
        return dict(self.session.info.event_costs_ns).get("python_function", FUNCTION_NS)

    @functools.cached_property
    def call_in_c_ns(self) -> int:
        """What the tracer adds to the call of a function written in C, which is no event; 0 if it is not told of these calls.

        Where it is, the program's own Python takes several times as long while it is recorded, and nothing says how much of that is the tracer's.
        """
        return dict(self.session.info.event_costs_ns).get(CALL_IN_C, 0)

    @functools.cached_property
    def step(self) -> Column:
        """The step of each event, counted from 0: by `prof.step()`, or else by the optimizer's steps."""
        numbers, step = np.unique(self.session.step, return_inverse=True)
        ends = np.sort(self.session.end_ns[self._optimizer_steps])
        if len(numbers) > 1:
            last = len(numbers) - 1
            made = np.bincount(step[self._optimizer_steps], minlength=len(numbers))
            # what the program does after its last step is none, and part of that
            is_rest = made[last] == 0 and (made[:last] > 0).all()
            return np.minimum(step, last - 1) if is_rest else np.asarray(step)
        if len(ends) < 2:
            return np.asarray(step)
        # what follows the last step of the optimizer is part of that step
        return np.minimum(np.searchsorted(ends, self.session.start_ns, side="right"), len(ends) - 1)

    @functools.cached_property
    def step_numbers(self) -> Column:
        """Return the names of the steps: the numbers that `prof.step()` gave them, or as they are counted here."""
        numbers = np.unique(self.session.step)
        return numbers[: self.step_count] if len(numbers) >= self.step_count else np.arange(self.step_count)

    @functools.cached_property
    def _optimizer_steps(self) -> Column:
        """Steps of the optimizer that made most of them."""
        rows = self.scopes(STEP)
        labels, counts = np.unique(self.session.label[rows], return_counts=True)
        return rows[self.session.label[rows] == labels[counts.argmax()]] if len(labels) else rows

    @functools.cached_property
    def steps_are_counted_by_optimizer(self) -> bool:
        return self.step_count > len(np.unique(self.session.step))

    @functools.cached_property
    def step_count(self) -> int:
        return int(self.step.max(initial=0)) + 1

    def times(self, count: int) -> str:
        """`3,000 times`, and how many of them in a step."""
        once = "once" if count == 1 else f"{count:,} times"
        return f"{once} ({count / self.step_count:,.3g} a step)" if self.step_count > 1 else once

    @functools.cached_property
    def recorded_ns(self) -> int:
        """The wall time of the program while it was recorded."""
        return int((self.stretches[:, 1] - self.stretches[:, 0]).sum())

    @functools.cached_property
    def stretches(self) -> Column:
        """Pairs of times: from when to when the program was recorded; from the first event to the last if that is not known."""
        session, info = self.session, self.session.info
        if not len(session):
            return np.empty((0, 2), np.int64)
        if info.collected:
            return np.array(info.collected, np.int64)
        known = (
            (info.started_ns, info.stopped_ns)
            if info.stopped_ns > info.started_ns
            else (session.start_ns.min(), session.end_ns.max())
        )
        return np.array([known], np.int64)

    @functools.cached_property
    def runs_at_end(self) -> Column:
        """Whether each event ran when the recording ended."""
        return np.asarray(self.session.end_ns == self.session.end_ns.max(initial=0))

    @functools.cached_property
    def outside(self) -> Outside:
        """The time outside operators."""
        return Outside(self)

    @functools.cached_property
    def functions(self) -> Functions:
        """The Python functions, and the time outside operators in each."""
        return Functions(self)

    # --- what calls were given ----------------------------------------------------------------------------------------

    def of_inputs(self, fact: Callable[[tuple[Any, ...]], Any], rows: Column, *, none: Any, dtype: type[Any]) -> Column:
        """A fact about the arguments of each row's call, looked at once for each distinct call; `none` where they are not known."""
        session = self.session
        if session.inputs is None or not len(session.input_table):
            return np.full(len(rows), none, dtype)
        numbers = session.inputs[rows]
        used = np.unique(numbers)
        values = np.full(len(session.input_table) + 1, none, dtype)
        for number in used[used >= 0].tolist():
            values[number] = fact(session.input_table[number])
        return values[numbers]  # -1 is the last, which is none

    def number_inputs(self, fact: Callable[[tuple[Any, ...]], Hashable], rows: Column) -> Column:
        """The same, with a number for each distinct value of the fact."""
        numbers: dict[Hashable, int] = {}
        return self.of_inputs(lambda inputs: numbers.setdefault(fact(inputs), len(numbers)), rows, none=-1, dtype=np.int64)

    def shapes(self, rows: Column) -> Column:
        """A number for the shapes and dtypes of the tensors that each row's call was given; -1 where they are not known."""
        return self._of_table(self._shapes, rows)

    def elements(self, rows: Column) -> Column:
        """Elements of the largest tensor that each row's call was given; 0 where it is not known."""
        return self._of_table(self._elements, rows)

    def _of_table(self, values: Column, rows: Column) -> Column:
        inputs = self.session.inputs
        return np.full(len(rows), values[-1]) if inputs is None else values[np.where(rows < 0, -1, inputs[rows])]

    @functools.cached_property
    def _shapes(self) -> Column:
        numbers: dict[Hashable, int] = {}
        kinds = [tuple([(t.shape, t.dtype) for t in tensors(inputs)]) for inputs in self.session.input_table]
        return np.array([*(numbers.setdefault(kind, len(numbers)) for kind in kinds), -1], np.int64)

    @functools.cached_property
    def _elements(self) -> Column:
        return np.array([*map(largest, self.session.input_table), 0], np.int64)

    def work(self, rows: Column) -> Column:
        """`elements`, but 1 for a view, whose time does not depend on its size."""
        return np.where(self.is_named(rows, VIEWS), 1, self.elements(rows))

    # --- which tensors ------------------------------------------------------------------------------------------------

    @property
    def knows_tensors(self) -> bool:
        """Whether one tensor can be told from another: shapes, memory and stacks were all recorded."""
        return self.session.flow is not None and self.session.memory is not None

    def tensor_read(self, rows: Column) -> Column:
        """A number for the memory of the first tensor that each row's call reads but does not write, -1 where it is not known."""
        flow, memory = self.session.flow, self.session.memory
        found = np.full(len(rows), -1, np.int64)
        if flow is None or memory is None:
            return found
        reads = flow.operand_address > 0
        read_by, address = flow.operand_row[reads], flow.operand_address[reads]
        first = np.searchsorted(read_by, rows)
        known = (
            (first < len(read_by)) & (read_by[np.minimum(first, len(read_by) - 1)] == rows) if len(read_by) else np.zeros(0, bool)
        )
        if not known.any():
            return found
        # memory that is freed is given out again: an address means another tensor after each allocation
        made = memory.size_bytes > 0
        addresses = np.concatenate([address[first[known]], memory.address[made]])
        number = np.unique(addresses, return_inverse=True)[1]
        mine, made_there = number[: known.sum()], number[known.sum() :]
        size = len(made_there) + 1
        then = np.searchsorted(memory.time_ns[made], self.session.start_ns[rows[known]])
        made_before = np.searchsorted(np.sort(made_there * size + np.arange(size - 1)), mine * size + then)
        found[known] = combinations(mine, made_before)
        return found

    # --- where --------------------------------------------------------------------------------------------------------

    def places(self, rows: Column) -> Column:
        """A number for where in the program each row was called, an index into `place_names`; -1 where it is not known."""
        if self.session.stack is None:
            return np.full(len(rows), -1, np.int64)
        return np.append(self._place_numbers, -1)[self.session.stack[rows]]

    @functools.cached_property
    def place_names(self) -> list[str]:
        """Lines of the program, as `file:line:function`."""
        return list(dict.fromkeys(self._places_of_stacks))

    @functools.cached_property
    def _place_numbers(self) -> Column:
        numbers = {name: i for i, name in enumerate(self.place_names)}
        return np.array([numbers[name] for name in self._places_of_stacks], np.int64)

    @functools.cached_property
    def _places_of_stacks(self) -> list[str]:
        session = self.session
        # the program's own line, rather than that of a module or optimizer it uses
        own = [not places.below(f.file, session.info.source_roots).startswith("mindtorch_v2") for f in session.frames]
        texts = [f"{f.file}:{f.line}:{f.function}" for f in session.frames]
        return [texts[next((i for i in stack if own[i]), stack[0])] if stack else "" for stack in session.stack_table]

    def in_function(self, rows: Column, function: str) -> Column:
        """Whether each row was called, however indirectly, from a function of this name; False where it is not known."""
        if self.session.stack is None:
            return np.zeros(len(rows), bool)
        named = {i for i, frame in enumerate(self.session.frames) if frame.function == function}
        stacks = np.array([*(not named.isdisjoint(stack) for stack in self.session.stack_table), False], bool)
        return stacks[self.session.stack[rows]]

    @functools.cached_property
    def has_device(self) -> bool:
        """Whether a device took part."""
        return any(track.device_type != "CPU" for track in self.session.tracks)
