"""A comparison as one HTML page: both runs laid over each other, step by step and place by place. It has no scripts."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..writing import units
from ..writing.atomic_file import replacing
from ..writing.text_table import printable
from . import text

if TYPE_CHECKING:
    from .comparison import Change, Comparison
    from .devices import DeviceChange

__all__ = ["page", "write"]

WIDTH, HEIGHT = 960, 200  # of the chart of steps
PLACES = 100  # that are drawn

STYLE = """
:root { color-scheme: light dark; --before: #5b94d6; --after: #e08a70; --ink: #1b2330; --paper: #fff; --line: #8884; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --paper: #14181f; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.3rem } h2 { font-size: 1.05rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .3rem .5rem; border-bottom: 1px solid var(--line); vertical-align: top }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.before { color: var(--before) } .after { color: var(--after) }
.bars { min-width: 12rem } .bar { height: .55rem; margin: .1rem 0; border-radius: 2px; min-width: 1px }
.bar.before { background: var(--before) } .bar.after { background: var(--after) }
svg { width: 100%; height: auto } svg text { font-size: 11px; fill: currentColor } small { opacity: .75; display: block; overflow-wrap: anywhere }
.scroll { overflow-x: auto }
"""


def write(found: Comparison, path: str | os.PathLike[str], names: tuple[str, str]) -> None:
    """Write the page; `names` are those of the two runs."""
    with replacing(path) as file:
        file.write(page(found, names).encode())


def page(found: Comparison, names: tuple[str, str]) -> str:
    """The page as text."""
    before, after = (_escaped(name) for name in names)
    sentences = "".join(f"<p>{_escaped(sentence)}</p>" for sentence in text.sentences(found))
    changes = _changes(found) if found.changes else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{before} and {after}</title><style>{STYLE}</style></head><body>
<h1><span class="before">{before}</span> and <span class="after">{after}</span></h1>
{sentences}
{changes}
{"".join(map(_kernels, found.devices))}
<h2>Steps</h2>
{_steps(found.step_times_ns)}
<h2>Places, by the time they take</h2>
<div class="scroll">{_places(found.places[:PLACES])}</div>
</body></html>
"""


def _changes(found: Comparison) -> str:
    rows = "".join(
        f"<tr><td>{_escaped(change.kind)}</td><td>{_escaped(text.name(change))}<small>{_escaped(text.detail(change))}</small></td>"
        f'<td class="number">{_time(change.before_ns)}</td><td class="number">{_time(change.after_ns)}</td>'
        f'<td class="number">{change.delta_ns / (found.step_ns[0] or 1):+.1%}</td></tr>'
        for change in found.changes
    )
    heading = '<tr><th>change</th><th>name</th><th class="number">before</th><th class="number">after</th><th class="number">of a step</th></tr>'
    return f'<h2>Changes</h2><div class="scroll"><table>{heading}{rows}</table></div>'


def _kernels(device: DeviceChange) -> str:
    """The kernels of a device whose time changed."""
    if not device.kernels:
        return ""
    rows = "".join(
        f'<tr><td>{_escaped(kernel.kind)}</td><td>{_escaped(kernel.name)}</td><td class="number">{_time(kernel.before_ns)}</td>'
        f'<td class="number">{_time(kernel.after_ns)}</td><td class="number">{kernel.delta_ns / (device.work_ns[0] or 1):+.1%}</td></tr>'
        for kernel in device.kernels[:PLACES]
    )
    heading = '<tr><th>change</th><th>name</th><th class="number">before</th><th class="number">after</th><th class="number">of its work</th></tr>'
    return f'<h2>Kernels on {_escaped(device.names[1])}</h2><div class="scroll"><table>{heading}{rows}</table></div>'


def _steps(times: tuple[Sequence[int], Sequence[int]]) -> str:
    """The time of each step, a dot for each, of both runs from the first step on."""
    largest = max([*times[0], *times[1], 1])
    count = max(len(times[0]), len(times[1]), 2)
    dots = []
    for run, name in zip(times, ("before", "after"), strict=True):
        for at, ns in enumerate(run):
            x, y = 40 + (WIDTH - 50) * at / (count - 1), 10 + (HEIGHT - 30) * (1 - ns / largest)
            dots.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="var(--{name})"><title>{_time(ns)}</title></circle>')
    axis = f'<line x1="40" x2="{WIDTH - 10}" y1="{HEIGHT - 20}" y2="{HEIGHT - 20}" stroke="currentColor" opacity=".4"/>'
    labels = f'<text x="0" y="16">{_time(largest)}</text><text x="40" y="{HEIGHT - 5}">first step</text>'
    label = f"times of {len(times[0])} and {len(times[1])} steps"
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{axis}{labels}{"".join(dots)}</svg>'


def _places(places: Sequence[Change]) -> str:
    largest = max([*(change.before_ns for change in places), *(change.after_ns for change in places), 1.0])

    def bar(ns: float, run: str) -> str:
        return f'<div class="bar {run}" style="width:{100 * ns / largest:.1f}%"></div>'

    rows = "".join(
        f"<tr><td>{_escaped(text.name(change))}<small>{_escaped(' > '.join(change.path))}</small></td>"
        f'<td class="bars">{bar(change.before_ns, "before")}{bar(change.after_ns, "after")}</td>'
        f'<td class="number">{_time(change.before_ns)}</td><td class="number">{_time(change.after_ns)}</td></tr>'
        for change in places
    )
    return f'<table><tr><th>place</th><th></th><th class="number">before</th><th class="number">after</th></tr>{rows}</table>'


def _time(ns: float) -> str:
    return units.time(ns / 1000) if ns else "—"


def _escaped(value: str) -> str:
    return html.escape(printable(value))
