"""The memory timeline as one HTML page: what is in it, and the file. How it looks and acts is `memory_page.html`."""

from __future__ import annotations

import functools
import html
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..model import links, tree
from ..model.memory_categories import Category
from ..model.memory_timeline import MemoryTimeline
from ..model.recorded_events import recording_of
from ..model.session import Distinct
from ..writing.atomic_file import replacing

__all__ = ["page_columns", "page_data", "write"]

Column = np.ndarray[Any, np.dtype[Any]]

TEMPLATE = Path(__file__).with_name("memory_page.html")
SHOWN = 100_000  # storages drawn one by one, the largest; some 5 MB of page
BINS = 2_000  # intervals of time for which the others are summed
LIBRARY = ("mindtorch_v2/", "mindtorch_v2\\")  # how places in this package begin
# what operators call to get the memory of their results ready
PREPARATION = {f"aten::{name}" for name in ("empty", "empty_like", "empty_strided", "new_empty", "resize_", "resize_as_")}
PIXELS = 80  # of a unit of `figsize`, as in torch

# From the bottom of the picture: what stays, then what comes and goes.
ORDER: tuple[Category | None, ...] = (
    Category.PARAMETER,
    Category.OPTIMIZER_STATE,
    Category.INPUT,
    Category.GRADIENT,
    Category.ACTIVATION,
    Category.AUTOGRAD_DETAIL,
    Category.TEMPORARY,
    None,
)


def write(
    timeline: MemoryTimeline, path: str | os.PathLike[str], *, figsize: tuple[float, float] = (20, 12), title: str | None = None
) -> None:
    """Write a page that shows the timeline; it needs nothing but a browser."""
    data = page_data(timeline)
    width, height = (round(side * PIXELS) for side in figsize)
    page = TEMPLATE.read_text(encoding="utf-8")
    parts = {
        "TITLE": html.escape(title or "Memory timeline"),
        "WIDTH": str(width),
        "HEIGHT": str(height),
        # whatever a name contains, it does not end the script
        "DATA": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
    }
    for name, value in parts.items():
        page = page.replace(f"{{{{{name}}}}}", value)
    with replacing(path) as file:
        file.write(page.encode())


def page_data(timeline: MemoryTimeline) -> dict[str, Any]:
    """The data of the page as JSON knows it."""
    data = page_columns(timeline)
    return data | {"pieces": {name: column.tolist() for name, column in data["pieces"].items()}}


def page_columns(timeline: MemoryTimeline) -> dict[str, Any]:
    """The data of the page: pieces of memory as columns, the names that these point into, and the marks around them.

    A piece is a storage, or the part of its life between two in-place writes that change its category. Times are nanoseconds since
    the recording began.
    """
    session = timeline.session
    zero = session.info.started_ns
    end = max([session.info.stopped_ns - zero, *(change.time_ns - zero for change in timeline.changes[-1:])])
    names, places = Distinct(), Distinct()
    pieces = _pieces(timeline, zero, end, names, places)
    largest = np.sort(np.argsort(-pieces["size"], kind="stable")[:SHOWN])
    shown = {name: column[largest] for name, column in pieces.items()}
    rest = np.setdiff1d(np.arange(len(pieces["size"])), largest)
    summed = _summed({name: column[rest] for name, column in pieces.items()}, end, names.number("many small storages"))
    columns = {name: np.concatenate([shown[name], summed[name]]) for name in shown}
    peak_ns, peak_bytes = _peak(pieces)
    return {
        "categories": ["unknown" if c is None else c.name.lower().replace("_", " ") for c in ORDER],
        "end": end,
        "peak": {"time": peak_ns, "bytes": peak_bytes},
        "pieces": columns,
        "names": list(names),
        "places": list(places),
        "bands": _bands(timeline, zero),
        "summed": {"count": len(rest), "below": int(pieces["size"][rest].max(initial=0)) + 1},
    }


def _pieces(timeline: MemoryTimeline, zero: int, end: int, names: Distinct, places: Distinct) -> dict[str, Column]:
    """Columns of pieces: start, end, size, category, and who made and freed it; -1 where that was outside of the recording."""
    shown = {change.storage for change in timeline.changes}
    index = {category: i for i, category in enumerate(ORDER)}
    recording = recording_of(timeline.session)
    parent = tree.parents(timeline.session, skip=("python_function",))
    rows: list[tuple[int, ...]] = []

    name_of_labels = functools.cache(lambda *labels: names.number(_operator(timeline, *labels)))

    @functools.cache
    def name_of(row: int) -> int:
        return names.number("outside of operators") if row < 0 else name_of_labels(*_labels(timeline, parent, row))

    @functools.cache
    def place_of(stack: int) -> int:
        lines = [recording.places[frame] for frame in timeline.session.stack_table[stack]] if stack >= 0 else []
        # the user's own code, if there is any
        shown_first = next((line for line in lines if not line.startswith(LIBRARY)), *lines[:1] or [""])
        return places.number((shown_first, "\n".join(lines)))

    for number in sorted(shown):
        storage = timeline.graph.storages[number]
        maker = names.number("before the recording") if storage.made_ns is None else name_of(storage.made_by)
        place = place_of(-1 if storage.made_by < 0 else recording.stack.item(storage.made_by))
        made = 0 if storage.made_ns is None else storage.made_ns - zero
        freed = end + 1 if storage.freed_ns is None else storage.freed_ns - zero
        freer = -1 if storage.freed_ns is None else name_of(storage.freed_by)
        if not storage.writes:
            rows.append((made, freed, storage.size_bytes, index[timeline.category(number, 0)], maker, place, freer))
            continue
        times = [made, *(at - zero for at in storage.writes)]
        kinds = [index[timeline.category(number, version)] for version in range(len(times))]
        firsts = [i for i, kind in enumerate(kinds) if i == 0 or kind != kinds[i - 1]]
        for first, following in zip(firsts, [*firsts[1:], None], strict=True):
            last = freed if following is None else times[following]
            rows.append((times[first], last, storage.size_bytes, kinds[first], maker, place, freer if following is None else -2))
    columns = np.array(rows, np.int64).reshape(-1, 7).T
    return dict(zip(("start", "end", "size", "category", "maker", "place", "freer"), columns, strict=True))


def _labels(timeline: MemoryTimeline, parent: Column, row: int) -> tuple[int, int]:
    """The labels of the backward node or outermost operator that a row is inside of, -1 for none, and of the operator there."""
    session, graph = timeline.session, timeline.graph
    while session.labels[session.label.item(row)].name in PREPARATION and graph.top.item(row) != row:
        row = parent.item(row)
    outer = graph.evaluation.item(row)
    if outer < 0:
        outer = graph.top.item(row)
    return (-1 if outer < 0 else session.label.item(outer)), session.label.item(row)


def _operator(timeline: MemoryTimeline, outer: int, inner: int) -> str:
    """Return what ran, by its labels: the backward node or outermost operator, and the operator inside it."""
    labels = timeline.session.labels
    name, around = (labels[i].name.removeprefix(links.EVALUATE) if i >= 0 else "" for i in (inner, outer))
    if outer < 0 or around == name:
        return name
    return around if labels[inner].kind == "python_function" else f"{around} › {name}"


def _summed(pieces: dict[str, Column], end: int, name: int) -> dict[str, Column]:
    """Pieces that stand for many: for each category and each interval of time the most that they were together."""
    edges = np.unique(np.linspace(0, end + 1, BINS + 1).astype(np.int64))
    rows = []
    for category in range(len(ORDER)):
        of_it = pieces["category"] == category
        if not of_it.any():
            continue
        times, totals = _running_totals(pieces["start"][of_it], pieces["end"][of_it], pieces["size"][of_it])
        points = np.concatenate([times, edges[:-1]])
        values = np.concatenate([totals, np.concatenate([[0], totals])[np.searchsorted(times, edges[:-1], side="right")]])
        most = np.zeros(len(edges) - 1, np.int64)
        bins = np.searchsorted(edges, points, side="right") - 1
        inside = bins < len(most)
        np.maximum.at(most, bins[inside], values[inside])
        rows += [(a, b, size, category, name, -1, -2) for a, b, size in zip(edges, edges[1:], most) if size]
    columns = np.array(rows, np.int64).reshape(-1, 7).T
    return dict(zip(pieces, columns, strict=True))


def _running_totals(start: Column, end: Column, size: Column) -> tuple[Column, Column]:
    """The times of all changes, and the bytes that live after each; what comes at a time is there before what goes."""
    times, sizes = np.concatenate([start, end]), np.concatenate([size, -size])
    order = np.lexsort((-np.sign(sizes), times))
    return times[order], np.cumsum(sizes[order])


def _peak(pieces: dict[str, Column]) -> tuple[int, int]:
    """When most bytes were live, and how many."""
    # a piece that continues a storage's life comes when the one before goes: what goes first does not count twice
    times, sizes = np.concatenate([pieces["start"], pieces["end"]]), np.concatenate([pieces["size"], -pieces["size"]])
    if not len(times):
        return 0, 0
    moments, where = np.unique(times, return_inverse=True)
    totals = np.cumsum(np.bincount(where, weights=sizes)).astype(np.int64)
    at = int(np.argmax(totals))
    return int(moments[at]), int(totals[at])


def _bands(timeline: MemoryTimeline, zero: int) -> list[tuple[str, str, int, int]]:
    """Steps, backward passes and optimizer steps: kind, name, start, end."""
    session, graph = timeline.session, timeline.graph
    bands = []
    for row in np.flatnonzero(np.array([label.kind == "scope" for label in session.labels], bool)[session.label]).tolist():
        name = session.labels[session.label.item(row)].name
        kind = "step" if name.startswith("ProfilerStep#") else "optimizer" if graph.optimizer_step.item(row) == row else ""
        if kind:
            bands.append((kind, name, session.start_ns.item(row) - zero, session.end_ns.item(row) - zero))
    nodes = np.unique(graph.evaluation[graph.evaluation >= 0])
    operators = np.unique(np.concatenate([graph.top[graph.top >= 0], nodes]))
    operators = operators[(graph.evaluation[operators] < 0) | (graph.evaluation[operators] == operators)]
    is_node = graph.evaluation[operators] >= 0
    # a backward pass is a run of nodes between which no other operator runs
    for run in np.split(np.arange(len(operators)), np.flatnonzero(np.diff(is_node)) + 1):
        if len(run) and is_node[run[0]]:
            rows = operators[run]
            bands.append(("backward", "backward", int(session.start_ns[rows].min()) - zero, int(session.end_ns[rows].max()) - zero))
    return sorted(bands, key=lambda band: band[2])
