"""Whole programs with workers: other ways to start them, and ends of all kinds."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import mindtorch_v2 as torch

SOURCE = Path(torch.__file__).parent.parent
SECONDS = 120  # after which a program is taken to hang, and killed

BEGINNING = """
import os, signal, sys, threading, time, warnings
import mindtorch_v2 as torch
from mindtorch_v2.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
warnings.filterwarnings("ignore", "This DataLoader will create")

class Waits(Dataset):
    def __getitem__(self, i):
        if i > 3:
            threading.Event().wait()
        return i

    def __len__(self):
        return 100
"""


@pytest.fixture
def start(tmp_path):
    """Starts a program; when the test ends, the program and its workers are killed."""
    started = []

    def begin(text):
        program = tmp_path / "program.py"
        program.write_text(BEGINNING + textwrap.dedent(text))
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        process = subprocess.Popen(
            [sys.executable, program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
            cwd=tmp_path,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()


@pytest.fixture
def run(start):
    """Runs a program to its end; returns what it prints, and nothing may be on the other output."""

    def finish(text):
        process = start(text)
        out, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, err) == (0, "")
        return out

    return finish


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def assert_end(pids):
    """The processes end, sooner or later; most often at once."""
    deadline = time.monotonic() + SECONDS
    while any(map(is_running, pids)):
        assert time.monotonic() < deadline, "workers go on"
        time.sleep(0.01)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_ways_to_start_workers(run, method):
    printed = run(
        f"""
        class Squares(Dataset):
            def __init__(self):
                self.numbers = torch.arange(5.0)  # goes to the workers through shared memory

            def __getitem__(self, i):
                return self.numbers[i] ** 2, self.numbers.is_shared()

            def __len__(self):
                return 5

        if __name__ == "__main__":
            for squares, inside in DataLoader(Squares(), 2, num_workers=2, multiprocessing_context="{method}"):
                print(squares.tolist(), inside.tolist(), squares.is_shared())
        """
    )
    assert printed.splitlines() == ["[0.0, 1.0] [True, True] True", "[4.0, 9.0] [True, True] True", "[16.0] [True] True"]


def test_a_worker_that_cannot_be_started(run):
    printed = run(
        """
        if __name__ == "__main__":
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    iter(DataLoader(range(4), num_workers=1, multiprocessing_context="spawn", worker_init_fn=lambda i: None))
                except Exception as error:
                    print("pickle" in str(error))
                print([str(w.message)[:63] for w in caught])
        """
    )
    assert printed == "True\n['Got pickle error when attempting to start a worker Process. Thi']\n"


def test_a_program_ends_while_workers_are_at_work(run):
    assert run("batches = iter(DataLoader(Waits(), num_workers=2)); print(next(batches))") == "tensor([0])\n"


def test_a_program_with_persistent_workers_ends(run):
    assert run("loader = DataLoader(range(2), num_workers=2, persistent_workers=True); print(len(list(loader)))") == "2\n"


def test_an_error_in_the_loop_ends_the_program(start):
    process = start("for batch in DataLoader(range(100), num_workers=2): raise ValueError('mine')")
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert err.endswith("ValueError: mine\n")
    assert err.count("Traceback") == 1


PIDS = """
batches = iter(DataLoader(Waits(), num_workers=2))
next(batches)
print(*[worker.pid for worker in batches._workers], flush=True)
list(batches)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_when_their_parent_is_killed(start, number):
    process = start(PIDS.replace("Waits()", "range(10**9)").replace("list(batches)", "threading.Event().wait()"))
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert all(map(is_running, pids))
    process.send_signal(number)
    process.wait(SECONDS)
    assert_end(pids)


def test_ctrl_c_is_the_parent_s(start):
    process = start(PIDS)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it, to workers as well
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == -signal.SIGINT
    assert err.endswith("KeyboardInterrupt\n")
    assert err.count("Traceback") == 1
    assert_end(pids)


def test_ctrl_c_while_a_worker_starts(start):
    process = start(
        """
        forks = []
        os.register_at_fork(before=lambda: forks.append(0), after_in_child=lambda: time.sleep(len(forks) - 1))
        try:
            batches = iter(DataLoader(Waits(), num_workers=2))
            print(next(batches), flush=True)
            list(batches)
        except KeyboardInterrupt:
            time.sleep(2)  # a worker that fails has the time to say so
            raise
        """
    )
    assert process.stdout.readline() == "tensor([0])\n"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == -signal.SIGINT
    assert err.endswith("KeyboardInterrupt\n")
    assert err.count("Traceback") == 1


def test_a_parent_that_goes_on_after_ctrl_c_keeps_its_workers(start):
    process = start(
        """
        signal.signal(signal.SIGINT, lambda number, frame: None)
        batches = iter(DataLoader(range(50), num_workers=2))
        next(batches)
        print("ready", flush=True)
        signal.pause()
        print(len(list(batches)))
        """
    )
    assert process.stdout.readline() == "ready\n"
    while is_running(process.pid) and process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    assert process.communicate(timeout=SECONDS) == ("49\n", "")


def test_a_killed_worker_leaves_nothing_behind(run):
    printed = run(
        """
        import gc

        class Dies(Dataset):
            def __getitem__(self, i):
                if i == 6:
                    os.kill(os.getpid(), signal.SIGKILL)
                return torch.ones(100_000)

            def __len__(self):
                return 100

        def left():
            gc.collect()
            with open("/proc/self/maps") as maps:
                mapped = sum("memfd:mindtorch_v2" in line for line in maps)
            named = sorted(name for name in os.listdir("/dev/shm") if not name.startswith("sem."))  # those are others', too
            return len(os.listdir("/proc/self/fd")), mapped, named

        def load():
            batches = iter(DataLoader(Dies(), num_workers=2, prefetch_factor=4))
            try:
                for batch in batches:
                    pass
            except RuntimeError as error:
                print("exited unexpectedly" in str(error))

        before = left()
        load()
        print(left() == before)
        """
    )
    assert printed == "True\nTrue\n"
