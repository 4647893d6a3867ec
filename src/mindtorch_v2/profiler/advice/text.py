"""Findings as people read them."""

from __future__ import annotations

import itertools
import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..writing import units
from ..writing.text_table import Column, TextTable, fitting, middle_cut, printable

if TYPE_CHECKING:
    from .findings import Advice, Evidence, Finding, Part

__all__ = ["advice", "finding", "part", "steps", "time"]

WIDTH = 118
LONGEST_NAME = 80
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


def advice(found: Advice, *, max_evidence: int, width: int | None = None) -> str:
    lines = [_heading(found)]
    for number, each in enumerate(found, 1):
        lines += ["", f"{number}. {finding(each, max_evidence=max_evidence, in_steps=found.steps > 1, width=width)}"]
    if found.unexplained:
        lines += ["", "Not explained:"]
    for left in found.unexplained:
        lines += [part(left, max_evidence=max_evidence, in_steps=found.steps > 1, width=width)]
    if found.not_checked:
        lines += ["", "Not checked:"]
        # rules that need the same stand on one line
        for needs, missed in itertools.groupby(sorted(found.not_checked, key=lambda m: m.needs), key=lambda m: m.needs):
            names = ", ".join(each.rule for each in missed)
            lines += _wrapped(f"needs {' and '.join(f'{flag}=True' for flag in needs)}: {names}", "  ", width)
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


def finding(found: Finding, *, max_evidence: int = -1, in_steps: bool = True, width: int | None = None) -> str:
    lines = [f"{found.rule}: {_gain(found, in_steps=in_steps)}"]
    for sentence in (found.seen, found.instead, f"Estimate: {found.estimate}"):
        lines += _wrapped(sentence, "   ", width)
    shown = found.evidence if max_evidence < 0 else found.evidence[:max_evidence]
    lines += _evidence(shown, in_steps=in_steps, width=width)
    left_out = len(found.evidence) - len(shown)
    if left_out:
        lines.append(f"     and {left_out} more")
    return "\n".join(lines)


COLUMNS = [
    Column("operator", lambda e: middle_cut(printable(e.operator), LONGEST_NAME), None, "<", whole=lambda e: printable(e.operator)),
    Column("count", lambda e: f"{e.count:,}", None, left_out=4),
    Column("time", lambda e: time(e.time_ns), None),
    Column("share", lambda e: f"{e.share:.1%}", None, left_out=3),
    Column("steps", lambda e: steps(e.steps), None, "<", left_out=2),
    Column("shapes", lambda e: _shapes(e), None, "<", left_out=1),
    Column("where", lambda e: _place(e), None, "<", whole=lambda e: _place(e)),
]


def _gain(found: Finding, *, in_steps: bool) -> str:
    kept = [f"about {units.memory(found.kept_bytes)} of memory kept"] if found.kept_bytes else []
    if found.gain_ns or not kept:
        about = "up to" if found.is_upper_bound else "about"
        gain = f"{time(found.gain_ns_per_step)} a step" if in_steps else time(found.gain_ns)
        kept.insert(0, f"{about} {gain}, {found.gain_share:.1%} of the wall time")
    return ", and ".join(kept)


def part(found: Part, *, max_evidence: int = -1, in_steps: bool = True, width: int | None = None) -> str:
    """A part of the time that is not explained."""
    sentence = f"{found.share:.1%} of the wall time ({time(found.time_ns)}): {found.name}. {found.hint}".rstrip()
    lines = _wrapped(sentence, "  ", width)
    shown = found.evidence if max_evidence < 0 else found.evidence[:max_evidence]
    return "\n".join([*lines, *_evidence(shown, in_steps=in_steps, width=width)])


def _evidence(evidence: Sequence[Evidence], *, in_steps: bool, width: int | None) -> list[str]:
    if not evidence:
        return []
    kept = [c for c in COLUMNS if any(c.value(each) for each in evidence) and (in_steps or c.heading != "steps")]
    table = TextTable(fitting(kept, evidence, None if width is None else width - 5), evidence)
    return [f"     {line}".rstrip() for line in [table.heading, *table.rows]]


def _shapes(evidence: Evidence) -> str:
    return "" if evidence.shapes is None else textwrap.shorten(str(evidence.shapes), SHAPES, placeholder=" ...")


def _place(evidence: Evidence) -> str:
    if evidence.place is None:
        return ""
    file, line, function = evidence.place.rsplit(":", 2)
    return middle_cut(printable(f"{os.path.basename(file)}:{line} ({function})"), LONGEST_NAME)


def _wrapped(sentence: str, indent: str, width: int | None) -> list[str]:
    within = WIDTH if width is None else min(width, WIDTH)
    return textwrap.wrap(printable(sentence), within, initial_indent=indent, subsequent_indent=indent, break_long_words=False)
