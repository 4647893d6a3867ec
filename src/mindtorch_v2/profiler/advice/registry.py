"""The list of rules, and what a rule is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..model.session import Info
from .facts import Facts
from .findings import Evidence

__all__ = ["RULES", "Match", "Rule", "rule"]

Column = np.ndarray[Any, np.dtype[Any]]
FLAGS = tuple(f.name for f in dataclasses.fields(Info) if f.type == "bool")


@dataclass(frozen=True, kw_only=True, eq=False)
class Match:
    """Something a rule has seen. `rows` are the events that prove it; the events of `claims` are explained by it, and left out by
    rules of more general nature that come later. `pieces` are those of `Facts.outside` that it explains.
    """

    rows: Column
    gain_ns: float  # in the whole recording
    seen: str
    instead: str
    estimate: str  # how the gain was estimated
    claims: Column | None = None  # `rows` if None
    pieces: Column = field(default_factory=lambda: np.empty(0, np.int64))
    evidence: tuple[Evidence, ...] | None = None  # made of the rows if None
    is_upper_bound: bool = False  # the gain may be anything up to that
    kept_bytes: int = 0  # memory that is kept alive: what grows counts, however little time it takes


Check = Callable[[Facts], Iterable[Match]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A name, what it needs to have been recorded, and the function that looks. Looking may find nothing, or several things."""

    name: str
    check: Check
    needs: tuple[str, ...] = ()  # arguments of `profile`
    is_about_recording: bool = False  # rather than about the program: comes after what is

    def __post_init__(self) -> None:
        unknown = [flag for flag in self.needs if flag not in FLAGS]
        if unknown:
            raise ValueError(f"rule {self.name!r} needs {', '.join(unknown)}, which is no argument of profile")

    def missing(self, info: Info) -> tuple[str, ...]:
        """Return what the rule needs and was not recorded."""
        return tuple(flag for flag in self.needs if not getattr(info, flag))


RULES: dict[str, Rule] = {}  # in the order in which they look


def rule(name: str, *, needs: tuple[str, ...] = (), is_about_recording: bool = False) -> Callable[[Check], Check]:
    """Add a function to the rules."""

    def add(check: Check) -> Check:
        if name in RULES:
            raise ValueError(f"there is a rule {name!r} already")
        RULES[name] = Rule(name=name, check=check, needs=needs, is_about_recording=is_about_recording)
        return check

    return add
