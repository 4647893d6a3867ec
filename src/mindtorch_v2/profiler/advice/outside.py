"""The time outside operators, in pieces: what passed between two events of the thread that ran most operators."""

from __future__ import annotations

import itertools
import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ..model import links, places, tree
from .kinds import combinations, medians

if TYPE_CHECKING:
    from .facts import Facts

__all__ = ["FUNCTION_NS", "Outside"]

Column = np.ndarray[Any, np.dtype[Any]]

FUNCTION_NS = 1300  # for recording the call of a Python function, where the recording does not say
CALLEE = 0.3  # of that, what is in the function's own time, half at its beginning and half at its end; the rest is in the caller's
MANY, SHORTEST = 40, 5  # pieces of one kind of which the shortest are looked at, and which are the shortest, in %
# Python around the call of an operator, where the tracer makes it longer: what it takes in recordings without stacks, in times of what the tracer
# adds to a call in C, so that it is right for faster machines too. In a loop, between the two operators of `x[i] = y`,
# in an optimizer's step, for a gradient that zero_grad fills.
IN_LOOP, IN_SETITEM, IN_STEP, IN_ZERO_GRAD = 0.35, 5, 2, 12
READ, WRITTEN = ("aten::select", "aten::slice"), ("aten::fill_", "aten::copy_")
NEW_INPUTS = 4  # times as long as recording an operator, describing inputs that were not met before: 1.7 us
CALLS_IN_C = 8  # that may be in such a piece
CALLING = 4  # times as long as an operator may pass before it, and still be its call and the turn of a loop
KINDS = ("op", "scope", "python_function", "kernel", "compile")
LIBRARY = re.compile(r"[/\\](lib[/\\]python3[^/\\]*|site-packages|dist-packages)[/\\]", re.IGNORECASE)
RUNTIME = "mindtorch_v2"
PACKAGE = os.path.abspath(os.path.join(__file__, *[os.pardir] * 3)) + os.sep


class Outside:
    """Pieces of time outside operators, in order. `claimed` marks those that a finding accounts for.

    `time_ns` is what a piece took without the recorder's work, compiling operators, and operators of other threads. `function` is the row of the
    innermost Python function around it, -1 if functions were not recorded. `before` and `after` are the lines of that function
    between which it lies, 0 where they are not known.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts, self.session = facts, facts.session
        self._is_function = facts.of_kind("python_function")
        self._in_operator = facts.in_operator
        start, end, inner, first, last = self._pieces()
        self.row, self.first, self.last = inner, first, last  # the innermost event around each, and those at its ends
        self.start_ns, self.end_ns = start, end
        self.function = self._nearest_function(inner)
        raw = end - start - self._busy_ns(start, end)
        self.time_ns = np.maximum(raw - self._recorder_ns(raw), 0)
        self.of_engine = self._between_nodes(first, last)
        self.before, self.after = self._lines(first, last)
        self.step = self._steps()
        self.claimed = np.zeros(len(start), bool)

    def __len__(self) -> int:
        return len(self.start_ns)

    def calling(self, rows: Column) -> tuple[Column, float]:
        """The pieces from one of these events to another that are too short for anything but calling it, and what they take.

        What they take is the median of those between events of the same names; where the tracer slows Python down, what is usual.
        """
        mark = np.zeros(len(self.session) + 1, bool)
        mark[rows] = True
        pieces = np.flatnonzero(mark[self.first] & mark[self.last] & ~self.claimed)
        usual_ns = self.usual_ns(pieces)
        slower_ns = CALLS_IN_C * self.facts.call_in_c_ns
        longest_ns = CALLING * np.maximum(*(self.facts.duration_ns[ends[pieces]] for ends in (self.first, self.last)))
        short = usual_ns <= longest_ns + slower_ns
        pieces, usual_ns = pieces[short], usual_ns[short]
        if slower_ns:
            writes = self.facts.is_named(self.first[pieces], READ) & self.facts.is_named(self.last[pieces], WRITTEN)
            usual_ns = np.minimum(usual_ns, np.where(writes, IN_SETITEM, IN_LOOP) * self.facts.call_in_c_ns)
        return pieces, float(usual_ns.sum())

    def usual_ns(self, pieces: Column) -> Column:
        """For each of these pieces the median time of those between events of the same names."""
        label = np.append(self.session.label, -1)
        return medians(combinations(label[self.first[pieces]], label[self.last[pieces]]), self.time_ns[pieces])

    def hidden_ns(self, pieces: Column) -> int:
        """The time that the tracer may have taken in these pieces for calls that are no events; 0 where there are none."""
        return CALLS_IN_C * self.facts.call_in_c_ns * len(pieces)

    def inside(self, rows: Column) -> Column:
        """The pieces inside these events that nothing explains yet. None of the events may be inside another."""
        rows = rows[self.session.track[rows] == self.track] if len(rows) else rows
        if not len(rows):
            return np.empty(0, np.int64)
        at = np.searchsorted(self.session.start_ns[rows], self.start_ns, side="right") - 1
        fits = (at >= 0) & (self.end_ns <= self.session.end_ns[rows[np.maximum(at, 0)]])
        return np.flatnonzero(fits & ~self.claimed)

    def occasions(self, pieces: Column) -> int:
        """How many pieces these are if what lies between two operators is one, whatever functions are called there."""
        operators = np.flatnonzero(self.facts.outermost_operators & (self.session.track == self.track))
        return len(np.unique(np.searchsorted(self.session.start_ns[operators], self.start_ns[pieces], side="right")))

    # --- the pieces ---------------------------------------------------------------------------------------------------

    @property
    def track(self) -> int:
        """The track that ran operators for longest; that of the first event without any; -1 where nothing was recorded."""
        facts, session = self.facts, self.session
        rows = np.flatnonzero(facts.outermost_operators)
        if not len(rows):
            return session.track.item(0) if len(session) else -1
        return int(np.bincount(session.track[rows], facts.duration_ns[rows]).argmax())

    def _pieces(self) -> tuple[Column, Column, Column, Column, Column]:
        """Start, end and innermost event of each piece, and the events at its two ends."""
        session, facts = self.session, self.facts
        empty = np.empty(0, np.int64)
        if not len(session):
            return empty, empty, empty, empty, empty
        shown = facts.of_kind(*KINDS) & (session.track == self.track) & (facts.duration_ns > 0)
        rows = np.flatnonzero(shown)
        parent = tree.parents(session, skip=("memory", "runtime", "gc"))
        # at one time: what ends, from the inside out, and then what begins, from the outside in
        time = np.concatenate([session.end_ns[rows][::-1], session.start_ns[rows]])
        row = np.concatenate([rows[::-1], rows])
        inner = np.concatenate([parent[rows][::-1], rows])
        order = np.argsort(time, kind="stable")
        time, row, inner = time[order], row[order], inner[order]
        began, ended = facts.stretches[0, 0], facts.stretches[-1, 1]
        time = np.concatenate(
            [[min(began, time[0])] if len(time) else [began], time, [max(ended, time[-1] if len(time) else ended)]]
        )
        row, inner = np.concatenate([[-1], row, [-1]]), np.concatenate([[-1], inner, [-1]])
        start, end, inner = time[:-1], time[1:], inner[:-1]
        outside = (end > start) & ~((inner >= 0) & self._in_operator[inner])
        return start[outside], end[outside], inner[outside], row[:-1][outside], row[1:][outside]

    def _nearest_function(self, rows: Column) -> Column:
        """The innermost Python function at or around each row."""
        parent, found = self.facts.any_parent, rows.astype(np.int64)
        while (over := (found >= 0) & ~self._is_function[found]).any():
            found[over] = parent[found[over]]
        return found

    def _busy_ns(self, start: Column, end: Column) -> Column:
        """How much of each piece operators of other threads took, or nobody, because nothing was recorded."""
        session, facts = self.session, self.facts
        if not len(session):
            return np.empty(0, np.int64)
        others = np.flatnonzero(facts.outermost_operators)
        others = others[session.track[others] != self.track] if len(others) else others
        stretches = facts.stretches
        first, last = min(session.start_ns[0], stretches[0, 0]), max(session.end_ns.max(), stretches[-1, 1])
        starts = np.concatenate([session.start_ns[others], [first], stretches[:, 1]])
        ends = np.concatenate([session.end_ns[others], stretches[:, 0], [last]])
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], np.maximum.accumulate(ends[order])
        starts = np.maximum(starts, np.concatenate([[starts[0]], ends[:-1]]))  # disjoint
        ends = np.maximum(starts, ends)
        before = np.concatenate([[0], np.cumsum(ends - starts)])

        def until(time: Column) -> Column:
            at = np.searchsorted(starts, time, side="right")
            last = np.maximum(at - 1, 0)
            return np.where(at > 0, before[last] + np.minimum(time, ends[last]) - starts[last], 0)

        return np.asarray(until(end) - until(start))

    def _recorder_ns(self, raw: Column) -> Column:
        """The recorder's time in each piece: of an operator when it has ended, of a function at its beginning and end."""
        session, of_functions = self.session, np.append(self._is_function, False)
        has_ended = (self.first >= 0) & (np.append(session.end_ns, -1)[self.first] == self.start_ns)
        begins = (self.last >= 0) & (np.append(session.start_ns, -1)[self.last] == self.end_ns)
        first, last = of_functions[self.first], of_functions[self.last]
        inside = round(CALLEE * self.facts.function_ns / 2)
        before = self.facts.function_ns // 2 - inside
        at_first = np.where(has_ended, before, inside) * first
        at_last = np.where(begins, before, inside) * last
        new_inputs = begins & ~last & np.append(self._has_new_inputs, False)[self.last]
        cost = at_first + at_last + self.facts.event_ns * ((has_ended & ~first) + NEW_INPUTS * new_inputs)
        # between two functions, what the shortest of many such pieces took: they are hardly anything else
        for ended, begun in itertools.product((False, True), repeat=2):
            alike = first & last & (has_ended == ended) & (begins == begun)
            if alike.sum() >= MANY:
                cost[alike] = min(int(np.percentile(raw[alike], SHORTEST)), 2 * self.facts.function_ns)
        return np.asarray(cost)

    @property
    def _has_new_inputs(self) -> Column:
        """Whether each event is the first of which the inputs were these, which have to be described then."""
        found = np.zeros(len(self.session), bool)
        if self.session.inputs is not None:
            numbers, first = np.unique(self.session.inputs, return_index=True)
            found[first[numbers >= 0]] = True
        return found

    def _between_nodes(self, first: Column, last: Column) -> Column:
        """Whether each piece is the engine's, between two nodes of one backward pass."""
        node = np.append(self.facts.of_labels(lambda label: label.name.startswith(links.EVALUATE)), False)
        return np.asarray(node[first] & node[last])

    def _steps(self) -> Column:
        """The step of each piece: that of the last event that began before it."""
        at = np.searchsorted(self.session.start_ns, self.start_ns, side="right") - 1
        return self.facts.step[np.maximum(at, 0)] if len(self.session) else at

    # --- lines --------------------------------------------------------------------------------------------------------

    def _lines(self, first: Column, last: Column) -> tuple[Column, Column]:
        """The lines of its function that each piece lies between, as events before and after it tell."""
        if self.session.stack is None or not len(first):
            return np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
        first, last = (np.where(rows == self.function, -1, rows) for rows in (first, last))
        order = np.argsort(self.function, kind="stable")
        group = self.function[order]
        before, after = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
        before[order] = _filled(self._line_in(first, self.function)[order], group)
        after[order] = _filled(self._line_in(last, self.function)[order][::-1], group[::-1])[::-1]
        return before, after

    def _line_in(self, rows: Column, functions: Column) -> Column:
        """The line of each function from which its row was called, 0 if it is not known: that of the row's stack, or of one inside."""
        session = self.session
        assert session.stack is not None
        stacked = np.flatnonzero(session.stack >= 0)
        if not len(stacked):
            return np.zeros(len(rows), np.int64)
        on_track = stacked[session.track[stacked] == self.track]
        if not len(on_track):
            return np.zeros(len(rows), np.int64)
        at = np.minimum(np.searchsorted(on_track, rows), len(on_track) - 1)
        inside = on_track[at]
        known = (rows >= 0) & (functions >= 0) & (inside >= rows) & (session.start_ns[inside] <= session.end_ns[rows])
        stack, label = session.stack[inside], session.label[functions]
        key = stack.astype(np.int64) * len(session.labels) + label
        keys, which = np.unique(key, return_inverse=True)
        lines = [self._line_of(*divmod(k, len(session.labels))) for k in keys.tolist()]
        return np.where(known, np.array(lines, np.int64)[which], 0)

    def _line_of(self, stack: int, label: int) -> int:
        """The line at which a stack passes through a function."""
        session = self.session
        split = places.FUNCTION.fullmatch(session.labels[label].name)
        if split is None:
            return 0
        for number in session.stack_table[stack]:
            frame = session.frames[number]
            if frame.function == split["name"] and places.below(frame.file, session.info.source_roots) == split["file"]:
                return frame.line
        return 0


def _filled(lines: Column, group: Column) -> Column:
    """The last known line at or before each place of the same group; 0 for none. Groups are in one piece."""
    at = np.maximum.accumulate(np.where(lines > 0, np.arange(len(lines)), -1))
    fits = (at >= 0) & (group[at] == group)
    return np.where(fits, lines[at], 0)
