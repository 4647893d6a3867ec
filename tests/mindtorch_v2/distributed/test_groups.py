"""Groups: several ranks in the threads of one process, which find each other in a store in memory."""

import threading
from datetime import timedelta

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist
from mindtorch_v2.profiler import profile

PATIENCE = timedelta(seconds=30)


def together(size, program, timeout=PATIENCE):
    """What a program returns, or raises, at each rank of a group."""
    store = dist.HashStore()
    results = [None] * size

    def run(rank):
        group = dist.ProcessGroup(store, rank, size, timeout)
        try:
            results[rank] = program(group, rank)
        except Exception as error:
            results[rank] = error
        finally:
            done.wait(30)
            group.shutdown()

    done = threading.Barrier(size)
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


@pytest.mark.parametrize("size", [1, 2, 4])
def test_each_rank_has_the_sum(size):
    def program(group, rank):
        tensors = [torch.full((n,), float(rank)) for n in (0, 1, 3, 50)]
        for tensor in tensors:
            group.allreduce([tensor]).wait()
        return [t.tolist() for t in tensors]

    total = float(sum(range(size)))
    assert together(size, program) == [[[total] * n for n in (0, 1, 3, 50)]] * size


def test_operations_in_the_background_keep_their_order():
    def program(group, rank):
        tensors = [torch.full((2,), float(i + rank)) for i in range(20)]
        works = [group.allreduce([t]) for t in tensors]
        return [w.wait() and t.tolist() for w, t in zip(works, tensors, strict=True)]

    assert together(3, program) == [[[3.0 * i + 3] * 2 for i in range(20)]] * 3


def test_a_rank_in_another_operation_is_told_apart():
    def program(group, rank):
        work = group.allreduce([torch.ones(2)]) if rank else group.broadcast([torch.ones(2)], 1)
        work.wait()

    first, _ = together(2, program, timedelta(seconds=1))
    assert isinstance(first, RuntimeError)
    assert "rank 1 calls all_reduce where rank 0 calls broadcast" in str(first)


def test_tensors_of_other_sizes_are_told_apart():
    def program(group, rank):
        group.broadcast([torch.ones(2 + rank)], 0).wait()

    _, second = together(2, program, timedelta(seconds=1))
    assert "rank 0 sent 8 bytes for broadcast where rank 1 expects 12" in str(second)


def test_a_rank_that_does_not_come_is_not_waited_for_forever():
    def program(group, rank):
        if rank == 0:
            group.allreduce([torch.ones(2)]).wait()

    first, _ = together(2, program, timedelta(milliseconds=100))
    assert "Timed out waiting 100ms" in str(first)
    assert "rank 1 sent nothing for all_reduce" in str(first)


def test_the_first_rank_names_those_that_miss_a_monitored_barrier():
    def program(group, rank):
        if rank != 2:
            group.monitored_barrier(timedelta(milliseconds=200), wait_all_ranks=True)

    first, second, third = together(3, program, timedelta(milliseconds=500))
    assert str(first) == "[Rank 0]: Ranks 2 failed to pass monitoredBarrier in 200 ms"
    assert "Rank 1 successfully reached monitoredBarrier" in str(second)
    assert third is None


def test_a_rank_that_has_left_is_an_error_at_once():
    def program(group, rank):
        if rank == 1:
            group.shutdown()
            return
        group.allreduce([torch.ones(2)]).wait()

    first, second = together(2, program)
    assert "Connection closed by peer" in str(first)
    assert "rank 1 ended during all_reduce" in str(first)
    assert second is None


def test_messages_are_there_when_they_are_asked_for():
    def program(group, rank):
        if rank == 0:
            return group.send([torch.tensor([1.0, 2.0])], 1, 7).wait()
        tensor = torch.zeros(2)
        work = group.recv([tensor], 0, 7)
        while not work.is_completed():
            pass
        return tensor.tolist(), work.source_rank()

    assert together(2, program) == [True, ([1.0, 2.0], 0)]


def test_an_operation_is_a_row_and_its_work_another_on_a_thread_of_the_group():
    def program(group, rank):
        group.allreduce([torch.ones(2, 3)]).wait()

    with profile(record_shapes=True) as prof:
        together(2, program)
    rows = {e.name: e for e in prof.events() if e.name.startswith(("c10d", "gloo"))}
    assert rows.keys() == {"c10d::allreduce_", "gloo:all_reduce"}
    assert rows["c10d::allreduce_"]["kind"] == "op"
    assert rows["c10d::allreduce_"]["input_shapes"] == [[[2, 3]], [], [], [], [], []]
    assert rows["gloo:all_reduce"]["kind"] == "scope"
    assert rows["gloo:all_reduce"].input_shapes == [[2, 3]]
    assert rows["gloo:all_reduce"].thread != rows["c10d::allreduce_"].thread


@pytest.fixture
def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_a_program_of_one_process(alone):
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    dist.barrier()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
    model(tensor).backward()
    assert model.module.weight.grad.tolist() == [[1.0, 1.0, 1.0]]
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    assert [dist.get_rank(), dist.get_world_size(), dist.get_backend()] == [0, 1, "gloo"]
    dist.destroy_process_group()
    assert not dist.is_initialized()
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.all_reduce(tensor)


@pytest.mark.parametrize("scheme", ["env", "tcp", "file"])
def test_where_processes_find_each_other(scheme, tmp_path, monkeypatch):
    port = dist.TCPStore("127.0.0.1", 0, 1, True).port
    for name, value in {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}.items():
        monkeypatch.setenv(name, str(value))
    method = {
        "env": "env://",
        "tcp": f"tcp://127.0.0.1:{port}?rank=0&world_size=1",
        "file": f"file://{tmp_path}/s?rank=0&world_size=1",
    }
    dist.init_process_group("gloo", method[scheme])
    assert dist.get_world_size() == 1
    dist.destroy_process_group()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: dist.init_process_group("gloo", "foo://x", rank=0, world_size=1), RuntimeError, "No rendezvous handler for foo://"),
        (lambda: dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1), RuntimeError, "doesn't have NCCL built in"),
        (lambda: dist.init_process_group("gloo", store=dist.HashStore()), AssertionError, "world_size must be positive"),
        (lambda: dist.init_process_group("gloo", timeout=5), TypeError, "Expected timeout argument to be of type datetime.timedelta, got 5"),
        (lambda: dist.get_rank(), ValueError, "Default process group has not been initialized"),
        (lambda: dist.destroy_process_group(), AssertionError, "Process group cannot be None"),
        (lambda: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1)), ValueError, "Default process group has not been"),
    ],
)  # fmt: skip
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_modules_that_differ_between_processes_are_refused():
    def program(group, rank):
        dist.distributed_c10d._world.ranks[group] = [0, 1]
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2 + rank, 2), process_group=group)

    first, second = together(2, program)
    dist.distributed_c10d._world.ranks.clear()
    assert "params[0] in this process with sizes [2, 2] appears not to match sizes [2, 3] of the same param in process 1" in str(
        first
    )
    assert "process 0" in str(second)


@pytest.mark.parametrize(
    "call",
    [
        lambda group, x, wait: group.allreduce([x], dist.AllreduceOptions(timeout=wait)),
        lambda group, x, wait: group.broadcast([x], dist.BroadcastOptions(timeout=wait)),
        lambda group, x, wait: group.alltoall([x], [x], dist.AllToAllOptions(timeout=wait)),
        lambda group, x, wait: group.barrier(dist.BarrierOptions(timeout=wait)),
    ],
)
def test_an_operation_waits_as_long_as_its_group(call):
    def program(group, rank):
        with pytest.raises(NotImplementedError, match="waits as long as its group"):
            call(group, torch.ones(2), timedelta(seconds=1))
        call(group, torch.ones(2), timedelta(milliseconds=-1)).wait()
        return "done"

    assert together(1, program) == ["done"]
