"""Findings as people read them."""

from __future__ import annotations

import itertools
import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..writing import units
from ..writing.text_table import Column, TextTable

if TYPE_CHECKING:
    from .findings import Advice, Evidence, Finding, Part

__all__ = ["advice", "finding", "part", "steps", "time"]

WIDTH = 118
SHAPES = 48  # of lists of tensors the first


def time(time_ns: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if time_ns >= size:
            return f"{time_ns / size:.3g} {unit}" if time_ns < 1000 * size else f"{time_ns / size:,.0f} {unit}"
    return f"{time_ns:.0f} ns"


def steps(numbers: Sequence[int]) -> str:
    """`0-3, 7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def advice(found: Advice, *, max_evidence: int) -> str:
    lines = [_heading(found)]
    for number, each in enumerate(found, 1):
        lines += ["", f"{number}. {finding(each, max_evidence=max_evidence, in_steps=found.steps > 1)}"]
    if found.unexplained:
        lines += ["", "Not explained:"]
    for left in found.unexplained:
        lines += [part(left, max_evidence=max_evidence, in_steps=found.steps > 1)]
    if found.not_checked:
        lines += ["", "Not checked:"]
        # rules that need the same stand on one line
        for needs, missed in itertools.groupby(sorted(found.not_checked, key=lambda m: m.needs), key=lambda m: m.needs):
            names = ", ".join(each.rule for each in missed)
            lines += _wrapped(f"needs {' and '.join(f'{flag}=True' for flag in needs)}: {names}", "  ")
    return "\n".join(lines)


def _heading(found: Advice) -> str:
    if not found.steps:
        return "Nothing was recorded."
    counted = " of the optimizer" if found.steps_are_counted_by_optimizer else ""
    about = f"{time(found.recorded_ns)} recorded" + (f" in {found.steps} steps{counted}" if found.steps > 1 else "")
    if not found:
        return f"No finding: {about}."
    findings = "1 finding" if len(found) == 1 else f"{len(found)} findings"
    return f"{findings}: {about}. Gains are estimates."


def finding(found: Finding, *, max_evidence: int = -1, in_steps: bool = True) -> str:
    lines = [f"{found.rule}: {_gain(found, in_steps=in_steps)}"]
    lines += _wrapped(found.seen, "   ") + _wrapped(found.instead, "   ") + _wrapped(f"Estimate: {found.estimate}", "   ")
    shown = found.evidence if max_evidence < 0 else found.evidence[:max_evidence]
    lines += _evidence(shown, in_steps=in_steps)
    left_out = len(found.evidence) - len(shown)
    if left_out:
        lines.append(f"     and {left_out} more")
    return "\n".join(lines)


COLUMNS = [
    Column("operator", lambda e: e.operator, None, "<"),
    Column("count", lambda e: f"{e.count:,}", None),
    Column("time", lambda e: time(e.time_ns), None),
    Column("share", lambda e: f"{e.share:.1%}", None),
    Column("steps", lambda e: steps(e.steps), None, "<"),
    Column("shapes", lambda e: "" if e.shapes is None else textwrap.shorten(str(e.shapes), SHAPES, placeholder=" ..."), None, "<"),
    Column("where", lambda e: "" if e.place is None else _place(e.place), None, "<"),
]


def _gain(found: Finding, *, in_steps: bool) -> str:
    kept = [f"about {units.memory(found.kept_bytes)} of memory kept"] if found.kept_bytes else []
    if found.gain_ns or not kept:
        about = "up to" if found.is_upper_bound else "about"
        gain = f"{time(found.gain_ns_per_step)} a step" if in_steps else time(found.gain_ns)
        kept.insert(0, f"{about} {gain}, {found.gain_share:.1%} of the wall time")
    return ", and ".join(kept)


def part(found: Part, *, max_evidence: int = -1, in_steps: bool = True) -> str:
    """A part of the time that is not explained."""
    lines = _wrapped(f"{found.share:.1%} of the wall time ({time(found.time_ns)}): {found.name}. {found.hint}".rstrip(), "  ")
    shown = found.evidence if max_evidence < 0 else found.evidence[:max_evidence]
    return "\n".join([*lines, *_evidence(shown, in_steps=in_steps)])


def _evidence(evidence: Sequence[Evidence], *, in_steps: bool) -> list[str]:
    if not evidence:
        return []
    kept = [c for c in COLUMNS if any(c.value(each) for each in evidence) and (in_steps or c.heading != "steps")]
    table = TextTable(kept, evidence)
    return [f"     {line}".rstrip() for line in [table.heading, *table.rows]]


def _place(place: str) -> str:
    file, line, function = place.rsplit(":", 2)
    return f"{os.path.basename(file)}:{line} ({function})"


def _wrapped(sentence: str, indent: str) -> list[str]:
    return textwrap.wrap(sentence, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False)
