"""torch.multiprocessing: the standard module's names, tensors in shared memory, and `spawn`."""

import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch

mp = torch.multiprocessing
SOURCE = Path(torch.__file__).parent.parent
SECONDS = 120  # after which a program is taken to hang, and killed

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def run(tmp_path, text, *, status=0):
    """Run a program, and return what it prints."""
    program = tmp_path / "program.py"
    program.write_text("import mindtorch_v2 as torch\nimport mindtorch_v2.multiprocessing as mp\n" + text)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-W", "error", program], capture_output=True, text=True, env=environment, timeout=SECONDS, cwd=tmp_path
    )
    assert done.returncode == status, done.stderr
    return done.stdout


def test_the_names_are_those_of_the_standard_module():
    assert set(multiprocessing.__all__) <= set(mp.__all__)
    assert mp.Process is multiprocessing.Process
    assert all(hasattr(mp, name) for name in mp.__all__)


def test_sharing_strategies():
    assert mp.get_sharing_strategy() == "file_descriptor"
    for strategy in mp.get_all_sharing_strategies():
        mp.set_sharing_strategy(strategy)
        assert mp.get_sharing_strategy() == strategy
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError, match="invalid sharing strategy 'carrier pigeon', expected one of"):
        mp.set_sharing_strategy("carrier pigeon")


def test_received_tensors_take_no_descriptors_as_file_system(tmp_path):
    printed = run(
        tmp_path,
        """
import os
def send(queue, arrived):
    for i in range(50):
        queue.put(torch.full((10,), float(i)))
        arrived.get()  # what is on its way takes a descriptor
def receive(queue, arrived):
    kept, before = [], len(os.listdir("/proc/self/fd"))
    process = mp.Process(target=send, args=(queue, arrived))
    process.start()
    for _ in range(50):
        kept.append(queue.get())
        arrived.put(True)
    process.join()
    assert [int(t[0]) for t in kept] == list(range(50))
    assert all(t.is_shared() for t in kept)
    print(len(os.listdir("/proc/self/fd")) - before >= 50)
if __name__ == "__main__":
    for strategy in ("file_descriptor", "file_system"):
        mp.set_sharing_strategy(strategy)
        receive(mp.SimpleQueue(), mp.SimpleQueue())
""",
    )
    assert printed.split() == ["True", "False"]


def test_a_tensor_in_a_queue_is_the_same_memory(tmp_path):
    printed = run(
        tmp_path,
        """
def answer(requests, answers):
    x, view = requests.get()
    x[0] = 5                    # seen by the sender
    answers.put((x, view, torch.nn.Parameter(torch.ones(2))))
    requests.get()              # until the receiver has it

if __name__ == "__main__":
    for method in ("fork", "spawn"):
        context = mp.get_context(method)
        requests, answers = context.Queue(), context.Queue()
        process = context.Process(target=answer, args=(requests, answers), daemon=True)
        process.start()
        x = torch.zeros(4)
        requests.put((x, x[2:]))
        again, view, parameter = answers.get(timeout=60)
        again[1] = 6
        view[0] = 7
        print(x.tolist(), x.is_shared(), again.data_ptr() == x.data_ptr(), type(parameter).__name__, parameter.requires_grad)
        requests.put(None)
        process.join(60)
        print(process.exitcode)
""",
    )
    assert printed == "[5.0, 6.0, 7.0, 0.0] True True Parameter True\n0\n" * 2


def test_a_computed_tensor_is_refused():
    x = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        multiprocessing.reduction.ForkingPickler.dumps(x)


def test_empty_tensors_go_along(tmp_path):
    printed = run(
        tmp_path,
        """
def send(queue):
    queue.put(torch.empty(0, 3))

if __name__ == "__main__":
    context = mp.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=send, args=(queue,))
    process.start()
    print(tuple(queue.get(timeout=60).shape))
    process.join(60)
""",
    )
    assert printed == "(0, 3)\n"


def test_spawn_runs_a_function_in_processes(tmp_path):
    printed = run(
        tmp_path,
        """
def fill(i, x):
    x[i] = i + 1

if __name__ == "__main__":
    x = torch.zeros(2).share_memory_()
    mp.spawn(fill, (x,), nprocs=2)
    print(x.tolist())
""",
    )
    assert printed == "[1.0, 2.0]\n"


def test_the_first_error_ends_all(tmp_path):
    printed = run(
        tmp_path,
        """
import os, signal, time

def fail(i):
    if i == 1:
        raise ValueError("no good")
    time.sleep(1000)

def die(i):
    os.kill(os.getpid(), signal.SIGKILL)

def leave(i):
    os._exit(3)

if __name__ == "__main__":
    for function, count in ((fail, 2), (die, 1), (leave, 1)):
        try:
            mp.start_processes(function, nprocs=count, start_method="fork")
        except mp.spawn.__globals__["ProcessException"] as error:
            print(type(error).__name__, error.error_index, str(error).strip().splitlines()[0], str(error).strip().splitlines()[-1])
""",
    )
    assert printed.splitlines() == [
        "ProcessRaisedException 1 -- Process 1 terminated with the following error: ValueError: no good",
        "ProcessExitedException 0 process 0 terminated with signal SIGKILL process 0 terminated with signal SIGKILL",
        "ProcessExitedException 0 process 0 terminated with exit code 3 process 0 terminated with exit code 3",
    ]


def test_another_start_method_is_warned_of():
    with pytest.warns(FutureWarning, match=r"only supports start_method=spawn \(got: fork\)"):
        mp.spawn(print, nprocs=0, start_method="fork")


def test_its_exceptions_can_be_pickled():
    error = pickle.loads(pickle.dumps(mp.ProcessExitedException("gone", 1, 23, -9, "SIGKILL")))
    assert (str(error), error.error_index, error.error_pid, error.exit_code, error.signal_name) == ("gone", 1, 23, -9, "SIGKILL")
