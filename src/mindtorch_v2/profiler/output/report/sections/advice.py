"""Advice, with its evidence and the events that it is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ....advice import Evidence, Finding, text
from ..sources import Process

__all__ = ["advice"]

SHOWN = 20  # lines of evidence for each finding


def advice(process: Process) -> dict[str, Any]:
    """The findings, the parts of the time that none explains, and the rules that could not be asked."""
    found = process.advice
    place = np.full(len(process.session), -1, np.int64)  # of each row among the events shown
    place[process.recording.rows] = np.arange(len(process.recording.rows))
    return {
        "recorded": found.recorded_ns,
        "steps": found.steps,
        "findings": [_finding(process, finding, place) for finding in found],
        "unexplained": [
            {"name": part.name, "ns": part.time_ns, "share": part.share, "hint": part.hint, "evidence": _evidence(part.evidence)}
            for part in found.unexplained
        ],
        "notChecked": [{"rule": missed.rule, "needs": [f"{flag}=True" for flag in missed.needs]} for missed in found.not_checked],
    }


def _finding(process: Process, finding: Finding, place: np.ndarray[Any, Any]) -> dict[str, Any]:
    rows = finding.rows[place[finding.rows] >= 0] if len(finding.rows) else finding.rows
    longest = int(place[rows[np.argmax(process.recording.duration_ns[rows])]]) if len(rows) else -1
    return {
        "rule": finding.rule,
        "seen": finding.seen,
        "instead": finding.instead,
        "estimate": finding.estimate,
        "gain": finding.gain_ns,
        "gainPerStep": finding.gain_ns_per_step,
        "gainShare": finding.gain_share,
        "kept": finding.kept_bytes,
        "event": longest,  # the longest of those that it is about
        "evidence": _evidence(finding.evidence),
        "moreEvidence": max(0, len(finding.evidence) - SHOWN),
    }


def _evidence(evidence: Iterable[Evidence]) -> list[dict[str, Any]]:
    return [
        {
            "operator": each.operator,
            "count": each.count,
            "ns": each.time_ns,
            "share": each.share,
            "steps": text.steps(each.steps),
            "place": each.place,
            "shapes": None if each.shapes is None else str(each.shapes),
        }
        for each in list(evidence)[:SHOWN]
    ]
