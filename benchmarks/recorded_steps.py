"""Training steps, recorded and not: what recording adds, and that the recorded program is the one that runs unrecorded.

Each program has a process of its own, as users run them: in one that has run a dozen others before, memory is in pieces, and recording adds 1.5 times as much
(`translation`, by default: 2.02 ms, and 1.31 in a process of its own). Both sides run the same number of steps in sessions of their own. A session's start, its first step and its stop are not timed. Times are of the
thread on the processor, with garbage collection off.

Whether the recorded program is another one is seen where the operators' functions are compiled as for a recording, without the lines that record, and nothing else of a
recording is on: what the step takes more then is other work.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import mindtorch_v2
from mindtorch_v2._dispatch import dispatcher, keys
from mindtorch_v2.profiler.capture.operators import recorder

from .examples import NAMES, run_example
from .networks import NETWORKS

__all__ = ["OPTIONS", "RecordedStep", "count_events", "profile", "quiet", "steps"]

Step = Callable[[], object]
Program = Callable[[Any, Callable[[], None]], None]  # library, what to call where a step begins
OPTIONS: dict[str, tuple[dict[str, bool], float]] = {
    "by default": ({}, 0.7),
    "with shapes": ({"record_shapes": True}, 1.0),
    "with memory": ({"profile_memory": True}, 1.0),
    "with stacks": ({"with_stack": True}, 1.0),
}
ROUNDS, RUNS = 8, 2  # of chunks in a run, and runs of each library, in turn
CHUNK_SECONDS, LEAST = 0.02, 2  # how long steps of a chunk are timed, and at least how many
ENOUGH = 5000  # steps that an example is asked for; it is stopped when all chunks are timed


def profile(library: Any, **options: bool) -> Any:
    return library.profiler.profile(activities=[library.profiler.ProfilerActivity.CPU], **options)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """torch's profiler writes lines to the standard error that nobody asked for."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def count_events(library: Any, step: Step, **options: bool) -> int:
    with quiet(), profile(library, **options) as prof:
        step()
    return len(prof.events())


# --- measuring ------------------------------------------------------------------------------------------------------


@dataclass
class Samples:
    """Seconds of a step of one library in chunks that took turns: not recorded, and with each of the options."""

    off: list[float] = field(default_factory=list)
    on: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in OPTIONS})
    recordless: list[tuple[float, float]] = field(default_factory=list)  # not recorded, and as if, without any records
    events: int = 0

    def added(self, option: str) -> float:
        """What recording adds: the median over the rounds of the difference between a recorded chunk and the one that was not.

        On a busy machine the difference of the shortest steps of all rounds was negative 6 times in 80, this never; and halves of the rounds
        agreed best by it (3.5 % of a step apart, and 4.2 by the shortest steps).
        """
        return statistics.median(on - off for on, off in zip(self.on[option], self.off, strict=True))

    def added_to_shortest(self, option: str) -> float:
        """The difference of the shortest steps of all rounds, which is shown beside the other answer: the two may be far apart."""
        return min(self.on[option]) - min(self.off)

    def other_work(self) -> float:
        """What a step takes more with the functions of a recording, which do not record."""
        return statistics.median(on - off for off, on in self.recordless)

    def halves(self) -> list[Samples]:
        """Every other chunk, and the rest. How far their answers are apart tells how exact they are."""
        return [Samples(self.off[i::2], {name: times[i::2] for name, times in self.on.items()}) for i in (0, 1)]

    def take(self, library: Any) -> Generator[None]:
        """Fill in. It is to be advanced where a step begins, and holds the profiler between."""
        yield
        yield
        with quiet(), profile(library) as prof:
            yield
        self.events = len(prof.events())
        for _ in range(ROUNDS):
            self.off.append((yield from _chunk()))
            for name, (options, _) in OPTIONS.items():
                with quiet(), profile(library, **options):
                    self.on[name].append((yield from _chunk()))
        if library is mindtorch_v2:
            with _without_records():
                for _ in range(ROUNDS):
                    off = yield from _chunk()
                    dispatcher.activate(keys.PROFILER)
                    try:
                        self.recordless.append((off, (yield from _chunk())))
                    finally:
                        dispatcher.deactivate(keys.PROFILER)


@contextlib.contextmanager
def _without_records() -> Iterator[None]:
    """Compile operators as for a recording, but for the lines that record."""
    dispatcher.unregister_layer(keys.PROFILER)
    dispatcher.register_layer(keys.PROFILER, lambda op, full, body: body)
    try:
        yield
    finally:
        recorder.set_clock(recorder.clock)  # which puts back what belongs there


def _chunk() -> Generator[None, None, float]:
    """The shortest of a few steps, after one that is not timed."""
    yield
    times: list[float] = []
    while len(times) < LEAST or sum(times) < CHUNK_SECONDS:
        began = time.thread_time()
        yield
        times.append(time.thread_time() - began)
    return min(times)


def _measure(program: Program, libraries: tuple[Any, Any]) -> list[Samples]:
    found = [Samples(), Samples()]
    for _ in range(RUNS):
        for library, samples in zip(libraries, found, strict=True):
            turns = samples.take(library)
            gc.collect()
            gc.disable()
            try:
                program(library, turns.__next__)
            except StopIteration:  # all chunks are timed
                pass
            finally:
                turns.close()
                gc.enable()
    return found


def _example(name: str) -> Program:
    return lambda library, begin_step: run_example(library, name, ENOUGH, begin_step)


def _without_onednn(program: Program) -> Program:
    """The same with ATen's own kernels, the ones that profiles are compared with: oneDNN's LSTM is one operator for a layer and all of its steps."""

    def run(library: Any, begin_step: Callable[[], None]) -> None:
        with library.backends.mkldnn.flags(enabled=False):
            program(library, begin_step)

    return run


def _network(make: Callable[[Any], Step]) -> Program:
    def run(library: Any, begin_step: Callable[[], None]) -> None:
        step = make(library)
        while True:
            begin_step()
            step()

    return run


PROGRAMS: dict[str, Program] = {
    **{name: _example(name) for name in NAMES},
    "lstm without oneDNN": _without_onednn(_example("lstm")),
    **{name: _network(make) for name, make in NETWORKS.items()},
}


# --- rows -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordedStep:
    """A program's step under both libraries, ours first."""

    name: str
    samples: list[Samples]

    def cells(self) -> dict[str, str]:
        off = [min(samples.off) for samples in self.samples]
        on = [min(samples.on["by default"]) for samples in self.samples]
        cells = {
            "ours / torch": self.name,
            "step, ms": " / ".join(f"{t * 1e3:.2f}" for t in off),
            "recorded, ms": " / ".join(f"{t * 1e3:.2f}" for t in on),
            "events": " / ".join(f"{samples.events}" for samples in self.samples),
        }
        for option, (_, aim) in OPTIONS.items():
            mine, theirs = (samples.added(option) for samples in self.samples)
            ratio = mine / theirs
            one, other = (ours.added(option) / torchs.added(option) for ours, torchs in self._halves())
            text = f"{ratio:.2f} ({min(one, other):.2f}–{max(one, other):.2f})"
            cells[f"added {option}, µs"] = f"{mine * 1e6:.0f} / {theirs * 1e6:.0f}"
            cells[f"ratio {option} (aim {aim})"] = text if ratio <= aim else f"**{text}**"
            shortest = [samples.added_to_shortest(option) for samples in self.samples]
            cells[f"of the shortest {option}"] = f"{shortest[0] / shortest[1]:.2f}" if min(shortest) > 0 else "below 0"
        cells["other work"] = f"{100 * self.samples[0].other_work() / off[0]:+.1f} %"
        return cells

    def _halves(self) -> Iterator[tuple[Samples, Samples]]:
        return zip(*[samples.halves() for samples in self.samples], strict=True)


def recorded_step(name: str, libraries: tuple[str, str]) -> RecordedStep:
    """What recording adds to a step of this program, with its backward pass and optimizer."""
    multiprocessing.set_start_method("fork", force=True)  # as in a program that was not spawned: loaders start their workers by it
    imported = importlib.import_module(libraries[0]), importlib.import_module(libraries[1])
    return RecordedStep(name, _measure(PROGRAMS[name], imported))


def steps(ours: Any, torch: Any) -> list[RecordedStep]:
    """The steps of each example and of three networks, each in a process of its own."""
    libraries = ours.__name__, torch.__name__
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        return [pool.submit(recorded_step, name, libraries).result() for name in PROGRAMS]
