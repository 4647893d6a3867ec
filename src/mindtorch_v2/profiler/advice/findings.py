"""Findings: plain data, with the rows they were read from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..writing.html_table import html_text
from . import text

__all__ = ["Advice", "Evidence", "Finding", "NotChecked", "Part"]

Column = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Events of one name, of the same input shapes and called from the same line, as far as these were recorded.

    Outside operators, the name is that of a Python function, or of a call on the lines that took the time.
    """

    operator: str
    count: int
    time_ns: int
    share: float  # of the recorded time
    steps: tuple[int, ...]  # that have such events
    place: str | None = None  # "file:line:function"
    shapes: list[Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain values, for JSON."""
        known = {
            "operator": self.operator,
            "count": self.count,
            "time_ns": self.time_ns,
            "share": self.share,
            "steps": list(self.steps),
            "place": self.place,
            "shapes": self.shapes,
        }
        return {key: value for key, value in known.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that could be faster. The gain is an estimate; `estimate` says how it was made."""

    rule: str
    seen: str
    instead: str  # what to do
    gain_ns: int  # in the whole recording
    gain_ns_per_step: float
    gain_share: float  # of the recorded time
    estimate: str
    evidence: tuple[Evidence, ...]  # what took longest first
    rows: Column = field(repr=False, compare=False)  # of the session, all that the evidence is about
    is_upper_bound: bool = False  # the gain may be anything up to that, because the recording itself took much of the time
    kept_bytes: int = 0  # memory that would be freed

    @property
    def message(self) -> str:
        """Return the text: what was seen, and what to do."""
        return f"{self.seen} {self.instead}"

    def as_dict(self) -> dict[str, Any]:
        """All of it but the rows, for JSON."""
        return {
            "rule": self.rule,
            "seen": self.seen,
            "instead": self.instead,
            "gain_ns": self.gain_ns,
            "gain_ns_per_step": self.gain_ns_per_step,
            "gain_share": self.gain_share,
            "is_upper_bound": self.is_upper_bound,
            "kept_bytes": self.kept_bytes,
            "estimate": self.estimate,
            "evidence": [evidence.as_dict() for evidence in self.evidence],
        }

    def __str__(self) -> str:
        return text.finding(self)


@dataclass(frozen=True, kw_only=True)
class Part:
    """Part of the recorded time that no finding explains."""

    name: str
    time_ns: int
    share: float  # of the recorded time
    hint: str = ""  # how to learn more
    evidence: tuple[Evidence, ...] = ()  # what took longest first

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "name": self.name,
            "time_ns": self.time_ns,
            "share": self.share,
            "hint": self.hint,
            "evidence": [evidence.as_dict() for evidence in self.evidence],
        }

    def __str__(self) -> str:
        return text.part(self)


@dataclass(frozen=True, kw_only=True)
class NotChecked:
    """A rule that could not be asked, and the arguments of `profile` that it needs."""

    rule: str
    needs: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.rule}: needs {', '.join(f'{flag}=True' for flag in self.needs)}"


class Advice(list[Finding]):
    """The findings about a recording: memory that grows, then largest gain first; last what is about the recording itself.

    `unexplained` are the parts of the time that no finding is about: always the largest, and others that are large.
    """

    def __init__(
        self,
        findings: Iterable[Finding],
        *,
        not_checked: Iterable[NotChecked],
        recorded_ns: int,
        steps: int,
        steps_are_counted_by_optimizer: bool,
        unexplained: Iterable[Part] = (),
    ) -> None:
        super().__init__(findings)
        self.not_checked = list(not_checked)
        self.recorded_ns = recorded_ns
        self.steps = steps
        self.steps_are_counted_by_optimizer = steps_are_counted_by_optimizer
        self.unexplained = list(unexplained)

    def table(self, *, max_evidence: int = 3, width: int | None = None) -> str:
        """The findings as text, each with so many lines of evidence (-1 for all); with a width, columns of least use are left out to fit."""
        return text.advice(self, max_evidence=max_evidence, width=width)

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "recorded_ns": self.recorded_ns,
            "steps": self.steps,
            "findings": [finding.as_dict() for finding in self],
            "unexplained": [part.as_dict() for part in self.unexplained],
            "not_checked": [{"rule": missed.rule, "needs": list(missed.needs)} for missed in self.not_checked],
        }

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return html_text(self.table())
