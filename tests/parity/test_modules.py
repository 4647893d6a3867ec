"""Calls of modules are the rows that torch's tracer of Python functions has; the hierarchy is written as torch's interpreter does."""

import json
import re

import pytest

import mindtorch_v2

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

EXAMPLES = ["examples/mlp.py", "examples/cnn.py", "examples/gpt.py"]


def rows_of(prof, tmp_path):
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    rows = [row for row in json.loads(path.read_text())["traceEvents"] if row["ph"] == "X"]
    return sorted(rows, key=lambda row: (row["ts"], -row["dur"]))


def calls(prof, tmp_path):
    """Each call of a module, in order: the row, its number, and the row of the module that calls it."""
    functions = [row for row in rows_of(prof, tmp_path) if row["cat"] == "python_function"]
    by_id = {row["args"]["Python id"]: row for row in functions}

    def caller(row):
        above = by_id.get(row["args"]["Python parent id"])
        return above if above is None or "Python module id" in above["args"] else caller(above)

    modules = [row for row in functions if row["name"].startswith("nn.Module: ")]
    assert all("Python module id" in row["args"] for row in modules)
    return [(m["name"], m["args"]["Python module id"], (caller(m) or {}).get("name")) for m in modules]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_calls_of_a_step(example, tmp_path):
    import torch
    from profile_comparison import EXAMPLES as PATHS
    from profile_comparison import plain_torch, profile_example

    with plain_torch():
        theirs = calls(profile_example(torch, PATHS[example], with_stack=True), tmp_path)
    assert len(theirs) > 2
    for options in ({"with_stack": True}, {"with_modules": True}, {"with_stack": True, "with_modules": True}):
        assert calls(profile_example(mindtorch_v2, PATHS[example], **options), tmp_path) == theirs, options


def network(lib):
    """Modules that are shared, have hooks, calls of their own and names that look alike, call themselves and fail."""
    nn = lib.nn

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x, again=True):
            return self(self.inner(x), again=False) if again else x

    class OwnCall(nn.Module):
        def __call__(self, *args):
            return super().__call__(*args)

        def forward(self, x):
            return x.relu()

    class Direct(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            return self.inner.forward(x)

    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared = nn.Linear(4, 4)
            self.twice, self.own, self.direct, self.fails = Twice(), OwnCall(), Direct(), Fails()
            self.hooked = nn.Linear(4, 4)
            self.hooked.register_forward_hook(lambda module, args, result: self.shared(result))
            self.hooked.register_forward_pre_hook(lambda module, args: (self.shared(args[0]),))

        def forward(self, x):
            x = self.hooked(self.direct(self.own(self.twice(self.shared(self.shared(x))))))
            try:
                self.fails(x)
            except ValueError:
                return x

    return Net()


def test_the_calls_of_unusual_modules(tmp_path):
    def found(lib):
        net, x = network(lib), lib.ones(2, 4)
        with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU], with_stack=True) as prof:
            net(x)
            net.twice(x)
        return calls(prof, tmp_path)

    import torch

    theirs = found(torch)
    assert len(theirs) == 15
    assert found(mindtorch_v2) == theirs


def test_the_hierarchy_of_scripted_modules(tmp_path):
    """torch writes it for scripted modules only; it leaves out the names of lists, which ours has."""
    import torch

    def found(lib, prepare, **options):
        nn = lib.nn
        net = prepare(nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))))
        with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU], with_modules=True) as prof:
            net(lib.ones(2, 4))
        return [row["args"]["Module Hierarchy"] for row in rows_of(prof, tmp_path) if row["name"] == "aten::linear"]

    theirs = found(torch, torch.jit.script)
    assert found(mindtorch_v2, lambda net: net) == theirs
    assert all(re.fullmatch(r"TOP\(\w+\)::forward\.([\w.]+\(\w+\)::forward\.)*", hierarchy) for hierarchy in theirs)
