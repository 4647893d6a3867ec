"""Commands run in this process, and files for them."""

from __future__ import annotations

import json

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.cli import frame

from ..profiler.device_traces import annotation, call, copy, kernel, op, write


@pytest.fixture
def mindtorch(capsys):
    """Runs a command and gives its status, output and errors; `--json` gives the value."""

    def run(*arguments, status=0):
        try:
            frame.main([str(argument) for argument in arguments])
            found = 0
        except SystemExit as end:
            found = end.code or 0
        out, err = capsys.readouterr()
        assert found == status, err
        if "--json" in arguments and status == 0:
            return json.loads(out)
        return out if not status else err

    return run


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """A saved session with everything in it: a training of two steps."""
    path = tmp_path_factory.mktemp("recorded") / "run.session"
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wanted = dict.fromkeys(("record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops"), True)
    with torch.profiler.profile(**wanted) as profiler:
        for _ in range(2):
            with torch.profiler.record_function("<script>alert(1)</script>"):
                optimizer.zero_grad()
                model(torch.ones(3, 4)).sum().backward()
                optimizer.step()
            profiler.step()
    profiler.profiler.session.save(path)
    return path


@pytest.fixture
def gpu(tmp_path):
    """A trace of a GPU: two steps, a copy, and a host that is late."""
    rows = [
        annotation("ProfilerStep#0", 0, 50),
        *(op("aten::mm", 1, 10), call("cudaLaunchKernel", 5, 2, 1), kernel("gemm", 10, 20, 1)),
        annotation("ProfilerStep#1", 50, 60),
        *(op("aten::copy_", 60, 10), call("cudaMemcpyAsync", 62, 2, 2), copy("HtoD", 70, 10, 2, 50_000)),
        *(call("cudaLaunchKernel", 80, 2, 3), kernel("ncclDevKernel_AllReduce", 85, 20, 3, stream=9)),
    ]
    return write(tmp_path / "gpu.json", rows)
