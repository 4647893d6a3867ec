"""One process of a report: its session, and what several sections compute from it."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...advice import Advice, advise
from ...device import DeviceActivity
from ...device.critical_path import CriticalPath, critical_path
from ...model import modules, tree
from ...model.grouping import amounts_of
from ...model.places import own_frame
from ...model.recorded_events import recording_of
from ...model.session import Session
from ...model.steps import Steps
from ...model.time_parts import TimeParts

__all__ = ["Process", "Texts", "depths"]

Column = np.ndarray[Any, np.dtype[Any]]


class Texts:
    """Distinct texts, numbered as they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def numbers(self, texts: Iterable[str]) -> Column:
        return np.array([self.number(text) for text in texts], np.int64)

    @property
    def values(self) -> list[str]:
        return list(self._numbers)


def depths(session: Session, parent: Column) -> Column:
    """How many events are around each, by these parents."""
    depth = np.zeros(len(session), np.int64)
    for rows in tree.levels(session)[1:]:
        inner = rows[parent[rows] >= 0]
        depth[inner] = depth[parent[inner]] + 1
    return depth


class Process:
    """A session with the values that its sections share, each computed once."""

    def __init__(self, session: Session, advice: Advice | None = None) -> None:
        self.session = session
        self._advice = advice  # if it is known
        self.recording = recording_of(session)
        self.parts = TimeParts(self.recording)

    @functools.cached_property
    def steps(self) -> Steps:
        return Steps.of(self.recording)

    @functools.cached_property
    def advice(self) -> Advice:
        return advise(self.session) if self._advice is None else self._advice

    @functools.cached_property
    def devices(self) -> DeviceActivity:
        return DeviceActivity.of(self.session)

    @functools.cached_property
    def critical_path(self) -> CriticalPath | None:
        """The chain of work that the length of the longest step depends on; None without work on a device."""
        return critical_path(self.session)

    @functools.cached_property
    def amounts(self) -> dict[str, Column]:
        """What each event adds to the sums of `key_averages()`."""
        return amounts_of(self.recording)

    @property
    def self_ns(self) -> Column:
        """The time of each event on the CPU without that of the events inside."""
        return self.amounts["self_cpu_time_total"]

    @functools.cached_property
    def phase(self) -> Column:
        """Forward, backward or neither, for each event: `modules.PHASES`."""
        return self.recording.attribution.phase if len(self.session) else np.empty(0, np.int8)

    @functools.cached_property
    def kinds(self) -> list[str]:
        """The kind of each label."""
        return [label.kind for label in self.session.labels]

    def of_kinds(self, *kinds: str) -> Column:
        """Whether each event is of one of these kinds."""
        return (
            np.array([kind in kinds for kind in self.kinds], bool)[self.session.label] if len(self.session) else np.zeros(0, bool)
        )

    @functools.cached_property
    def lines(self) -> tuple[Column, list[str]]:
        """For each event the number of the line of the program that led to it, -1 for none; and the lines."""
        session, texts = self.session, Texts()
        places = self.recording.places
        own = (own_frame(stack, session.frames, places) for stack in session.stack_table)
        of_stack = [-1 if frame < 0 else texts.number(places[frame]) for frame in own]
        line = np.array([*of_stack, -1], np.int64)[self.recording.stack] if len(session) else np.empty(0, np.int64)
        return line, texts.values

    @functools.cached_property
    def module_paths(self) -> list[str]:
        return [modules.path(parts) for parts in self.recording.attribution.modules]
