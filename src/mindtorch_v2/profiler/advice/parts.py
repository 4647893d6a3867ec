"""The parts of the recorded time that no finding explains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..model import dropping, links
from ..model.waiting import waits
from .facts import STEP, Facts
from .findings import Evidence, Part

__all__ = ["unexplained"]

Column = np.ndarray[Any, np.dtype[Any]]

OWN = "the program's own Python, outside operators"
OWN_AND_WAITING = "the program's own Python and waiting, outside operators"  # where they cannot be told apart
NOT_RECORDED = "{}, and operators that are not recorded"
RUNTIME = "Python of modules, optimizers and the autograd engine, outside operators"
WAITS = "functions that wait: for a lock, a queue, a file, another process"
MUCH, PARTS = 0.1, 3  # besides the largest, parts of at least this share are told, and so many in all


def unexplained(facts: Facts) -> list[Part]:
    """The program's own Python, that of the runtime, waiting, and operators: the largest of them, and what else is large."""
    if not facts.recorded_ns:
        return []
    parts = sorted([*_outside(facts), *_operators(facts)], key=lambda part: -part.time_ns)
    return parts[:1] + [part for part in parts[1:PARTS] if part.share >= MUCH]


def _part(facts: Facts, name: str, time_ns: int, hint: str, evidence: list[Evidence]) -> Part:
    in_order = tuple(sorted(evidence, key=lambda each: -each.time_ns))
    return Part(name=name, time_ns=time_ns, share=time_ns / facts.recorded_ns, hint=hint, evidence=in_order)


def _outside(facts: Facts) -> list[Part]:
    outside = facts.outside
    waiting = _of_functions(facts, waits)
    of_runtime = _of_runtime(facts) & ~waiting
    known = bool((outside.function >= 0).any())
    found = []
    for name, mine, hint in (
        (WAITS, waiting, "Compute meanwhile, or let another thread wait."),
        (_own(facts), ~of_runtime & ~waiting, _hint(facts)),
        (RUNTIME, of_runtime, "Larger batches take fewer calls."),
    ):
        pieces = np.flatnonzero(mine & ~outside.claimed)
        time_ns = int(outside.time_ns[pieces].sum())
        if time_ns:
            found.append(_part(facts, name, time_ns, hint, facts.functions.evidence_of_pieces(pieces) if known else []))
    return found


def _own(facts: Facts) -> str:
    """What the program's own Python is called: with it counts what the recording does not tell apart."""
    info = facts.session.info
    name = OWN if info.with_stack else OWN_AND_WAITING
    return NOT_RECORDED.format(name) if dropping.lacks_operators(info) else name


def _hint(facts: Facts) -> str:
    if facts.call_in_c_ns:
        return "Stacks make Python itself slower here: record without them to see how much it is."
    return "" if facts.session.info.with_stack else "Record with --with-stack, or with_stack=True, to see where."


def _of_runtime(facts: Facts) -> Column:
    """Whether each piece is of the runtime: in a function of it, between two nodes of a backward pass, or in an optimizer's step."""
    outside = facts.outside
    in_function = _of_functions(facts, facts.functions.is_runtime)
    of_step = np.append(facts.of_labels(lambda label: label.kind == "scope" and label.name.startswith(STEP)), False)
    return in_function | outside.of_engine | of_step[outside.row]


def _of_functions(facts: Facts, fact: Callable[[str], bool]) -> Column:
    """Whether each piece is in a function whose name is such."""
    of_label = np.array([fact(label.name) for label in facts.session.labels], bool)
    function = facts.outside.function
    return np.asarray((function >= 0) & of_label[facts.session.label[function]]) if len(of_label) else function >= 0


def _operators(facts: Facts) -> list[Part]:
    rows = facts.unclaimed(np.flatnonzero(facts.outermost_operators))
    if not len(rows):
        return []
    label = facts.session.label[rows]
    time_ns, counts = np.bincount(label, facts.net_ns(rows)), np.bincount(label)
    return [
        _part(facts, f"{_shown(facts.session.labels[i].name)}, called {facts.times(counts.item(i))}", int(time_ns[i]), "", [])
        for i in np.flatnonzero(time_ns).tolist()
    ]


def _shown(name: str) -> str:
    return f"the backward node {name.removeprefix(links.EVALUATE)}" if name.startswith(links.EVALUATE) else name
