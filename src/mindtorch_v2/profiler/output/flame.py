"""Flame graphs: the tree of what called what, with the time of each on the CPU, as folded stacks, for speedscope, and as a picture.

Where Python functions were recorded they are in the tree, with the operators that they called; elsewhere it is the tree of operators and scopes.
"""

from __future__ import annotations

import colorsys
import html
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..model.recorded_events import recording_of
from ..model.session import Session
from ..writing import units
from ..writing.text_table import middle_cut
from . import stacks
from .report.sections import flame as sections
from .report.sources import Process

__all__ = ["FlameTree", "Node", "folded", "speedscope", "speedscope_text", "svg"]

LEFT_OUT = ("memory", "kernel", "sync")


@dataclass(frozen=True)
class Node:
    """Events of one name below the same callers; a node stands before those below it."""

    name: str
    parent: int  # the number of the node around, -1 for none
    self_ns: int
    total_ns: int  # with what is below


@dataclass(frozen=True)
class FlameTree:
    """The nodes of one process."""

    name: str
    nodes: tuple[Node, ...]

    @property
    def total_ns(self) -> int:
        return sum(node.self_ns for node in self.nodes)

    def path(self, number: int) -> list[str]:
        """The names from a node outwards."""
        names = []
        while number >= 0:
            names.append(self.nodes[number].name)
            number = self.nodes[number].parent
        return names

    @classmethod
    def of(cls, session: Session) -> FlameTree:
        """The tree of a session; threads are below each other if there is more than one."""
        recording = recording_of(session)
        kinds = [label.kind for label in session.labels]
        shown = recording.rows[recording.on_cpu[recording.rows]]
        self_ns = recording.without_children(recording.cpu_ns)
        threads = [track.name or f"thread {track.tid}" for track in session.tracks]
        with_threads = len(set(session.track[shown].tolist())) > 1
        numbers: dict[tuple[int, str], int] = {}
        amounts: list[int] = []
        node_of: dict[int, int] = {}

        def number_of(parent: int, name: str) -> int:
            number = numbers.setdefault((parent, name), len(numbers))
            if number == len(amounts):
                amounts.append(0)
            return number

        columns = (shown, recording.around[shown], session.label[shown], session.track[shown], self_ns[shown])
        for row, around, label, track, own in zip(*(column.tolist() for column in columns)):
            parent = node_of.get(around, -1)
            if parent < 0 and with_threads:
                parent = number_of(-1, threads[track])
            node_of[row] = node = parent if kinds[label] in LEFT_OUT else number_of(parent, recording.names[label])
            if node >= 0:
                amounts[node] += own
        return cls(f"{session.info.process_name} {session.info.pid}", _nodes(list(numbers), amounts))

    @classmethod
    def merged(cls, session: Session, by: str, phase: str) -> FlameTree:
        """The tree that the report draws: by operators, calls, stack or module; of the phase forward, backward or both."""
        found = sections.merged(Process(session), by)
        if "needs" in found:
            option = f"--{found['needs'].removesuffix('=True').replace('_', '-')}"
            raise ValueError(f"a flame graph by {by} needs what was not recorded: record with {option}, or {found['needs']}")
        amounts = {"forward": found["self"], "backward": found["selfBackward"], "both": found["self"] + found["selfBackward"]}[
            phase
        ]
        names = found["names"]
        places = [(parent, names[name]) for parent, name in zip(found["parent"].tolist(), found["name"].tolist(), strict=True)]
        return cls(f"{session.info.process_name} {session.info.pid}", _nodes(places, amounts.tolist()))


def _nodes(places: Sequence[tuple[int, str]], amounts: Sequence[int]) -> tuple[Node, ...]:
    totals = list(amounts)
    for number in range(len(places) - 1, -1, -1):
        parent = places[number][0]
        if parent >= 0:
            totals[parent] += totals[number]
    return tuple(Node(name, parent, amounts[i], totals[i]) for i, (parent, name) in enumerate(places))


def folded(trees: Sequence[FlameTree]) -> Iterator[str]:
    """A line for each path with time of its own, in microseconds; below the process, if there is more than one."""
    for tree in trees:
        for number, node in enumerate(tree.nodes):
            if node.self_ns >= 1000:
                yield stacks.line([*tree.path(number), *([tree.name] if len(trees) > 1 else [])], node.self_ns // 1000)


def speedscope(trees: Sequence[FlameTree], title: str) -> dict[str, Any]:
    """A file for https://speedscope.app: a profile for each process."""
    frames: dict[str, int] = {}
    profiles = []
    for tree in trees:
        timed = [number for number, node in enumerate(tree.nodes) if node.self_ns > 0]
        samples = [[frames.setdefault(name, len(frames)) for name in reversed(tree.path(number))] for number in timed]
        weights = [tree.nodes[number].self_ns for number in timed]
        profile = {"type": "sampled", "name": tree.name, "unit": "nanoseconds", "startValue": 0, "endValue": sum(weights)}
        profiles.append({**profile, "samples": samples, "weights": weights})
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": title,
        "exporter": "mindtorch_v2",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": profiles,
    }


def speedscope_text(trees: Sequence[FlameTree], title: str) -> str:
    return json.dumps(speedscope(trees, title), separators=(",", ":"))


# The picture -------------------------------------------------------------------------------------------------------------------

WIDTH, ROW, HEADING, MARGIN = 1200, 18, 28, 8
LETTER = 6.6  # the width of one in the font of the picture
SMALLEST = 0.4  # pixels; what is narrower is left out
STYLE = (
    "text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1c1c1c}.t{font-weight:bold}rect:hover{stroke:#000;stroke-width:1}"
)


def svg(trees: Sequence[FlameTree], title: str) -> str:
    """A picture that needs nothing else: outer calls at the top, as wide as their time; a name and its time show under the pointer."""
    parts, top = [], MARGIN
    for tree in trees:
        text, height = _drawn(tree, top, f"{title}: {tree.name}" if len(trees) > 1 else title)
        parts.append(text)
        top += height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}">'
        f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _drawn(tree: FlameTree, top: int, title: str) -> tuple[str, int]:
    whole, scale = tree.total_ns, (WIDTH - 2 * MARGIN) / max(tree.total_ns, 1)
    parts = [f'<text class="t" x="{MARGIN}" y="{top + 14}">{_escaped(f"{title}, {units.time(whole / 1000)}")}</text>']
    began: list[float] = []
    depth: list[int] = []
    free: dict[int, float] = {-1: 0.0}  # where the next node below each one begins
    for number, node in enumerate(tree.nodes):
        began.append(free[node.parent])
        depth.append(depth[node.parent] + 1 if node.parent >= 0 else 0)
        free[number] = began[number]
        free[node.parent] += node.total_ns * scale
        if node.total_ns * scale >= SMALLEST:
            parts.append(_box(node, MARGIN + began[number], top + HEADING + depth[number] * ROW, node.total_ns * scale, whole))
    return "".join(parts), HEADING + (max(depth, default=0) + 1) * ROW + MARGIN


def _box(node: Node, x: float, y: int, width: float, whole: int) -> str:
    told = (
        f"{node.name}: {units.time(node.total_ns / 1000)} ({node.total_ns / whole:.1%}), itself {units.time(node.self_ns / 1000)}"
    )
    letters = int((width - 4) / LETTER)
    shown = f'<text x="{x + 3:.1f}" y="{y + 13}">{_escaped(middle_cut(node.name, letters))}</text>' if letters >= 3 else ""
    return (
        f'<g><title>{_escaped(told)}</title><rect x="{x:.2f}" y="{y}" width="{max(width - 0.5, 0.3):.2f}" height="{ROW - 1}" '
        f'rx="1" fill="{_colour(node.name)}"/>{shown}</g>'
    )


def _colour(name: str) -> str:
    """The same for one name in every picture: operators warm, Python functions blue, all else green."""
    shade = zlib.crc32(name.encode("utf-8", "backslashreplace")) % 1000 / 1000
    hue = (
        0.04 + 0.08 * shade
        if "::" in name
        else 0.56 + 0.06 * shade
        if "): " in name or name.startswith("<")
        else 0.28 + 0.1 * shade
    )
    red, green, blue = (round(255 * part) for part in colorsys.hls_to_rgb(hue, 0.72 + 0.08 * shade, 0.7))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _escaped(text: str) -> str:
    """Text for XML, which has no characters that control anything."""
    return html.escape("".join(c if c.isprintable() else "�" for c in text.encode("utf-8", "replace").decode()))
