"""Steps: how long each took and what for, and what was different in those that took long."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....model.time_parts import PARTS
from ..packing import Delta
from ..sources import Process, Texts

__all__ = ["steps"]

Column = np.ndarray[Any, np.dtype[Any]]

SAMPLE = 400  # steps that the usual time of an operator is taken from
LISTED = 40  # slow steps of which differences are told, the slowest
LABELS = 4  # operators that took longer, of a slow step
LEAST = 0.03  # of what a step took longer: what is less is not told
SPREAD = 3 * 1.4826  # a normal spread's three sigmas, in median deviations
MARGIN = 0.1  # and at least so much longer than the median


def steps(process: Process, base_ns: int) -> dict[str, Any]:
    """Columns with an entry for each step, and the slow ones with what was different; times are nanoseconds since `base_ns`."""
    found = process.steps
    if not len(found):
        return {"needs": "prof.step() after each step, or an optimizer"}
    times, recorder = process.parts.between(found.start_ns, found.end_ns)
    took = found.duration_ns
    slow = _slow(took)
    return {
        "by": found.by,
        "number": Delta(found.number),
        "start": Delta(found.start_ns - base_ns),
        "duration": took,
        "parts": {name: times[:, i] for i, name in enumerate(PARTS)} | {"recorder": recorder},
        "slow": [_difference(process, at, took, times) | differing for at, differing in zip(slow, _labels(process, slow))],
        "median": found.median_ns,
        "slowAbove": int(_limit(took)),
    }


def _limit(took: Column) -> float:
    """How long a step may take before it is a slow one."""
    median = float(np.median(took))
    return median + max(SPREAD * float(np.median(np.abs(took - median))), MARGIN * median)


def _slow(took: Column) -> list[int]:
    """The places of slow steps, the slowest first."""
    slow = np.flatnonzero(took > _limit(took)) if len(took) > 2 else np.empty(0, np.int64)
    return slow[np.argsort(-took[slow], kind="stable")][:LISTED].tolist()


def _difference(process: Process, at: int, took: Column, times: Column) -> dict[str, Any]:
    """How much longer a step took than the median, and which parts of it did."""
    more = times[at] - np.median(times, axis=0)
    excess = float(took[at] - np.median(took))
    order = [i for i in np.argsort(-more).tolist() if more[i] > LEAST * excess]
    return {"step": at, "excess": round(excess), "parts": [[PARTS[i], round(float(more[i]))] for i in order]}


def _labels(process: Process, slow: list[int]) -> list[dict[str, Any]]:
    """For each of these steps: operators and functions that took longer than usual, compilation, and runs of the garbage collector."""
    session, found = process.session, process.steps
    if not slow:
        return []
    sample = np.unique(np.concatenate([np.linspace(0, len(found) - 1, min(SAMPLE, len(found))).astype(np.int64), slow]))
    place = np.full(len(found) + 1, -1, np.int64)  # the last stands for no step
    place[sample] = np.arange(len(sample))
    mine = process.parts.mine[session.track]
    column = place[found.of_times(session.start_ns)]
    rows = np.flatnonzero(mine & (column >= 0))
    rows = rows[np.isin(rows, process.recording.rows)]
    texts = Texts()
    name = texts.numbers(process.recording.names)
    names = texts.values
    cell = column[rows] * len(names) + name[session.label[rows]]
    size = len(sample) * len(names)
    self_ns = np.bincount(cell, process.self_ns[rows], minlength=size).reshape(len(sample), -1)
    calls = np.bincount(cell, minlength=size).reshape(len(sample), -1)
    usual_ns, usual_calls = np.median(self_ns, axis=0), np.median(calls, axis=0)
    is_of = {kind: np.zeros(len(names), bool) for kind in ("compile", "gc", "scope")}
    for kind, mask in is_of.items():
        mask[[number for number, each in zip(name.tolist(), process.kinds, strict=True) if each == kind]] = True
    told_apart = is_of["compile"] | is_of["gc"] | is_of["scope"]
    told = []
    for at in place[slow].tolist():
        more = np.where(told_apart, 0, self_ns[at] - usual_ns)
        order = [i for i in np.argsort(-more)[:LABELS].tolist() if more[i] > LEAST * max(more.sum(), 1)]
        told.append(
            {
                "labels": [[names[i], round(float(more[i])), int(calls[at, i]), float(usual_calls[i])] for i in order],
                "compiled": [int(calls[at][is_of["compile"]].sum()), int(self_ns[at][is_of["compile"]].sum())],
                "collected": [int(calls[at][is_of["gc"]].sum()), int(self_ns[at][is_of["gc"]].sum())],
            }
        )
    return told
