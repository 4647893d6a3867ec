"""A module trained by several processes with DistributedDataParallel, in several ways; what each rank sees, as JSON. Run as: training.py WORLD_SIZE FILE"""

import contextlib
import copy
import json
import sys
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import profile
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(6, 32), nn.BatchNorm1d(32), nn.Linear(32, 3)
        self.extra = nn.Linear(6, 3)

    def forward(self, x, with_extra):
        y = self.second(torch.relu(self.norm(self.first(x))))
        return y + self.extra(x) if with_extra else y


def train(rank, size, results, name, *, hook=None, accumulate=1, extra=lambda step, rank: True, **options):
    torch.manual_seed(rank)  # each process begins elsewhere; the first one's values hold
    model = DistributedDataParallel(Net(), **options)
    if hook is not None:
        model.register_comm_hook(None, hook)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(48, 6), torch.randint(0, 3, (48,)))
    sampler = DistributedSampler(data, seed=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses, gradients = [], []
    step = 0
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, batch_size=4, sampler=sampler):
            step += 1
            averages = step % accumulate == 0
            with contextlib.nullcontext() if averages else model.no_sync():
                loss = nn.functional.cross_entropy(model(x, extra(step, rank)), y)
                loss.backward()
            losses.append(loss.item())
            if averages:
                gradients.append([None if p.grad is None else p.grad.double().sum().item() for p in model.parameters()])
                optimizer.step()
                optimizer.zero_grad()
    results[name] = {
        "losses": losses,
        "gradients": gradients,
        "state": {key: value.double().flatten().tolist() for key, value in model.state_dict().items()},
        "repr": repr(model),
    }
    return model


def profiled(model, results):
    x = torch.ones(5, 6)
    with profile(record_shapes=True) as prof:
        model(x, True).sum().backward()
    rows = [e for e in prof.events() if e.name.startswith(("c10d::", "gloo:", "torch::dist", "torch.dist", "Distributed"))]
    results["rows"] = sorted([e.name, str(e.input_shapes) if not e.name.startswith("gloo:broadcast") else ""] for e in rows)
    prof.export_chrome_trace(results["trace"])
    with open(results.pop("trace")) as file:
        results["distributedInfo"] = json.load(file)["distributedInfo"]


def failures(rank, results):
    def told(call):
        try:
            call()
        except Exception as error:
            return [type(error).__name__, str(error)[:90]]
        return None

    results["no parameters"] = told(lambda: DistributedDataParallel(nn.ReLU()))
    results["device_ids"] = told(lambda: DistributedDataParallel(nn.Linear(1, 1), device_ids=[0]))
    model = DistributedDataParallel(Net())
    model(torch.ones(4, 6), False).sum().backward()  # parameters of `extra` get no gradient
    results["unused left"] = told(lambda: model(torch.ones(4, 6), False))


def run(rank, size, path):
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", init_method=f"file://{path}.store", rank=rank, world_size=size, timeout=timedelta(seconds=60))
    results = {}
    model = train(rank, size, results, "plain")
    results["trace"] = f"{path}.{rank}.trace"
    profiled(model, results)
    train(rank, size, results, "small buckets", bucket_cap_mb=0.0002)
    train(rank, size, results, "accumulated", accumulate=3)
    train(rank, size, results, "views", gradient_as_bucket_view=True)
    train(rank, size, results, "unused", find_unused_parameters=True, extra=lambda step, rank: step % 2 == 0)
    train(rank, size, results, "unused in one", find_unused_parameters=True, extra=lambda step, rank: rank == 0)
    train(rank, size, results, "static", static_graph=True, extra=lambda step, rank: False)
    train(rank, size, results, "own buffers", forward_sync_buffers=False)
    train(rank, size, results, "half", hook=default_hooks.fp16_compress_hook)
    train(rank, size, results, "hook", hook=default_hooks.allreduce_hook)
    again = copy.deepcopy(model)
    again(torch.linspace(-1, 1, 24).view(4, 6), True).square().sum().backward()
    results["copied"] = [p.grad.double().sum().item() for m in (again.module.second, again.module.extra) for p in m.parameters()]
    failures(rank, results)
    with open(f"{path}.{rank}", "w") as file:
        json.dump(results, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    size, path = int(sys.argv[1]), sys.argv[2]
    mp.spawn(run, (size, path), nprocs=size)
