"""The memory timeline as one HTML page: what is in it, and the file. How it looks and acts is `memory_page.html`."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..model import links, tree
from ..model.memory_categories import BY_NUMBER, Category
from ..model.memory_timeline import MemoryTimeline
from ..model.places import own_frame
from ..model.recorded_events import recording_of
from ..model.session import Distinct
from ..model.storage_lives import NEVER
from ..writing.atomic_file import replacing

__all__ = ["page_columns", "page_data", "write"]

Column = np.ndarray[Any, np.dtype[Any]]

TEMPLATE = Path(__file__).with_name("memory_page.html")
SHOWN = 100_000  # storages drawn one by one, the largest; some 5 MB of page
BINS = 2_000  # intervals of time for which the others are summed
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
    names, places = Distinct(), Distinct()
    pieces, end = _pieces(timeline, zero, names, places)
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


def _pieces(timeline: MemoryTimeline, zero: int, names: Distinct, places: Distinct) -> tuple[dict[str, Column], int]:
    """Columns of pieces: start, end, size, category, and who made and freed it; -1 where that was outside of the recording.

    And the time at which the last thing happened. What was not freed ends after that.
    """
    numbers, storages, categories = timeline.numbers(), timeline.graph.storages, timeline.categories
    was_there, is_left = storages.made_ns[numbers] == NEVER, storages.freed_ns[numbers] == NEVER
    made = np.where(was_there, 0, storages.made_ns[numbers] - zero)
    freed = np.where(is_left, -1, storages.freed_ns[numbers] - zero)
    last_write = storages.write_ns.max(initial=zero) - zero
    end = max(timeline.session.info.stopped_ns - zero, made.max(initial=0), freed.max(initial=0), last_write)
    freed[is_left] = end + 1
    maker = _names(timeline, storages.made_by[numbers], names)
    maker[was_there] = names.number("before the recording")
    freer = np.where(is_left, -1, _names(timeline, storages.freed_by[numbers], names))
    place = _places(timeline, storages.made_by[numbers], places)

    # a storage is taken apart where a write changes its category: each version begins with its write, the first when it was made
    which, value = _versions(timeline, numbers)
    kind = np.array([ORDER.index(category) for category in BY_NUMBER])[categories.all[value]]
    is_first = np.diff(which, prepend=-1) != 0
    begins = np.flatnonzero(is_first | (np.diff(kind, prepend=-1) != 0))
    which, value, kind, is_first = which[begins], value[begins], kind[begins], is_first[begins]
    start = made[which]
    start[~is_first] = storages.write_ns[(value - categories.storage[value] - 1)[~is_first]] - zero
    is_last = np.append(is_first[1:], True)[: len(which)]
    columns = {
        "start": start,
        "end": np.where(is_last, freed[which], np.roll(start, -1)),
        "size": storages.size_bytes[numbers][which],
        "category": kind,
        "maker": maker[which],
        "place": place[which],
        "freer": np.where(is_last, freer[which], -2),
    }
    return columns, int(end)


def _versions(timeline: MemoryTimeline, numbers: Column) -> tuple[Column, Column]:
    """All versions of these storages: where in `numbers` the storage is, and the number of the value."""
    first = timeline.categories.first_value
    counts = np.diff(first)[numbers]
    which = np.repeat(np.arange(len(numbers)), counts)
    return which, first[numbers][which] + np.arange(len(which)) - (np.cumsum(counts) - counts)[which]


def _names(timeline: MemoryTimeline, rows: Column, names: Distinct) -> Column:
    """The numbers of the names of what ran in these events: the backward node or outermost operator, and the operator there."""
    session, graph = timeline.session, timeline.graph
    parent = tree.parents(session, skip=("python_function",))
    prepares = np.array([label.name in PREPARATION for label in session.labels], bool)
    inside = rows >= 0
    inner = rows[inside]
    while len(climbing := np.flatnonzero(prepares[session.label[inner]] & (graph.top[inner] != inner))):
        inner[climbing] = parent[inner[climbing]]
    outer = graph.evaluation[inner]
    outer = np.where(outer < 0, graph.top[inner], outer)
    count = len(session.labels)
    pairs, which = np.unique(np.where(outer < 0, 0, session.label[outer] + 1) * count + session.label[inner], return_inverse=True)
    found = np.full(len(rows), names.number("outside of operators"), np.int64)
    found[inside] = np.array([names.number(_operator(timeline, p // count - 1, p % count)) for p in pairs.tolist()], np.int64)[
        which
    ]
    return found


def _places(timeline: MemoryTimeline, rows: Column, places: Distinct) -> Column:
    """The numbers of the places in the program where these events were called: the user's own line, if there is any, and all lines."""
    session, recording = timeline.session, recording_of(timeline.session)
    stack = recording.stack[rows] if len(session) else -1
    stacks, which = np.unique(np.where(rows < 0, -1, stack), return_inverse=True)
    numbers = []
    for stack in stacks.tolist():
        frames = session.stack_table[stack] if stack >= 0 else ()
        own = own_frame(frames, session.frames, recording.places)
        numbers.append(
            places.number(("" if own < 0 else recording.places[own], "\n".join(recording.places[frame] for frame in frames)))
        )
    return np.array(numbers, np.int64)[which]


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
    rows = np.arange(len(session))
    operators = np.flatnonzero((graph.top == rows) | (graph.evaluation == rows))  # each is around itself
    operators = operators[(graph.evaluation[operators] < 0) | (graph.evaluation[operators] == operators)]
    is_node = graph.evaluation[operators] >= 0
    # a backward pass is a run of nodes between which no other operator runs
    for run in np.split(np.arange(len(operators)), np.flatnonzero(np.diff(is_node)) + 1):
        if len(run) and is_node[run[0]]:
            rows = operators[run]
            bands.append(("backward", "backward", int(session.start_ns[rows].min()) - zero, int(session.end_ns[rows].max()) - zero))
    return sorted(bands, key=lambda band: band[2])
