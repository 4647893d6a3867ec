"""Networks whose modules the tests look for, and how they are found."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.mlp = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Net(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def x(*shape):
    return torch.ones(*(shape or (3, 4)))


def recorded(work, **options):
    with profile(**{"with_modules": True, **options}) as prof:
        work()
    return prof


def calls(prof):
    """The names of the called modules, in order."""
    return [e.name.removeprefix("nn.Module: ") for e in prof.events() if e.name.startswith("nn.Module: ")]


def modules_of(prof, name):
    return [e["module"] for e in prof.events() if e.name == name]


class Calling(nn.Module):
    """A module whose forward is given."""

    def __init__(self, forward, **modules):
        super().__init__()
        self.call = forward
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, *args):
        return self.call(self, *args)
