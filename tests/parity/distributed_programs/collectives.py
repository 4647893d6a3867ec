"""Every operation between processes; prints what each rank holds afterwards, as JSON. Run as: collectives.py WORLD_SIZE FILE"""

import json
import sys
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def told(call):
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error).splitlines()[0][:40]]
    return None


def numbers(tensor):
    return [
        tensor.dtype.__repr__(),
        list(tensor.shape),
        tensor.flatten().double().tolist() if not tensor.is_complex() else str(tensor),
    ]


def reductions(rank, size, results):
    for op in "SUM AVG PRODUCT MIN MAX BAND BOR BXOR".split():
        for dtype in (
            torch.float32,
            torch.float64,
            torch.float16,
            torch.bfloat16,
            torch.int64,
            torch.uint8,
            torch.bool,
            torch.complex64,
        ):
            tensor = (torch.arange(5) % 3 + rank).to(dtype)
            failed = told(lambda op=op, tensor=tensor: dist.all_reduce(tensor, getattr(dist.ReduceOp, op)))
            results[f"all_reduce {op} {dtype}"] = failed or numbers(tensor)
    for count in (1, 2, 5, 17, 1000, 700_001):  # sums of many are taken in an order that shows in the last bits
        torch.manual_seed(count + rank)
        tensor = torch.randn(count) * torch.randint(1, 5000, (count,))
        dist.all_reduce(tensor)
        results[f"sum of {count}"] = [tensor.double().sum().item(), tensor[:: max(1, count // 50)].tolist()]
        tensor = torch.randn(count) * torch.randint(1, 5000, (count,))
        dist.reduce(tensor, size - 1)
        if rank == size - 1:
            results[f"reduced {count}"] = tensor[:: max(1, count // 50)].tolist()
    transposed = (torch.arange(12.0) + rank).view(3, 4).t()
    dist.all_reduce(transposed)
    results["transposed"] = [numbers(transposed), list(transposed.stride())]
    several = [torch.full((2,), float(rank)), torch.full((3,), rank + 1.0)]
    dist.all_reduce_coalesced(several)
    results["coalesced"] = [numbers(t) for t in several]


def movements(rank, size, results):
    own = torch.arange(4.0) + 10 * rank

    def empties():
        return [torch.zeros(4) for _ in range(size)]

    tensor = own.clone()
    dist.broadcast(tensor, size - 1)
    results["broadcast"] = numbers(tensor)
    got = empties()
    dist.all_gather(got, own)
    results["all_gather"] = [numbers(t) for t in got]
    whole = torch.zeros(4 * size)
    dist.all_gather_into_tensor(whole, own)
    results["all_gather_into_tensor"] = numbers(whole)
    got = empties()
    dist.gather(own, got if rank == 0 else None)
    results["gather"] = [numbers(t) for t in got]
    tensor = torch.zeros(4)
    dist.scatter(tensor, [own + i for i in range(size)] if rank == 1 else None, src=1)
    results["scatter"] = numbers(tensor)
    tensor = torch.zeros(4)
    dist.reduce_scatter(tensor, [own + i for i in range(size)])
    results["reduce_scatter"] = numbers(tensor)
    tensor = torch.zeros(2)
    dist.reduce_scatter_tensor(tensor, torch.arange(2.0 * size) * (rank + 1))
    results["reduce_scatter_tensor"] = numbers(tensor)
    got = empties()
    dist.all_to_all(got, [own + 100 * i for i in range(size)])
    results["all_to_all"] = [numbers(t) for t in got]
    tensor = torch.zeros(size, 2)
    dist.all_to_all_single(tensor, torch.arange(2.0 * size).view(size, 2) + 100 * rank)
    results["all_to_all_single"] = numbers(tensor)
    sent = [i + 1 for i in range(size)]
    tensor = torch.zeros(size * (rank + 1))
    dist.all_to_all_single(tensor, torch.arange(float(sum(sent))) + 100 * rank, [rank + 1] * size, sent)
    results["all_to_all_single uneven"] = numbers(tensor)


def messages(rank, size, results):
    following, before = (rank + 1) % size, (rank - 1) % size
    tensor = torch.zeros(3)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, torch.full((3,), float(rank)), following), dist.P2POp(dist.irecv, tensor, before)]
    )
    for work in works:
        work.wait()
    results["batch"] = numbers(tensor)
    if rank == 0:
        got = [torch.zeros(2) for _ in range(size - 1)]
        sources = [dist.recv(t) for t in got]
        results["any"] = [sorted(sources), sorted(numbers(t)[2] for t in got)]
        sent = [dist.isend(torch.tensor([float(tag)]), 1, tag=tag) for tag in (1, 2)]
        for work in sent:
            work.wait()
    else:
        dist.send(torch.full((2,), float(rank)), 0)
        if rank == 1:
            second, first = torch.zeros(1), torch.zeros(1)
            dist.recv(second, 0, tag=2)
            dist.recv(first, 0, tag=1)
            results["tags"] = [first.item(), second.item()]
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "tensor": torch.ones(rank + 1)})
    results["objects"] = [[o["rank"], o["tensor"].tolist()] for o in objects]
    listed = [rank, "x" * (rank + 1), None] if rank == 0 else [None] * 3
    dist.broadcast_object_list(listed)
    results["broadcast objects"] = listed
    output = [None]
    dist.scatter_object_list(output, [{"for": i} for i in range(size)] if rank == 0 else None)
    results["scatter objects"] = output
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(("from", rank), gathered)
    results["gather objects"] = gathered
    if rank == 0:
        dist.send_object_list([1, "two"], 1)
        dist.send_object_list([3, "four"], 1, use_batch=True)
    elif rank == 1:
        received = [None, None]
        dist.recv_object_list(received, 0)
        batched = [None, None]
        sender = dist.recv_object_list(batched, 0, use_batch=True)
        results["recv objects"] = [received, batched, sender]


def groups(rank, size, results):
    pair = dist.new_group([0, 1])
    other = dist.new_group([size - 1])
    results["groups"] = [
        dist.get_rank(pair), dist.get_world_size(pair), dist.get_rank(other), dist.get_rank(), dist.get_world_size(), dist.get_backend(),
        dist.get_process_group_ranks(dist.group.WORLD), dist.get_pg_count(), dist.get_backend_config(),
    ]  # fmt: skip
    tensor = torch.tensor([float(rank)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dist.all_reduce(tensor, group=pair)
    results["in a group"] = [tensor.item(), [str(w.message)[:60] for w in caught]]
    own, _ = dist.new_subgroups(1)
    results["alone"] = dist.get_process_group_ranks(own)
    mesh = dist.init_device_mesh("cpu", (1, size), mesh_dim_names=("a", "b"))
    results["mesh"] = [
        repr(mesh), mesh.get_coordinate(), mesh["b"].size(), mesh.get_local_rank("b"), mesh.get_local_rank("a"), mesh.shape,
        mesh["b"].mesh.tolist(), mesh.ndim, dist.get_process_group_ranks(mesh.get_group("b")),
    ]  # fmt: skip
    work = dist.all_reduce(torch.ones(2), async_op=True)
    results["work"] = [work.wait(), work.is_completed(), work.get_future().wait()[0].tolist(), type(work).__name__]
    dist.barrier()
    dist.monitored_barrier(timeout=timedelta(seconds=30))


def errors(rank, size, results):
    x = torch.ones(3)
    calls = {
        "no tensor": lambda: dist.all_reduce([1]),
        "no list": lambda: dist.all_gather(x, x),
        "short list": lambda: dist.all_gather([x], x),
        "dtypes": lambda: dist.all_gather([x.long()] * size, x),
        "sizes": lambda: dist.all_gather([torch.ones(4)] * size, x),
        "root": lambda: dist.broadcast(x, size),
        "no root": lambda: dist.broadcast(x),
        "two roots": lambda: dist.broadcast(x, 0, group_src=0),
        "to itself": lambda: dist.send(x, rank),
        "splits": lambda: dist.all_to_all_single(x, x, [1] * (size + 1), [1] * size),
        "complex": lambda: dist.all_reduce(torch.ones(2, dtype=torch.complex64), dist.ReduceOp.MAX),
        "int16": lambda: dist.all_reduce(torch.ones(2, dtype=torch.int16)),
        "gather list": lambda: dist.gather(x, [x] * size if rank != 0 else None),
        "twice": lambda: dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1),
        "group": lambda: dist.new_group(list(range(size + 1))),
        "rank": lambda: dist.new_group([size]),
        "subgroups": lambda: dist.new_subgroups(size + 1),
        "p2p": lambda: dist.P2POp(print, x, 0),
    }
    results |= {name: told(call) for name, call in calls.items()}


def run(rank, size, path):
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", init_method=f"file://{path}.store", rank=rank, world_size=size, timeout=timedelta(seconds=120))
    results = {}
    for part in (reductions, movements, messages, groups):
        part(rank, size, results)
    others = (
        dist.new_group()
    )  # torch's barrier raises what an operation of its group has failed with, if that ended a moment before
    errors(rank, size, results)
    with open(f"{path}.{rank}", "w") as file:
        json.dump(results, file)
    dist.barrier(others)
    dist.destroy_process_group()


if __name__ == "__main__":
    size, path = int(sys.argv[1]), sys.argv[2]
    mp.spawn(run, (size, path), nprocs=size)
