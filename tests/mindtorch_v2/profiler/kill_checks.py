"""Spooled recordings that are killed at a random moment, in a random way: what is in their files is what their programs did.

`python -m tests.mindtorch_v2.profiler.kill_checks [count] [first seed]` runs so many, and prints the seed of each that fails.

A program runs operators in several threads, each a sequence that its seed says, and notes the time after each in a file that is mapped into memory, which
survives the process.
"""

from __future__ import annotations

import _thread
import ctypes
import faulthandler
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.model.session import Session
from mindtorch_v2.profiler.opening import open_recording

from .program_checks import check_memory, check_nesting

PROMISE_S = 1.0  # what may be lost
MOST = 200_000  # operators of a thread
IN_SCOPE = 10  # operators

OPERATORS: dict[str, Callable[[Any], Any]] = {
    "aten::add": lambda x: x + x,
    "aten::mul": lambda x: x * x,
    "aten::exp": lambda x: x.exp(),
    "aten::mm": lambda x: x.mm(x),
    "aten::relu": lambda x: x.relu(),
}
ENDS: dict[str, Callable[[], object]] = {
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGTERM": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "os._exit": lambda: os._exit(3),
    "abort": os.abort,
    "segmentation fault": lambda: ctypes.string_at(0),
    "another process": lambda: None,  # sends SIGKILL
}
WHY = ("its process was killed, crashed or left by os._exit", "the recording was ended before anything was written")
FLAGS = ("record_shapes", "with_stack", "profile_memory", "with_modules")


@dataclass(frozen=True)
class Killed:
    """What a seed stands for."""

    seed: int
    threads: int
    options: dict[str, bool]
    end: str
    after_s: float

    @classmethod
    def of(cls, seed: int) -> Killed:
        chooser = random.Random(seed)
        options = {flag: chooser.random() < 0.5 for flag in FLAGS}
        return cls(seed, chooser.randint(1, 4), options, chooser.choice(list(ENDS)), chooser.uniform(0.1, 2.5))

    def operators(self, thread: int) -> Iterator[tuple[str, int]]:
        """Names of the operators of a thread, and the sizes of their operands."""
        chooser = random.Random(f"{self.seed} {thread}")
        while True:
            yield chooser.choice(list(OPERATORS)), chooser.choice((1, 2, 3, 8, 100))


# The program that is killed ----------------------------------------------------------------------------------------------------


def name_of(thread: int) -> str:
    return f"worker {thread}"


def noted(folder: Path, thread: int, mode: Any) -> Any:
    return np.memmap(folder / f"times-{thread}", np.float64, mode, shape=(MOST,))


def work(killed: Killed, thread: int, times: Any) -> None:
    operands = {size: torch.ones(size, size) for size in (1, 2, 3, 8, 100)}
    chooser = random.Random(thread)
    operators = enumerate(itertools.islice(killed.operators(thread), MOST))
    for scope in range(MOST // IN_SCOPE):
        with record_function(f"scope {scope}"):
            for at, (name, size) in itertools.islice(operators, IN_SCOPE):
                OPERATORS[name](operands[size])
                times[at] = time.monotonic()
        if chooser.random() < 0.05:
            time.sleep(chooser.random() / 100)


def run_and_die(killed: Killed, folder: Path) -> None:
    """Record until the end comes."""

    def end() -> None:
        time.sleep(killed.after_s)
        ENDS[killed.end]()

    faulthandler.disable()
    times = [noted(folder, thread, "r+") for thread in range(killed.threads)]
    recording = profile(spool=folder / "run.spool", **killed.options)
    recording.start()
    workers = [
        threading.Thread(target=work, args=(killed, thread, times[thread]), name=name_of(thread))
        for thread in range(killed.threads)
    ]
    for worker in workers:
        worker.start()
    print("recording", flush=True)
    _thread.start_new_thread(end, ())
    for worker in workers:
        worker.join()
    os._exit(4)  # it was too slow to die


# What is left ------------------------------------------------------------------------------------------------------------------


def check_killed(seed: int) -> tuple[int, float]:
    """Run the program of this seed, kill it, and check what is left: its number of operators, and the seconds that were lost at most."""
    killed = Killed.of(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for thread in range(killed.threads):
            noted(folder, thread, "w+")
        _run(killed, folder)
        times = [np.array(noted(folder, thread, "r")) for thread in range(killed.threads)]
        if not os.path.exists(folder / "run.spool"):
            raise AssertionError("there is no file")
        session = open_recording(folder / "run.spool").session
    assert any(why in session.info.ended for why in WHY), session.info.ended
    check_nesting(session)
    check_memory(session)
    lost = max(_check_thread(session, killed, thread, times[thread], max(map(np.max, times))) for thread in range(killed.threads))
    operators = sum(session.labels[i].kind == "op" for i in session.label.tolist())
    return operators, lost


def _run(killed: Killed, folder: Path) -> None:
    command = [sys.executable, "-m", __name__ if __name__ != "__main__" else f"{__package__}.kill_checks"]
    process = subprocess.Popen([*command, "run", str(killed.seed), folder], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"recording\n"
        if killed.end == "another process":
            time.sleep(killed.after_s)
            process.kill()
        status = process.wait(60)
    wanted = {"SIGTERM": -15, "os._exit": 3, "abort": -6, "segmentation fault": -11}.get(killed.end, -9)
    assert status == wanted, status


def _check_thread(session: Session, killed: Killed, thread: int, times: Any, end: float) -> float:
    """Check the events of a thread; the seconds before the end from which on operators are missing."""
    tracks = [i for i, track in enumerate(session.tracks) if track.name == name_of(thread)]
    mine = np.flatnonzero(np.isin(session.track, tracks)).tolist()
    operators = [row for row in mine if session.labels[session.label[row]].kind == "op"]
    made = list(itertools.islice(killed.operators(thread), len(operators)))
    first = next((i for i, row in enumerate(operators) if session.labels[session.label[row]].name != "aten::ones"), len(operators))
    setup, operators = operators[:first], operators[first:]
    assert [session.labels[session.label[row]].name for row in operators] == [name for name, _ in made[: len(operators)]]
    assert len(setup) <= 5
    assert (np.diff(session.end_ns[operators]) >= 0).all()
    scopes = [session.labels[session.label[row]].name for row in mine if session.labels[session.label[row]].kind == "scope"]
    assert scopes == [f"scope {i}" for i in range(len(scopes))]
    assert len(operators) >= len(scopes) * IN_SCOPE
    if killed.options["record_shapes"]:
        for row, (_, size) in zip(operators, made, strict=False):
            assert session.input_table[session.inputs[row]][0].shape == (size, size)
    if killed.options["with_stack"]:
        for row in operators:
            (place, *_) = session.stack_table[session.stack[row]]
            assert session.frames[place].function == "<lambda>"
    count = int(np.count_nonzero(times))
    assert len(operators) <= count + 1, "more than were made"  # the last may not have been noted
    lost = float(end - times[len(operators)]) if len(operators) < count else 0.0
    assert lost <= PROMISE_S, f"operators of the last {lost:.2f} s are missing"
    return lost


def main(count: int, first: int) -> int:
    failed, operators, lost = [], 0, [0.0]
    for seed in range(first, first + count):
        try:
            found, missing = check_killed(seed)
            operators += found
            lost.append(missing)
        except Exception:
            failed.append(seed)
            print(Killed.of(seed), traceback.format_exc(limit=-3), sep="\n", flush=True)
        if (seed - first) % 20 == 19:
            print(f"{seed - first + 1} kills, {max(lost):.2f} s lost at most", flush=True)
    print(
        f"{count} kills, {operators:,} operators, {np.median(lost):.2f} s lost in the median, {max(lost):.2f} s at most: {len(failed)} failed {failed[:20]}"
    )
    return bool(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run_and_die(Killed.of(int(sys.argv[2])), Path(sys.argv[3]))
    numbers = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*(numbers + [20, 0][len(numbers) :])))
