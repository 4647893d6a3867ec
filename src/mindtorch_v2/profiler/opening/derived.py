"""What a trace does not say in its rows, and its events tell together: stacks, modules, steps, and who made which memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..model import links, tree
from ..model.session import Column, Label, ModulePart, Session
from . import trace_values

__all__ = ["MOST_FRAMES", "open_events", "spend", "steps", "with_modules", "with_stacks_of_functions"]

MOST_FRAMES = 20_000_000  # of all stacks together: functions inside each other have stacks of the square of their number


def spend(budget: int, count: int) -> int:
    """What is left of the frames that a file may have; raises if nothing is."""
    if count > budget:
        raise ValueError(f"its stacks have more than {MOST_FRAMES:,} frames")
    return budget - count


def with_stacks_of_functions(session: Session) -> Session:
    """Stacks as the Python functions around each event tell them."""
    is_function = np.array([label.kind == "python_function" for label in session.labels], bool)[session.label]
    if not is_function.any():
        return session
    around = tree.parents(session, skip=tuple({label.kind for label in session.labels} - {"python_function"}))
    frame_of = {i: trace_values.frame(label.name) for i, label in enumerate(session.labels) if label.kind == "python_function"}
    frames = {frame: i for i, frame in enumerate(dict.fromkeys(frame_of.values()))}
    number_of = {label: frames[frame] for label, frame in frame_of.items()}
    rows = np.flatnonzero(is_function)
    chains: dict[tuple[int, int], int] = {}
    parents: list[tuple[int, int]] = []  # of each chain: the one around it, and its last frame
    chain_of: dict[int, int] = {-1: -1}
    for row, parent, label in zip(rows.tolist(), around[rows].tolist(), session.label[rows].tolist()):
        key = chain_of[parent], number_of[label]
        if key not in chains:
            chains[key] = len(parents)
            parents.append(key)
        chain_of[row] = chains[key]
    has_stack = np.array([label.kind in ("op", "scope") for label in session.labels], bool)[session.label]
    chain = np.full(len(session), -1, np.int64)
    calls = np.flatnonzero(has_stack & (around >= 0))
    chain[calls] = [chain_of[row] for row in around[calls].tolist()]
    used, stack = np.unique(chain, return_inverse=True)
    depth: list[int] = []
    for outer, _ in parents:
        depth.append(depth[outer] + 1 if outer >= 0 else 1)
    spend(MOST_FRAMES, sum(depth[number] for number in used.tolist() if number >= 0))
    table = [_walk(number, parents) for number in used.tolist() if number >= 0]
    return session.replace(stack=(stack - (used[0] < 0)).astype(np.int32), stack_table=tuple(table), frames=tuple(frames))


def _walk(chain: int, parents: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    frames = []
    while chain >= 0:
        chain, frame = parents[chain]
        frames.append(frame)
    return tuple(frames)


_MODULE = "nn.Module: "


def with_modules(session: Session) -> Session:
    """Labels of calls of modules, with their places as the calls around them tell: torch's `nn.Module: Linear_0`."""
    if any(label.module for label in session.labels):
        return session
    is_module = np.array([label.name.startswith(_MODULE) for label in session.labels], bool)[session.label]
    if not is_module.any():
        return session
    label, labels = session.label.copy(), list(session.labels)
    numbers: dict[Label, int] = {}
    module_of: dict[int, tuple[ModulePart, ...]] = {}
    parent = tree.parents(session)
    rows = np.flatnonzero(is_module)
    around = parent[rows]
    while (over := (around >= 0) & ~is_module[around]).any():
        around[over] = parent[around[over]]
    for row, outer in zip(rows.tolist(), around.tolist()):
        name = labels[label[row]].name.removeprefix(_MODULE)
        parts = (*module_of.get(outer, ()), ModulePart(name, name.rpartition("_")[0] or name))
        module_of[row] = parts
        placed = labels[label[row]]._replace(module=parts)
        label[row] = numbers.setdefault(placed, len(session.labels) + len(numbers))
    return session.replace(label=label, labels=(*labels, *numbers))


def steps(session: Session, told: Column) -> Column:
    """The step of each row: as the file says, or by the last `ProfilerStep#` that began before it; of a kernel, that of its launch."""
    if (told >= 0).any():
        return np.clip(told, 0, (1 << 31) - 1).astype(np.int32)
    names = [label.name.removeprefix("ProfilerStep#") if label.name.startswith("ProfilerStep#") else "" for label in session.labels]
    number = np.array([int(name[:9]) if name.isdecimal() else -1 for name in names], np.int64)[session.label]
    on_cpu = np.array([track.device_type == "CPU" for track in session.tracks], bool)[session.track]
    marks = np.flatnonzero((number >= 0) & on_cpu)
    if not len(marks):
        return np.zeros(len(session), np.int32)
    at = np.maximum(np.searchsorted(session.start_ns[marks], session.start_ns, side="right") - 1, 0)
    step = number[marks][at].astype(np.int32)
    callers, kernels = links.launches(session)
    step[kernels] = step[callers]
    return step


def open_events(session: Session, track: Column, time_ns: Column) -> Column:
    """The innermost event that is open on each track at each time; -1 for none."""
    found = np.full(len(track), -1, np.int64)
    parent = tree.parents(session)
    for rows in tree.groups(session.track):
        here = np.flatnonzero(track == session.track[rows[0]])
        at = np.searchsorted(session.start_ns[rows], time_ns[here], side="right") - 1
        event = np.where(at >= 0, rows[at], -1)
        while (over := (event >= 0) & (session.end_ns[event] < time_ns[here])).any():
            event[over] = parent[event[over]]
        found[here] = event
    return found
