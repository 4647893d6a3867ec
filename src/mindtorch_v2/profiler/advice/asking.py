"""`advise`: all rules, one recording."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..model import inputs
from ..model.session import Session
from . import source
from .facts import Facts
from .findings import Advice, Evidence, Finding, NotChecked
from .kinds import combinations
from .parts import unexplained
from .registry import RULES, Match, Rule

__all__ = ["advise"]

Column = np.ndarray[Any, np.dtype[Any]]


def advise(recording: Any, *, min_share: float = 0.01, rules: Iterable[str | Rule] | None = None) -> Advice:
    """Say what could be faster, with evidence and an estimate of the gain.

    `recording` is a finished `profile`, a `Session`, or the path of a saved one. What would gain less than `min_share` of the
    recorded time is left out. `rules` are the rules to ask, or their names, in this order; all of them by default.
    """
    if not 0 <= min_share <= 1:
        raise ValueError(f"min_share is a share between 0 and 1, got {min_share}")
    facts = Facts(_session_of(recording))
    chosen = [_rule(each) for each in (RULES.values() if rules is None else rules)]
    try:
        return _ask(chosen, facts, min_share)
    finally:
        source.forget()  # a large file is hundreds of thousands of objects


def _ask(chosen: list[Rule], facts: Facts, min_share: float) -> Advice:
    findings: list[tuple[Rule, Finding]] = []
    not_checked = []
    for rule in chosen:
        missing = rule.missing(facts.session.info)
        if missing:
            not_checked.append(NotChecked(rule=rule.name, needs=missing))
            continue
        for match in rule.check(facts):
            if _counts(match, min_share * facts.recorded_ns):
                findings.append((rule, _finding(rule, match, facts)))
                facts.claimed[match.rows if match.claims is None else match.claims] = True
                facts.outside.claimed[match.pieces] = True
    # memory that grows ends a program, however little time it takes
    findings.sort(key=lambda pair: (pair[0].is_about_recording, pair[1].kept_bytes == 0, -pair[1].gain_ns))
    return Advice(
        [finding for _, finding in findings],
        not_checked=not_checked,
        recorded_ns=facts.recorded_ns,
        steps=facts.step_count if len(facts.session) else 0,
        steps_are_counted_by_optimizer=facts.steps_are_counted_by_optimizer,
        unexplained=unexplained(facts),
    )


def _counts(match: Match, least_ns: float) -> bool:
    return match.kept_bytes > 0 or (len(match.rows) > 0 and match.gain_ns >= max(1, least_ns))


def _session_of(recording: Any) -> Session:
    if isinstance(recording, Session):
        return recording
    if isinstance(recording, str | os.PathLike):
        return Session.load(recording)
    session = getattr(recording, "session", None)  # both `profile` classes, of which one imports this package
    if isinstance(session, Session):
        return session
    raise TypeError(f"advise takes a finished profile, a Session or the path of a saved one, got {type(recording).__name__}")


def _rule(rule: str | Rule) -> Rule:
    if isinstance(rule, Rule):
        return rule
    if rule not in RULES:
        raise ValueError(f"there is no rule {rule!r}; there are {', '.join(RULES)}")
    return RULES[rule]


def _finding(rule: Rule, match: Match, facts: Facts) -> Finding:
    gain_ns = round(match.gain_ns)
    return Finding(
        rule=rule.name,
        seen=match.seen,
        instead=match.instead,
        gain_ns=gain_ns,
        gain_ns_per_step=gain_ns / facts.step_count,
        gain_share=gain_ns / max(facts.recorded_ns, 1),
        estimate=match.estimate,
        evidence=tuple(_evidence(match.rows, facts) if match.evidence is None else _longest_first(match.evidence)),
        rows=match.rows,
        is_upper_bound=match.is_upper_bound,
        kept_bytes=match.kept_bytes,
    )


def _longest_first(evidence: Iterable[Evidence]) -> list[Evidence]:
    return sorted(evidence, key=lambda each: -each.time_ns)


def _evidence(rows: Column, facts: Facts) -> list[Evidence]:
    """The rows by name, shapes and place; those that took longest first."""
    session = facts.session
    places = facts.places(rows)
    key = combinations(session.label[rows], facts.shapes(rows), places)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    counts = np.bincount(group)
    times = np.bincount(group, facts.duration_ns[rows])
    order = np.argsort(-times, kind="stable").tolist()
    by_group = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)])
    found = []
    for g in order:
        example = rows.item(first.item(g))
        place = places.item(first.item(g))
        found.append(
            Evidence(
                operator=facts.name(example),
                count=counts.item(g),
                time_ns=int(times[g]),
                share=times.item(g) / max(facts.recorded_ns, 1),
                steps=tuple(facts.step_numbers[np.unique(facts.step[rows[by_group[starts[g] : starts[g + 1]]]])].tolist()),
                place=facts.place_names[place] if place >= 0 and facts.place_names[place] else None,
                shapes=_shapes(example, session),
            )
        )
    return found


def _shapes(row: int, session: Session) -> list[Any] | None:
    if session.inputs is None or not session.info.record_shapes or session.inputs[row] < 0:
        return None
    return inputs.shapes(session.input_table[session.inputs.item(row)])
