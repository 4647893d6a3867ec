"""Python functions of a recording: whose they are, and what the lines of the program's own call."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..model import places
from ..model.session import Label
from .findings import Evidence
from .kinds import combinations
from .outside import LIBRARY, RUNTIME
from .source import Called, Function, between

if TYPE_CHECKING:
    from .facts import Facts

__all__ = ["Calls", "Functions"]

Column = np.ndarray[Any, np.dtype[Any]]

# Functions written in C that can take long, whatever they are given, besides those of modules.
LONG = frozenset(
    "sorted sum min max any all list tuple dict set frozenset map filter bytes bytearray eval exec compile repr input "
    ".sort .split .join .replace .encode .decode .dot .copy .update .extend .index .count".split()
)
SHORT = ("torch.", "time.", "math.", "os.getpid", "os.environ", "os.path.")  # of modules, those that cannot, or are operators


# A function written in C whose calls are events, because it waits: the owner stands for the file.
BUILT_IN = re.compile(r"(?P<file><built-in) (function|method) (?P<name>\w+)( of .*)?>")


class Calls(NamedTuple):
    """Pieces of time outside operators on whose lines something is called, and nothing else that may have taken the time."""

    pieces: Column
    names: list[str]  # of the calls, as they are written
    evidence: list[Evidence]


class Lines(NamedTuple):
    """Pieces of time between two lines of a function of the program."""

    pieces: Column
    function: Function
    before: int
    calls: list[Called]  # that are no events themselves
    loops: list[range]

    def explain(self, names: Collection[str]) -> list[Called]:
        """The calls of these names, if nothing else on the lines may have taken the time."""
        found = [call for call in self.calls if _is_of(call, names)]
        others = [call for call in self.calls if _takes_long(call) and not _is_of(call, names)]
        # a loop without any of the calls may be what took the time
        in_loops = all(any(call.line in loop for call in found) for loop in self.loops)
        return found if in_loops and not others else []

    @property
    def title(self) -> str:
        """The calls that may have taken the time."""
        calls = [call for call in self.calls if _takes_long(call)]
        loops = [f"the loop in line {loop.start}" for loop in self.loops if not any(call.line in loop for call in calls)]
        return ", ".join(dict.fromkeys([*loops, *(call.text for call in calls)])) or self.function.name


def _is_of(call: Called, names: Collection[str]) -> bool:
    return call.imported in names or ("." in call.text and f".{call.name}" in names)


def _takes_long(call: Called) -> bool:
    of_module = call.is_imported and not call.imported.startswith(SHORT)
    return of_module or _is_of(call, LONG) or _is_of(call, KNOWN)


KNOWN: set[str] = set()  # what rules ask for


class Functions:
    """The Python functions of a recording, and the time outside operators in each."""

    def __init__(self, facts: Facts) -> None:
        self.facts, self.session, self.outside = facts, facts.session, facts.outside
        self._known: dict[int, Function] = {}  # by label

    # --- functions that are events ------------------------------------------------------------------------------------

    def outermost(self, patterns: Sequence[tuple[str, Collection[str]]]) -> Column:
        """Rows of the functions of these files and names that nothing explains yet, those inside another left out, on the thread that is looked at."""

        def fits(name: str) -> bool:
            split = places.FUNCTION.fullmatch(name) or BUILT_IN.fullmatch(name)
            return split is not None and any(
                split["file"].replace(os.sep, "/").startswith(file) and (not names or split["name"] in names)
                for file, names in patterns
            )

        rows = self.facts.unclaimed(self.facts.where(lambda label: label.kind == "python_function" and fits(label.name)))
        return self.facts.outermost(rows[self.session.track[rows] == self.outside.track]) if len(rows) else rows

    def events_inside(self, rows: Column) -> Column:
        """The events inside these functions that nothing explains yet."""
        events = np.flatnonzero(~self.facts.claimed)
        return events[self.facts.around(events, rows) >= 0] if len(rows) else rows

    def rows_of(self, pieces: Column) -> Column:
        """The functions around these pieces."""
        rows = np.unique(self.outside.function[pieces])
        return np.asarray(rows[rows >= 0])

    def short(self, row: int) -> str:
        """The name of a function alone."""
        name = self.facts.name(row)
        split = places.FUNCTION.fullmatch(name) or BUILT_IN.fullmatch(name)
        return split["name"] if split else name

    def evidence_of(self, rows: Column) -> list[Evidence]:
        """Calls of functions that are events, by function and by the function of the program that called it."""
        if not len(rows):
            return []
        callers = self._callers(rows)
        net, found = self.facts.net_ns(rows), []
        _, first, group = np.unique(combinations(self.session.label[rows], callers), return_index=True, return_inverse=True)
        for number, i in enumerate(first.tolist()):
            mine = group == number
            steps, name = self.facts.step[rows[mine]], self.facts.name(rows.item(i))
            place = None if callers[i] < 0 else "{}:{}:{}".format(*self._function(callers.item(i)))
            found.append(self._evidence(name, int(mine.sum()), net[mine].sum(), steps, place))
        return found

    def _callers(self, rows: Column) -> Column:
        """The label of the innermost function of the program around each row, -1 for none."""
        own = np.append(self._is_own[self.session.label], True)
        parent = self.facts.any_parent
        found = parent[rows].astype(np.int64)
        while (over := ~own[found]).any():
            found[over] = parent[found[over]]
        return np.where(found >= 0, self.session.label[found], -1)

    @functools.cached_property
    def _is_own(self) -> Column:
        """Whether each label is that of a function of the program."""
        return np.array([self.is_program(number) for number in range(len(self.session.labels))], bool)

    def _evidence(self, name: str, count: int, time_ns: int, steps: Column, place: str | None) -> Evidence:
        return Evidence(
            operator=name,
            count=count,
            time_ns=int(time_ns),
            share=int(time_ns) / max(self.facts.recorded_ns, 1),
            steps=tuple(self.facts.step_numbers[np.unique(steps)].tolist()),
            place=place,
        )

    # --- lines of the program -----------------------------------------------------------------------------------------

    def pieces_that_call(self, names: Collection[str]) -> Calls:
        """The pieces that nothing explains yet, on whose lines these are called and nothing else may have taken the time."""
        found, written, evidence = [], [], []
        for lines in self._lines:
            pieces = lines.pieces[~self.outside.claimed[lines.pieces]]
            calls = lines.explain(names) if len(pieces) else []
            if calls:
                found.append(pieces)
                written += [call.text for call in calls]
                evidence.append(self._evidence_of_lines(lines, pieces, calls[0].text, calls[0].line))
        return Calls(np.concatenate([np.empty(0, np.int64), *found]), list(dict.fromkeys(written)), evidence)

    def evidence_of_pieces(self, pieces: Column) -> list[Evidence]:
        """Time outside operators: in functions of the program by the lines, in others by function."""
        outside, found = self.outside, []
        left = np.zeros(len(outside), bool)
        left[pieces[outside.function[pieces] >= 0]] = True
        for lines in self._lines:
            mine = lines.pieces[left[lines.pieces]]
            if len(mine):
                first = next((call.line for call in lines.calls if _takes_long(call)), lines.before or lines.function.first_line)
                found.append(self._evidence_of_lines(lines, mine, lines.title, first))
                left[mine] = False
        others = np.flatnonzero(left)
        label = self.session.label[outside.function[others]]
        for number in np.unique(label).tolist():
            mine = others[label == number]
            calls = len(np.unique(outside.function[mine]))
            name = self.session.labels[number].name
            found.append(self._evidence(name, calls, outside.time_ns[mine].sum(), outside.step[mine], None))
        return found

    def _evidence_of_lines(self, lines: Lines, pieces: Column, title: str, line: int) -> Evidence:
        place = f"{lines.function.file}:{line}:{lines.function.name}"
        return self._evidence(
            title, self.outside.occasions(pieces), self.outside.time_ns[pieces].sum(), self.outside.step[pieces], place
        )

    @functools.cached_property
    def _lines(self) -> list[Lines]:
        """The pieces in functions of the program, by the function and the lines before and after."""
        outside = self.outside
        pieces = np.flatnonzero((outside.function >= 0) & ~outside.of_engine)
        label = self.session.label[outside.function[pieces]]
        pieces, label = pieces[self._is_own[label]], label[self._is_own[label]]
        if not len(pieces):
            return []
        is_open = self.facts.runs_at_end[outside.function[pieces]]
        before, after = outside.before[pieces], outside.after[pieces]
        _, first, group = np.unique(combinations(label, is_open, before, after), return_index=True, return_inverse=True)
        in_order = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
        found = []
        for mine, i in zip(in_order, first.tolist(), strict=True):
            function = self._function(label.item(i))
            ends = (before.item(i), after.item(i))
            calls, loops = between(function, *ends, is_open=bool(is_open[i]))
            # had a line with the call of an event run, the piece would end there
            passed_over = {call.line for call in calls if self._is_event(call)} - set(ends) if all(ends) else set()
            calls = [call for call in calls if not self._is_event(call) and call.line not in passed_over]
            found.append(Lines(pieces[mine], function, before.item(i), calls, loops))
        return found

    def _is_event(self, call: Called) -> bool:
        """Whether a call is that of an operator or function whose calls are events: their time is their own."""
        functions, operators = self._names_of_events
        return call.name in functions or ("." in call.text and call.name in operators)  # `sum(…)` is no operator

    @functools.cached_property
    def _names_of_events(self) -> tuple[set[str], set[str]]:
        """Names of the functions and of the operators that were recorded."""
        names = [label.name for label in self.session.labels if label.kind == "python_function"]
        split = [places.FUNCTION.fullmatch(name) for name in names]
        operators = {label.name.rpartition("::")[2] for label in self.session.labels if label.kind == "op"}
        return {each["name"] for each in split if each is not None}, operators

    def is_program(self, label: int) -> bool:
        """Whether a function is the program's own, rather than of a library or of the runtime."""
        file = self._function(label).file
        return (
            bool(file)
            and not LIBRARY.search(file)
            and not file.startswith("<frozen ")
            and not self.is_runtime(self.session.labels[label].name)
        )

    def is_runtime(self, name: str) -> bool:
        """Whether a function is one of the runtime's modules and optimizers, or the call of a module."""
        return name.startswith((f"{RUNTIME}/", f"{RUNTIME}{os.sep}", "nn.Module: "))

    @functools.cached_property
    def _files(self) -> dict[str, str]:
        """Full paths, by the names that functions have for their files."""
        roots = self.session.info.source_roots
        return {places.below(frame.file, roots): frame.file for frame in self.session.frames}

    def _function(self, label: int) -> Function:
        """The function of a label; an empty file if it is none."""
        if label not in self._known:
            self._known[label] = self._look_up(self.session.labels[label])
        return self._known[label]

    def _look_up(self, label: Label) -> Function:
        split = places.FUNCTION.fullmatch(label.name)
        if split is None or label.kind != "python_function":
            return Function("", 0, "")
        file = self._files.get(split["file"])
        if file is None:
            paths = [os.path.join(root, split["file"]) for root in self.session.info.source_roots]
            file = next((path for path in paths if os.path.isfile(path)), split["file"])
        return Function(file, int(split["line"]), split["name"])
