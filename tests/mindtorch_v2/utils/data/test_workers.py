"""Loaders with worker processes: the same batches, errors that come through, ends that are noticed, nothing left behind."""

import gc
import os
import random
import signal
import threading

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

SECONDS = 60  # after which a test is taken to hang; its workers end with their iterator

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),  # on a machine with one processor
]


@pytest.fixture(autouse=True)
def limit():
    def give_up(number, frame):
        raise TimeoutError(f"the test runs for more than {SECONDS} seconds")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No process (not even a zombie), descriptor or shared memory is left by a test, and no name in /dev/shm."""
    gc.collect()
    (descriptors, *before), before_children = left(), children()
    yield
    gc.collect()
    (descriptors_now, *now), now_children = left(), children()
    assert (now, now_children) == (before, before_children)
    assert descriptors_now <= descriptors  # one that an earlier test left may be closed meanwhile


def children():
    """The processes that this one has started, with those that have ended and were not waited for."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as status:
                if int(status.read().rpartition(")")[2].split()[1]) == os.getpid():
                    found.add(int(pid))
        except OSError:
            pass
    return found


def left():
    with open("/proc/self/maps") as maps:
        mapped = sum("memfd:mindtorch_v2" in line for line in maps)
    # other processes have semaphores there, too; Python keeps account of this one's
    named = sorted(name for name in os.listdir("/dev/shm") if not name.startswith("sem."))
    return len(os.listdir("/proc/self/fd")), mapped, named


def loader(dataset, *args, **options):
    return DataLoader(dataset, *args, **{"num_workers": 2, "multiprocessing_context": "fork", **options})


class Calls(Dataset):
    """Samples that a function gives."""

    def __init__(self, function, n=8):
        self.function, self.n = function, n

    def __getitem__(self, i):
        return self.function(i)

    def __len__(self):
        return self.n


class Stream(IterableDataset):
    """A range, of which each worker has every so many."""

    def __init__(self, n, told=None):
        self.n, self.told = n, told

    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id, self.n, info.num_workers))

    def __len__(self):
        return self.told or self.n


def lists(batches):
    return [batch.tolist() for batch in batches]


# --- batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_batches_come_in_order(workers):
    assert lists(loader(range(11), 2, num_workers=workers)) == lists(DataLoader(range(11), 2))


def test_the_order_is_that_without_workers():
    torch.manual_seed(5)
    with_workers = lists(loader(range(20), 3, shuffle=True))
    after = torch.rand(1).item()
    torch.manual_seed(5)
    assert lists(DataLoader(range(20), 3, shuffle=True)) == with_workers
    assert torch.rand(1).item() == after


def test_samples_without_batches():
    assert list(loader(["a", "b", "c"], batch_size=None)) == ["a", "b", "c"]


def test_streams_are_divided():
    assert lists(loader(Stream(7), 2)) == [[0, 2], [1, 3], [4, 6], [5]]
    assert sorted(loader(Stream(9), None, num_workers=3)) == list(range(9))
    assert lists(loader(Stream(1), 2)) == [[0]]


def test_a_stream_longer_than_it_said_is_warned_of():
    batches = loader(Stream(4, told=1), None)
    assert len(batches) == 1
    with pytest.warns(UserWarning, match="For multiprocessing data-loading, this could be caused by not properly configuring"):
        list(batches)


@pytest.mark.parametrize("in_order", [True, False])
def test_batches_as_they_are_ready(in_order):
    """The first batch waits for a worker that waits for the second batch to be given out."""
    gate = torch.multiprocessing.get_context("fork").Event()

    def sample(i):
        if i == 0 and not in_order:
            gate.wait(SECONDS)
        return i

    got = []
    for batch in loader(Calls(sample, 4), in_order=in_order):
        got.append(batch.item())
        gate.set()
    assert got == [0, 1, 2, 3] if in_order else got[0] != 0
    assert sorted(got) == [0, 1, 2, 3]


def test_persistent_workers_stay():
    batches = loader(Calls(lambda i: os.getpid(), 4), persistent_workers=True)
    first = lists(batches)
    assert lists(batches) == first
    next(iter(batches))  # an epoch that is given up
    assert lists(batches) == first
    assert len({pid for (pid,) in first}) == 2
    streams = loader(Stream(4), None, persistent_workers=True)
    assert sorted(streams) == sorted(streams) == [0, 1, 2, 3]


def test_new_workers_for_each_epoch_otherwise():
    batches = loader(Calls(lambda i: os.getpid(), 2))
    assert not {p for (p,) in lists(batches)} & {p for (p,) in lists(batches)}


def test_many_long_messages_do_not_block_each_other():
    """Neither indices nor batches fit into what the system keeps of a socket."""
    indices = [[0] * 2_000] * 200
    batches = loader(Calls(lambda i: "long"), batch_sampler=indices, prefetch_factor=100, collate_fn="".join)
    assert {len(batch) for batch in batches} == {8_000}
    assert {len(batch) for batch in loader(["long" * 10_000] * 60, None, prefetch_factor=30)} == {40_000}


def test_many_short_messages_do_not_block_each_other():
    assert lists(loader(range(1_500), prefetch_factor=700)) == [[i] for i in range(1_500)]


# --- workers ----------------------------------------------------------------------------------------------------------


def test_a_worker_knows_itself():
    def describe(i):
        info = get_worker_info()
        return info.id, info.num_workers, info.seed, type(info.dataset).__name__, info.worker_method

    torch.manual_seed(1)
    base = torch.empty((), dtype=torch.int64).random_().item()
    torch.manual_seed(1)
    samples = list(loader(Calls(describe, 2), None, collate_fn=lambda sample: sample))
    assert samples == [(0, 2, base, "Calls", "multiprocessing"), (1, 2, base + 1, "Calls", "multiprocessing")]


def test_workers_draw_numbers_of_their_own():
    draw = Calls(lambda i: (torch.rand(1).item(), random.random(), float(np.random.rand())), 2)
    torch.manual_seed(1)
    first = list(loader(draw, None))
    second = list(loader(draw, None))
    assert len({x for sample in first + second for x in sample}) == 12
    torch.manual_seed(1)
    assert list(loader(draw, None)) == first


def test_a_function_prepares_each_worker():
    def prepare(worker_id):
        get_worker_info().dataset.n = 100 + worker_id

    data = Calls(lambda i: get_worker_info().dataset.n, 2)
    assert lists(loader(data, worker_init_fn=prepare)) == [[100], [101]]
    assert data.n == 2


def test_workers_use_one_thread():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        (inside,) = loader(Calls(lambda i: torch.get_num_threads(), 1), None, num_workers=1)
    finally:
        torch.set_num_threads(before)
    assert inside == 1


def test_a_profile_belongs_to_the_parent():
    def sample(i):
        with profile() as inside:  # one profiler runs at a time: that of the parent does not run here
            torch.ones(1) + 1
        return len([e for e in inside.events() if e.name == "aten::add"])

    with profile() as prof:
        assert lists(loader(Calls(sample, 4), 2)) == [[1, 1], [1, 1]]
    names = [e.name for e in prof.events()]
    assert names.count("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__") == 3
    assert "aten::stack" not in names
    assert "aten::add" not in names


def test_locks_that_another_thread_holds_are_no_obstacle():
    generator = torch.default_generator
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with generator._lock:
            entered.set()
            leave.wait(SECONDS)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(SECONDS)
    own = torch.Generator().manual_seed(0)  # the default one is held
    try:
        got = lists(loader(Calls(lambda i: torch.rand(1), 2), generator=own))
    finally:
        leave.set()
        thread.join()
    assert len(got) == 2


# --- memory -----------------------------------------------------------------------------------------------------------


def test_tensors_come_through_shared_memory():
    rows = TensorDataset(torch.arange(200_000.0).reshape(4, -1), torch.arange(4))
    files = len(os.listdir("/proc/self/fd"))
    batches = list(loader(rows, 2))
    assert len(os.listdir("/proc/self/fd")) == files  # none of them keeps a file open
    for i, (row, label) in enumerate(batches):
        assert row.is_shared()
        assert label.is_shared()
        assert label.tolist() == [2 * i, 2 * i + 1]
        assert torch.equal(row, rows.tensors[0][2 * i : 2 * i + 2])


def test_the_memory_of_a_large_tensor_is_freed_with_it():
    (large, other, small), *_ = list(loader(Calls(lambda i: (torch.zeros(50_000), torch.ones(60_000), torch.ones(2)), 1)))
    before = left()[1]
    del large
    assert left()[1] == before - 1
    assert other.sum() == 60_000
    assert small.tolist() == [[1, 1]]
    del other, small
    assert left()[1] == before - 3


def test_tensors_keep_what_they_are():
    shared = torch.arange(4).share_memory_()

    def sample(i):
        whole = torch.arange(6.0).reshape(2, 3)
        return {
            "transposed": whole.t(),
            "part": torch.arange(1e6)[5:7],
            "same": (whole, whole.view(6)),
            "leaf": torch.ones(2, requires_grad=True),
            "parameter": torch.nn.Parameter(torch.ones(1)),
            "empty": torch.empty(0, 2),
            "sparse": torch.eye(2).to_sparse(),
            "bfloat16": torch.ones(2, dtype=torch.bfloat16),
            "shared": shared[2:],
            "many": [torch.full((20_000,), float(k)) for k in range(20)],
            "array": np.arange(3),
        }

    (got,) = loader(Calls(sample, 1), None, collate_fn=lambda sample: sample)
    assert got["transposed"].stride() == (1, 3)
    assert got["part"].tolist() == [5, 6]
    assert got["part"].untyped_storage().nbytes() == 8  # and not the other million
    whole, flat = got["same"]
    flat[0] = 9
    assert whole[0, 0] == 9
    assert got["leaf"].requires_grad
    assert isinstance(got["parameter"], torch.nn.Parameter)
    assert got["empty"].shape == (0, 2)
    assert got["sparse"].to_dense().tolist() == [[1, 0], [0, 1]]
    assert got["bfloat16"].dtype is torch.bfloat16
    assert [t[0].item() for t in got["many"]] == list(range(20))
    got["shared"][0] = 77
    assert shared.tolist() == [0, 1, 77, 3]


# --- errors -----------------------------------------------------------------------------------------------------------


class TwoArgumentsError(Exception):
    def __init__(self, first, second):
        super().__init__(first, second)


def raises(error):
    def sample(i):
        if i == 1:
            raise error
        return i

    return Calls(sample, 3)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ValueError("no good"), ValueError, "Caught ValueError in DataLoader worker process 1.\nOriginal Traceback"),
        (KeyError("key"), KeyError, "Caught KeyError in DataLoader worker process 1.\nOriginal Traceback"),
        (TwoArgumentsError(1, 2), RuntimeError, "Caught TwoArgumentsError in DataLoader worker process 1.\nOriginal Traceback"),
        (StopIteration(), StopIteration, "Caught StopIteration in DataLoader worker process 1.\nOriginal Traceback"),
        (type("Local", (Exception,), {})("local"), RuntimeError, "Caught RuntimeError in DataLoader worker process 1.\nOriginal "),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_error_comes_through(error, kind, text):
    batches = iter(loader(raises(error)))
    assert next(batches).item() == 0
    with pytest.raises(kind) as caught:
        next(batches)
    assert type(caught.value) is kind
    assert str(caught.value).startswith(text)
    assert "in sample" in str(caught.value)  # the place in the data set
    assert next(batches).item() == 2  # and the rest can still be had


def test_what_cannot_be_sent_is_an_error():
    with pytest.raises(Exception, match=r"Caught .* in DataLoader worker process 0"):
        next(iter(loader(Calls(lambda i: lambda: i, 1), None)))
    computed = Calls(lambda i: torch.ones(2, requires_grad=True) * 2, 1)
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        next(iter(loader(computed, None)))


class Unwilling:
    """Can be pickled, and not be made again."""

    def __reduce__(self):
        return (int, ("no number",))


def test_what_cannot_be_received_is_the_error_of_its_batch_alone():
    batches = iter(loader(Calls(lambda i: Unwilling() if i == 1 else i, 4), None, collate_fn=lambda sample: sample))
    assert next(batches) == 0
    with pytest.raises(ValueError, match="Caught ValueError while an object of another process was received"):
        next(batches)
    assert list(batches) == [2, 3]


def test_an_index_that_cannot_be_received_is_the_error_of_its_batch():
    batches = iter(loader(range(4), None, sampler=[0, Unwilling(), 2]))
    assert next(batches) == 0
    with pytest.raises(ValueError, match="no number"):
        next(batches)
    assert list(batches) == [2]


def test_an_error_while_a_worker_starts():
    def prepare(worker_id):
        raise OSError("no file")

    with pytest.raises(OSError, match="Caught OSError in DataLoader worker process 0") as caught:
        next(iter(loader(range(4), worker_init_fn=prepare)))
    assert "OSError: no file" in str(caught.value)


def killed(i):
    if i == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return i


def test_a_killed_worker_is_reported():
    batches = iter(loader(Calls(killed, 6)))
    assert next(batches).item() == 0
    pid = batches._workers[0].pid
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid\(s\) {pid}\) exited unexpectedly") as caught:
        list(batches)
    assert str(caught.value.__cause__) == f"DataLoader worker (pid {pid}) is killed by signal: Killed. "
    del caught  # its frames have the iterator


def test_the_other_workers_go_on():
    batches = iter(loader(Calls(killed, 6)))
    got = []
    for _ in range(8):
        try:
            got.append(next(batches).item())
        except RuntimeError:
            pass
        except StopIteration:
            break
    assert got[0] == 0
    assert set(got) >= {1, 3}
    assert 2 not in got


def test_a_worker_that_leaves_is_reported():
    with pytest.raises(RuntimeError, match="exited unexpectedly") as caught:
        list(loader(Calls(lambda i: os._exit(3))))
    assert "exited unexpectedly with exit code 3. Details are lost due to multiprocessing." in str(caught.value.__cause__)
    del caught


def test_a_worker_that_takes_too_long():
    never = threading.Event()
    batches = iter(loader(Calls(lambda i: never.wait() if i == 1 else i), timeout=SECONDS))
    assert next(batches).item() == 0
    batches._timeout = 0.2  # what comes next never does
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds") as caught:
        next(batches)
    del caught
    for worker in batches._workers:  # which would have five seconds to finish
        worker.kill()


def test_an_interrupt_while_waiting_loses_nothing():
    """The second batch interrupts who waits for it, and is made afterwards."""
    context = torch.multiprocessing.get_context("fork")
    waiting, interrupted = context.Event(), context.Event()
    parent = os.getpid()

    def sample(i):
        if i == 1:
            waiting.wait(SECONDS)
            os.kill(parent, signal.SIGUSR1)
            interrupted.wait(SECONDS)
        return i

    def interrupt(number, frame):
        raise InterruptedError

    previous = signal.signal(signal.SIGUSR1, interrupt)
    try:
        batches = iter(loader(Calls(sample, 2)))
        assert next(batches).item() == 0
        with pytest.raises(InterruptedError):
            waiting.set() or next(batches)
        interrupted.set()
        assert next(batches).item() == 1
    finally:
        signal.signal(signal.SIGUSR1, previous)


def test_an_interrupted_exchange_is_not_continued():
    batches = iter(loader(range(4)))
    batches._channels[0]._busy = True  # as an exception between two lines leaves it
    with pytest.raises(RuntimeError, match="was interrupted, by an exception of a signal's handler; begin a new iteration"):
        list(batches)


def test_other_threads_can_load():
    got = []
    thread = threading.Thread(target=lambda: got.extend(lists(loader(range(4), 2))))
    thread.start()
    thread.join(SECONDS)
    assert got == [[0, 1], [2, 3]]


# --- ends -------------------------------------------------------------------------------------------------------------


def test_workers_end_with_their_iterator():
    batches = iter(loader(range(100)))
    next(batches)
    workers = batches._workers
    assert all(worker.is_alive() for worker in workers)
    del batches
    assert [worker.exitcode for worker in workers] == [0, 0]


def test_workers_end_with_their_epoch():
    batches = iter(loader(range(4)))
    list(batches)
    assert [worker.exitcode for worker in batches._workers] == [0, 0]
    with pytest.raises(StopIteration):
        next(batches)


def test_workers_of_one_loader_do_not_keep_those_of_another():
    first = iter(loader(range(100)))
    second = iter(loader(range(100)))  # forked while the first has its connections
    workers = first._workers
    del first
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert next(second).item() == 0


def test_a_forked_process_leaves_its_parent_s_workers_alone():
    batches = iter(loader(range(6)))
    assert next(batches).item() == 0
    pid = os.fork()
    if pid == 0:
        try:
            del batches
            gc.collect()
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert lists(batches) == [[1], [2], [3], [4], [5]]


def test_signals_of_the_terminal_are_the_parent_s():
    def sample(i):
        os.kill(os.getpid(), signal.SIGINT)
        return i

    assert lists(loader(Calls(sample, 2))) == [[0], [1]]
