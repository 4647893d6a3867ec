"""Reports for tests: a network that is trained, and parts as the page reads them."""

import base64
import re
from pathlib import Path

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function, schedule
from mindtorch_v2.profiler.output.report import packing

__all__ = ["ALL", "parts_of", "trained"]

ALL = {"record_shapes": True, "with_stack": True, "profile_memory": True, "with_modules": True, "with_flops": True}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32))
        self.head = torch.nn.Linear(32, 4)

    def forward(self, x):
        with record_function("the body"):
            x = self.body(x)
        return self.head(x)


def trained(steps=4, **options):
    """The profiler of some steps of training."""
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8 * (steps + 1), 16)), batch_size=8)
    with profile(**options, schedule=schedule(wait=0, warmup=1, active=steps, repeat=1)) as prof:
        for (x,) in data:
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
            prof.step()
    return prof


def parts_of(path):
    """The parts of a written page by name."""
    blocks = re.findall(r'<script type="application/octet-stream" id="([a-z]+(?:\.\d+)?)">([^<]*)</script>', Path(path).read_text())
    return {name: packing.unpack(base64.b64decode(content)) for name, content in blocks}
