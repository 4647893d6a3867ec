"""From the records of a log to the columns of a session."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..model import live_memory, tree
from ..model.session import DataFlow, Info, MemoryLog, Roles, Session, Track, empty_session
from .log_records import SMALLEST_PIECE, Records, later_ones
from .memory.storages import Changes, Noted, Notes, changes_of, without_early
from .operators.recorder import nanoseconds
from .source import Findings

__all__ = ["Context", "assemble"]

Column = np.ndarray[Any, np.dtype[Any]]
WEIGHTS = {"python_function": 0, "scope": 1}  # which of two events that straddle is cut; the times of operators are left alone


class Context(NamedTuple):
    """The tables that records refer to, and which records are wanted."""

    info: Info
    epoch_ns: int
    steps: Sequence[tuple[float, int]]
    thread: int  # that started the recording
    only_thread: int | None
    kinds: set[str] | None
    found: Findings


def assemble(context: Context) -> Session:
    """One session from the records of all threads; of the later ones, if there is no memory for more."""
    records, context.found.records = context.found.records, None  # held by nobody else, so that parts of it can be given up
    assert records is not None
    total = records.lost + len(records.label)
    noted = context.found.memory
    while True:
        try:
            session = _session(records, context)
            break
        except MemoryError:
            before = context.found.memory
            context.found.memory = _later_memory(before, records)
            if len(records.label) >= SMALLEST_PIECE:
                records = later_ones(records)
            elif context.found.memory is before:  # as short as it gets
                if before is None:
                    raise
                context.found.memory = None
    missing = [
        *[f"{records.lost:,} of {total:,} recorded events could not be kept, the earliest ones"] * (records.lost > 0),
        *[f"live memory leaves out the results of {records.results_lost:,} {'of them' if records.lost else 'events'}"]
        * (records.results_lost > 0 and context.found.memory is not None),
        *["which memory was whose at the end is not known"] * (not context.found.owners_known),
        *_missing_changes(noted, context.found),
    ]
    if missing:
        warnings.warn(f"memory ran out: {'; '.join(missing)}; record fewer steps at a time (torch.profiler.schedule)", stacklevel=2)
    return session


def _missing_changes(noted: Noted | None, found: Findings) -> list[str]:
    """What is to be said of the changes of memory that were noted."""
    if found.memory_lost or (noted is not None and found.memory is None):
        return ["changes of memory could not be kept"]
    return ["the earliest changes of memory are known by their sum alone"] * (found.memory is not noted)


def _later_memory(memory: Noted | None, records: Records) -> Noted | None:
    """Changes of memory without the earliest quarter, or as much of it as there is memory for; what they come to is kept."""
    if memory is None:
        return None
    for share in (4, 16, 64):
        try:
            times = max(memory.freed.time_ns, memory.made.time_ns, records.results.time_ns, key=len)
            if len(times) >= share:
                return without_early(memory, records.results, int(np.partition(times, len(times) // share)[len(times) // share]))
        except MemoryError:
            continue
    return memory


def _session(records: Records, context: Context) -> Session:
    rows = _in_order(records, context)
    label, labels = _used(records.label[rows], context.found.labels)
    if len(label) and label.min() < 0:  # a slow thread's, from an earlier recording
        rows, label = rows[label >= 0], label[label >= 0]
    changes = None if context.found.memory is None else _changes(context.found.memory, records.results, context)
    if not len(rows) and changes is None:
        return empty_session(context.info)
    track, tracks, memory_track = _all_tracks(records.track[rows], records.start[rows], changes, context)
    # other threads, and the functions around the start and the stop, go on while a recording starts and stops
    start = np.maximum(records.start[rows], context.info.started_ns - context.epoch_ns)
    end = np.minimum(records.end[rows], context.info.stopped_ns - context.epoch_ns)
    weight = np.array([WEIGHTS.get(known.kind, 2) for known in labels], np.int8)[label]
    depth = np.empty(len(rows), np.int32)
    for of_track in tree.groups(track):
        found = tree.nested(start[of_track], end[of_track], weight[of_track])
        start[of_track], end[of_track], depth[of_track] = found
    step_starts, step_numbers = nanoseconds([s for s, _ in context.steps]), np.array([n for _, n in context.steps], np.int32)
    session = Session(
        label=label,
        track=track,
        start_ns=start + context.epoch_ns,
        end_ns=end + context.epoch_ns,
        depth=depth,
        step=step_numbers[np.maximum(np.searchsorted(step_starts, start, side="right") - 1, 0)],
        sequence=records.sequence[rows],
        function_id=None if records.function_id is None else records.function_id[rows],
        labels=labels,
        tracks=tuple(tracks),
        info=context.info,
    )
    session = session.replace(sequence=_sequences(session))
    if records.inputs is not None:
        numbers, table = _used(records.inputs[rows], context.found.inputs)
        session = session.replace(inputs=numbers, input_table=table)
    memory_stack = None
    if records.stack is not None:
        of_changes = np.empty(0, np.int64) if changes is None else changes.stack
        numbers, stacks = _used(np.concatenate([records.stack[rows], of_changes]), context.found.stacks)
        frames = {frame: i for i, frame in enumerate(dict.fromkeys(f for stack in stacks for f in stack))}
        memory_stack = numbers[len(rows) :]
        session = session.replace(
            stack=numbers[: len(rows)],
            frames=tuple(frames),
            stack_table=tuple(tuple(frames[f] for f in stack) for stack in stacks),
        )
    if records.heap is not None:
        before, after = (column[rows] for column in records.heap)
        session = session.replace(heap_before=before, heap_after=after)
    if changes is not None:
        session = _with_memory(session, changes, memory_track, memory_stack, context)
    if changes is not None and records.operands is not None:
        session = session.replace(flow=_data_flow(records, rows, context, changes))
    if context.kinds is None or "memory" in context.kinds:
        session = live_memory.with_rows_of_changes(session, step_starts + context.epoch_ns, step_numbers)
    return session


def _data_flow(records: Records, rows: Column, context: Context, memory: Changes) -> DataFlow:
    assert records.operand_count is not None
    assert records.operands is not None
    assert context.found.roles is not None
    count = records.operand_count[rows]
    first = (np.cumsum(records.operand_count) - records.operand_count)[rows]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    role_time, role_address, role = context.found.roles
    return DataFlow(
        operand_row=np.repeat(np.arange(len(rows)), count),
        operand_address=records.operands[np.repeat(first, count) + within],
        role_time_ns=np.maximum(role_time + context.epoch_ns, context.info.started_ns),
        role_address=role_address,
        role=role,
        held_time_ns=np.full(len(memory.held_address), context.info.started_ns),
        held_address=memory.held_address,
        held_bytes=memory.held_bytes,
        began_ns=np.array([context.info.started_ns]),
    )


def _with_memory(session: Session, changes: Changes, track: Column, stack: Column | None, context: Context) -> Session:
    time_ns = changes.time_ns + context.epoch_ns
    live_bytes = int(changes.held_bytes.sum())
    began = ((session.info.started_ns, live_bytes),)
    total = live_bytes + np.cumsum(changes.size_bytes)
    event = _open_events(session, time_ns, track)
    log = MemoryLog(time_ns, track, changes.address, changes.size_bytes, total, event, stack)
    made = np.unique(log.address[log.size_bytes > 0]).tolist()
    known = {address: context.found.roles_at_end[address] for address in made if address in context.found.roles_at_end}
    roles = Roles(
        np.full(len(known), context.info.stopped_ns),
        np.fromiter(known.keys(), np.int64, len(known)),
        np.fromiter(known.values(), np.int8, len(known)),
    )
    return session.replace(memory=log, roles=roles, info=dataclasses.replace(session.info, live_bytes=began))


def _open_events(session: Session, time_ns: Column, track: Column) -> Column:
    """Row of the innermost event that is open on a track at a time, -1 for none."""
    parent = tree.parents(session)
    found = np.full(len(time_ns), -1, np.int64)
    for of_track in tree.groups(session.track):
        here = np.flatnonzero(track == session.track[of_track[0]])
        last = np.searchsorted(session.start_ns[of_track], time_ns[here], side="right") - 1
        found[here] = np.where(last < 0, -1, of_track[last])
    while (over := (found >= 0) & (session.end_ns[found] < time_ns)).any() if len(session) else False:
        found[over] = parent[found[over]]
    return found


def _all_tracks(numbers: Column, start: Column, changes: Changes | None, context: Context) -> tuple[Column, list[Track], Column]:
    """The tracks of events and of changes of memory, which may come from a thread without events."""
    if changes is None:
        return *_tracks(numbers, start, context), np.empty(0, np.int32)
    numbers, times = np.concatenate([numbers, changes.thread]), np.concatenate([start, changes.time_ns])
    column, tracks = _tracks(numbers, times, context)
    return column[: len(start)], tracks, column[len(start) :]


def _changes(noted: Noted, results: Notes, context: Context) -> Changes:
    """The changes of memory. What other threads do while the recording starts and stops counts, at its first or last moment."""
    changes = changes_of(noted, results)
    first, last = (time_ns - context.epoch_ns for time_ns in (context.info.started_ns, context.info.stopped_ns))
    return changes._replace(time_ns=np.clip(changes.time_ns, first, last))


def _in_order(records: Records, context: Context) -> Column:
    """Rows by start, enclosing events first; without what nobody asked for, and what began after the recording or before it.

    Python functions that ran when the recording started are kept.
    """
    # inner events end first: read backwards, an enclosing event precedes what it encloses even where times are equal
    rows = np.arange(len(records.start))[::-1]
    rows = rows[np.argsort(records.start[::-1], kind="stable")]
    keep = records.start[rows] <= context.info.stopped_ns - context.epoch_ns
    early = np.flatnonzero(records.start[rows] < context.info.started_ns - context.epoch_ns)
    functions = [number for number, label in context.found.labels.items() if label.kind == "python_function"]
    goes_on = records.end[rows[early]] >= context.info.started_ns - context.epoch_ns
    keep[early] &= goes_on & np.isin(records.label[rows[early]], functions)
    if context.kinds is not None:
        modules = context.info.with_modules  # asked for by an argument of their own
        wanted = [n for n, e in context.found.labels.items() if e.kind in context.kinds or (modules and e.module != ())]
        keep &= np.isin(records.label[rows], wanted)
    if context.only_thread is not None:
        mine = [context.only_thread, *[n for n, task in context.found.tasks.items() if task.thread == context.only_thread]]
        keep &= np.isin(records.track[rows], mine)
        # when it has died, its identifier may be given to another
        others = [round(t.since * 1e9) for t in context.found.threads if t.ident == context.only_thread and t.since > 0]
        keep &= records.start[rows] < min(others, default=np.iinfo(np.int64).max)
    return rows[keep]


def _tracks(numbers: Column, start: Column, context: Context) -> tuple[Column, list[Track]]:
    """The track of each row: a task, or the thread that had this identifier then."""
    column = np.empty(len(numbers), np.int32)
    tracks: list[Track] = []
    # a collection that the recorder's own thread set off, with what died then: it was the program's garbage
    own = context.found.recorder_threads - {thread.ident for thread in context.found.threads}
    numbers = np.where(np.isin(numbers, list(own)), context.thread, numbers) if own else numbers
    # numbers that no thread has
    tids = itertools.count(max([thread.native_id for thread in context.found.threads], default=0) + 1)
    lives_of: dict[int, list[tuple[int, Track]]] = {}
    for t in context.found.threads:
        lives_of.setdefault(t.ident, []).append((round(t.since * 1e9), Track(t.native_id, t.native_id, t.name)))
    for rows in reversed(tree.groups(numbers)):
        number = numbers[rows[0]].item()
        if number < 0:
            task = context.found.tasks[number]
            (_, thread), *_ = lives_of.get(task.thread) or [(0, Track(task.thread, task.thread))]
            lives = [(0, Track(next(tids), thread.thread_id, task.name))]
        else:
            # not known to Python's `threading`, whoever started it
            lives = lives_of.get(number) or [(0, Track(number, number, f"thread {number}"))]
        life = np.maximum(np.searchsorted([since for since, _ in lives], start[rows], side="right") - 1, 0)
        for i in np.unique(life).tolist():
            column[rows[life == i]] = len(tracks)
            tracks.append(lives[i][1])
    return column, tracks


def _sequences(session: Session) -> Column:
    """Composite operators get the number of the first node that was made inside."""
    parent = tree.parents(session)
    none = np.iinfo(np.int64).max
    found = np.where(session.sequence < 0, none, session.sequence)
    is_op = np.array([label.kind == "op" for label in session.labels], bool)[session.label]
    for level in reversed(tree.groups(session.depth)[1:]):
        rows = level[found[level] != none]
        around = parent[rows]
        wanting = is_op[around] & (session.sequence[around] < 0)
        np.minimum.at(found, around[wanting], found[rows[wanting]])
    return np.where(found == none, -1, found)


def _used(numbers: Column, table: Mapping[int, Any]) -> tuple[Column, tuple[Any, ...]]:
    """The part of a table that is referred to, and the numbers in it; -1 for what is not in the table."""
    used = np.unique(numbers)
    found = [n in table for n in used.tolist()]
    new = np.where(found, np.cumsum(found) - 1, -1).astype(np.int32)
    return new[np.searchsorted(used, numbers)], tuple(table[n] for n in used.tolist() if n in table)
