"""Several processes: the launcher, and a process that is killed."""

import subprocess
import sys

PROGRAM = """
import os, signal, sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if sys.argv[1] == "killed" and rank == 1:
    dist.barrier()
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "killed":
    dist.barrier()
    try:
        dist.all_reduce(torch.ones(3))
    except RuntimeError as error:
        print(error, flush=True)
        sys.exit(7)
tensor = torch.tensor([float(rank)])
dist.all_reduce(tensor)
open(f"{sys.argv[2]}/{rank}", "w").write(f"{tensor.item()} {os.environ['LOCAL_RANK']} {dist.get_world_size()}")
dist.destroy_process_group()
"""


def _launch(tmp_path, *arguments):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mindtorch_v2", "run", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run([*command, str(program), *arguments, str(tmp_path)], capture_output=True, text=True, timeout=120)


def test_the_launcher_starts_processes_that_find_each_other(tmp_path):
    done = _launch(tmp_path, "all")
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / str(rank)).read_text() for rank in range(2)] == ["1.0 0 2", "1.0 1 2"]


def test_a_killed_process_is_an_error_of_the_others_and_not_waited_for(tmp_path):
    program = """
import os, signal, sys
import torch
import torch.distributed as dist
rank = int(sys.argv[2])
dist.init_process_group("gloo", f"file://{sys.argv[1]}/store", rank=rank, world_size=2)
dist.barrier()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    dist.all_reduce(torch.ones(3))
except RuntimeError as error:
    print(error)
"""
    command = [sys.executable, "-m", "mindtorch_v2", "run", "-c", program, str(tmp_path)]
    killed = subprocess.Popen([*command, "1"])
    done = subprocess.run([*command, "0"], capture_output=True, text=True, timeout=120)
    assert killed.wait(60) == -9
    assert done.returncode == 0, done.stderr
    assert "Connection closed by peer" in done.stdout
    assert "rank 1 ended during all_reduce" in done.stdout


def test_the_launcher_ends_with_an_error_when_a_process_does(tmp_path):
    done = _launch(tmp_path, "killed")
    assert done.returncode == 1
    assert "the process with local rank" in done.stderr
    assert "ended by SIGKILL" in done.stderr or "exit code 7" in done.stderr
