"""What must hold for every recorded program, whatever it does.

`python -m tests.mindtorch_v2.profiler.program_checks [count] [first seed]` runs random programs and prints the seed of each that fails.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mindtorch_v2.profiler import profile, schedule, validate
from mindtorch_v2.profiler.model.recording import Recording
from mindtorch_v2.profiler.model.session import Session
from mindtorch_v2.profiler.model.summary import Summary
from mindtorch_v2.profiler.output.event_list import EventList
from mindtorch_v2.profiler.query import query

from .random_programs import A, Events, LeftError, Part, Paused, Program, Run
from .same_session import as_written, assert_same, read_back, rows, sums


def check_program(seed: int) -> int:
    """Run the program of this seed unrecorded and recorded, and check everything. Returns the number of events."""
    program = Program.of(seed)
    with _deaths_of_threads_are_silent():
        unrecorded = _run(program, None)
        _leave(unrecorded)
        sessions, recorded = _record(program)
    assert recorded.results == unrecorded.results  # bit by bit
    expected = _expected_sessions(program)
    assert len(sessions) == len(expected)
    for session, events in zip(sessions, expected, strict=True):
        _check_names(session, events)
        check_session(session)
    if program.schedule is None:
        _check_counts(sessions[0], recorded, program)
        _check_kept_bytes(sessions[0], recorded, program)
    _leave(recorded)
    return sum(map(len, sessions))


# Running -----------------------------------------------------------------------------------------------------------------------


def _record(program: Program) -> tuple[list[Session], Run]:
    """The sessions that a program gives, and what it left behind."""
    sessions: list[Session] = []
    options = dict(program.options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(warmup|nothing was recorded)")
        if program.schedule is not None:
            options["schedule"] = schedule(**program.schedule)
        profiler = profile(**options, on_trace_ready=lambda p: sessions.append(p.session))
        run = _run(program, profiler)
    return sessions, run


def _run(program: Program, profiler: Any) -> Run:
    program.prepare()
    run = Run(profiler)
    gc.collect()
    with contextlib.nullcontext() if profiler is None else profiler:
        for step in program.steps:
            step.run(run)
            if profiler is not None and program.schedule is not None:
                profiler.step()
        gc.collect()  # exceptions hold tensors in cycles
    return run


def _leave(run: Run) -> None:
    """Finish what a program left open."""
    for generator in run.open:
        generator.close()
    run.open.clear()


@contextlib.contextmanager
def _deaths_of_threads_are_silent() -> Iterator[None]:
    def ignore(arguments: Any) -> None:
        if not issubclass(arguments.exc_type, LeftError):
            usual(arguments)

    usual, threading.excepthook = threading.excepthook, ignore
    try:
        yield
    finally:
        threading.excepthook = usual


# What programs say -------------------------------------------------------------------------------------------------------------


def _expected_sessions(program: Program) -> list[Events]:
    """The events of each session that is handed over, by track."""
    if program.schedule is None:
        return [_expected(program.steps, None)]
    steps: list[Part] = [*program.steps, Part()]  # one more begins where the last ends
    cycles = [[(number, steps[number]) for number in cycle] for cycle in recorded_steps(len(steps), **program.schedule)]
    if program.options.get("acc_events"):
        cycles = [[step for cycle in cycles[: at + 1] for step in cycle] for at in range(len(cycles))]
    return [_expected([part for _, part in cycle], [number for number, _ in cycle]) for cycle in cycles]


def _expected(steps: list[Any], numbers: list[int] | None) -> Events:
    events: Events = defaultdict(list)
    for at, step in enumerate(steps):
        if numbers is not None:
            events["MainThread"].append(f"ProfilerStep#{numbers[at]}")
        step.expected("MainThread", events)
    return {track: names for track, names in events.items() if names}


def recorded_steps(count: int, *, wait: int, warmup: int, active: int, repeat: int, skip_first: int) -> list[list[int]]:
    """The steps of each cycle that are recorded, of so many."""
    cycles: dict[int, list[int]] = {}
    for step in range(skip_first, count):
        cycle, at = divmod(step - skip_first, wait + warmup + active)
        if at >= wait + warmup and (repeat == 0 or cycle < repeat):
            cycles.setdefault(cycle, []).append(step)
    return list(cycles.values())


def _check_names(session: Session, expected: Events) -> None:
    """Every operator and scope once, on its track, in its order."""
    found: Events = {}
    for label, track in zip(session.label.tolist(), session.track.tolist(), strict=True):
        if session.labels[label].kind in ("op", "scope"):
            found.setdefault(session.tracks[track].name, []).append(session.labels[label].name)
    assert set(found) == set(expected), (set(found), set(expected))
    for track, names in expected.items():
        assert found[track] == names, f"{track}: {_difference(found[track], names)}"


def _difference(found: list[str], wanted: list[str]) -> str:
    at = next((i for i, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), min(len(found), len(wanted)))
    return f"after {found[max(0, at - 5) : at]} comes {found[at : at + 8]}, not {wanted[at : at + 8]}"


def _check_counts(session: Session, run: Run, program: Program) -> None:
    """Functions and modules are there as often as they were called."""
    if any(isinstance(part, Paused) for part in program.all_parts()):
        return
    names = Counter(session.labels[i].name for i in session.label.tolist())
    if session.info.with_stack:
        assert sum(n for name, n in names.items() if name.endswith(": helper")) == run.functions
    if session.info.with_stack or session.info.with_modules:
        assert sum(n for name, n in names.items() if name.startswith("nn.Module: Doubling")) == run.modules


def _check_kept_bytes(session: Session, run: Run, program: Program) -> None:
    """What lives at the end of a program is what it kept."""
    if session.memory is None or any(isinstance(part, Paused) for part in program.all_parts()):
        return
    made = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in run.kept}
    made.pop(A.untyped_storage().data_ptr(), None)  # was there before
    assert int(session.memory.size_bytes.sum()) == sum(made.values())


# What holds for every session --------------------------------------------------------------------------------------------------


def check_session(session: Session) -> None:
    """All that can be checked of a session without its program."""
    check_nesting(session)
    check_sums(session)
    check_memory(session)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session.save(folder / "run.session")
        assert_same(Session.load(folder / "run.session"), session)
        check_trace(session, folder)


def check_nesting(session: Session) -> None:
    """Slices of a track are disjoint or inside of each other, as deep as their depth says."""
    open_until: dict[int, list[int]] = {}
    columns = (session.track, session.start_ns, session.end_ns, session.depth)
    assert (np.diff(session.start_ns) >= 0).all()
    for track, start, end, depth in zip(*(column.tolist() for column in columns), strict=True):
        around = open_until.setdefault(track, [])
        assert start <= end
        assert depth <= len(around)
        del around[depth:]
        assert not around or end <= around[-1]
        around.append(end)
    for number in set(session.track.tolist()):
        mine = session.track == number
        for depth in range(int(session.depth[mine].max()) + 1):
            at = mine & (session.depth == depth)
            assert (session.end_ns[at][:-1] <= session.start_ns[at][1:]).all()


def check_sums(session: Session) -> None:
    """Self times, totals and counts are sums of each other, and the parts of the wall time are the whole."""
    recording = Recording(session)
    self_ns = recording.without_children(recording.cpu_ns)
    assert (self_ns >= 0).all()
    assert self_ns.sum() == recording.cpu_ns[session.depth == 0].sum()
    events = EventList.of(session)
    kinds = {e["kind"] for e in events}
    for e in events:
        children = list(e.cpu_children)
        assert all(child.cpu_parent is e for child in children)
        own = e["duration_ns"] - sum(child["duration_ns"] for child in children)
        assert own >= 0
        if "python_function" not in kinds:  # those inside an operator leave their time to it
            assert round(e.self_cpu_time_total * 1000) == own
    for made in (events.key_averages(), EventList.averages_of(session)):
        assert Counter({row.key: row.count for row in made}) == Counter(e.key for e in events)
        totals: Counter[str] = Counter()
        for e in events:
            totals[e.key] += e["duration_ns"]
        for row in made:
            assert round(row.cpu_time_total * 1000) == totals[row.key]
    summary = Summary.of(session)
    assert sum(summary.parts.values()) == summary.wall_ns
    assert min(summary.parts.values()) >= 0
    (asked,) = query(session, "select count(*), coalesce(sum(duration_ns), 0), coalesce(sum(self_ns), 0) from events").rows
    assert tuple(asked) == (len(session), int((session.end_ns - session.start_ns).sum()), int(self_ns.sum()))


def check_memory(session: Session) -> None:
    """Changes of memory sum up to the bytes that live, and nothing is freed that does not live."""
    log = session.memory
    if log is None:
        return
    assert (np.diff(log.time_ns) >= 0).all()
    assert (log.total_bytes >= 0).all()
    began = [time_ns for time_ns, _ in session.info.live_bytes]
    part = np.searchsorted(began, log.time_ns, side="right") - 1
    assert (part >= 0).all()
    for number, (_, live) in enumerate(session.info.live_bytes):
        mine = part == number
        assert (log.total_bytes[mine] == live + np.cumsum(log.size_bytes[mine])).all()
        alive: dict[int, int] = {}
        for address, size in zip(log.address[mine].tolist(), log.size_bytes[mine].tolist(), strict=True):
            if size < 0:
                assert alive.pop(address, -size) == -size
            else:
                assert address not in alive
                alive[address] = size


def check_trace(session: Session, folder: Path) -> None:
    """The trace is valid, and opened it is the same recording."""
    found = read_back(session, folder)
    assert validate(folder / "trace.json") == []
    wanted = as_written(session)
    assert rows(found) == rows(wanted)
    assert sums(found) == sums(wanted)
    assert (found.memory is None) == (session.memory is None or not len(session.memory.event))
    if session.memory is not None and found.memory is not None:
        for name in ("time_ns", "address", "size_bytes", "total_bytes"):
            assert getattr(found.memory, name).tolist() == getattr(session.memory, name).tolist()


def main(count: int, first: int) -> int:
    failed, events, began = [], 0, time.process_time()
    gc.freeze()  # what was imported need not be looked at in each of the collections
    for seed in range(first, first + count):
        try:
            events += check_program(seed)
        except Exception:
            failed.append(seed)
            print(f"program {seed}", traceback.format_exc(limit=-4), sep="\n", flush=True)
        if (seed - first) % 100 == 99:
            print(f"{seed - first + 1:,} programs", flush=True)
    print(
        f"{count:,} programs, {events:,} events, {time.process_time() - began:.0f} s of processor: {len(failed)} failed {failed[:20]}"
    )
    return bool(failed)


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*(arguments + [100, 0][len(arguments) :])))
