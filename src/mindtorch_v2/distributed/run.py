"""`python -m torch.distributed.run`, known as `torchrun`: start the processes of a program on this machine.

    mindtorch run -m torch.distributed.run --nproc-per-node=4 train.py --epochs 3

Each process finds its number in `RANK` (in the program) and `LOCAL_RANK` (on this machine), and the number of processes in `WORLD_SIZE`.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence

from .._missing import PACKAGE

__all__ = ["main"]

_PAUSE_S = 0.05  # between two looks at the processes
_PATIENCE_S = 10.0  # for processes that were asked to end


def main(args: Sequence[str] | None = None) -> None:
    """Run a program in several processes; ends with 1 if one of them fails, after ending the others."""
    options = _parser().parse_args(args)
    count = _processes(options.nproc_per_node)
    nodes = int(str(options.nnodes).partition(":")[0])
    if not 0 <= options.node_rank < nodes:
        raise SystemExit(f"--node-rank must be from 0 to {nodes - 1}, got {options.node_rank}")
    host, port = _master(options)
    run_id = options.rdzv_id or uuid.uuid4().hex
    shared = {
        "WORLD_SIZE": nodes * count,
        "LOCAL_WORLD_SIZE": count,
        "GROUP_RANK": options.node_rank,
        "GROUP_WORLD_SIZE": nodes,
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "TORCHELASTIC_RUN_ID": run_id,
        "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
    }
    if count > 1:
        shared.setdefault("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    processes = []
    for local in range(count):
        own = {"RANK": options.node_rank * count + local, "LOCAL_RANK": local, "ROLE_RANK": options.node_rank * count + local}
        environment = {**os.environ, **{name: str(value) for name, value in {**shared, **own}.items()}}
        processes.append(subprocess.Popen(_command(options), env=environment))
    failed = _wait(processes)
    if failed is not None:
        code = processes[failed].returncode
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        print(f"the process with local rank {failed} {how}; the others were ended", file=sys.stderr)
        raise SystemExit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torchrun", description=(__doc__ or "").splitlines()[0], allow_abbrev=False)
    parser.add_argument("--nnodes", default="1", help="number of machines")
    parser.add_argument(
        "--nproc-per-node", "--nproc_per_node", default="1", help="processes on each machine: a number, auto or cpu"
    )
    parser.add_argument("--node-rank", "--node_rank", type=int, default=0, help="number of this machine, from 0")
    parser.add_argument("--standalone", action="store_true", help="one machine; any free port")
    parser.add_argument("--master-addr", "--master_addr", default="127.0.0.1", help="address of the first machine")
    parser.add_argument("--master-port", "--master_port", type=int, default=29500, help="free port of the first machine")
    parser.add_argument(
        "--rdzv-backend", "--rdzv_backend", choices=["static", "c10d"], default="static", help="the same for both here"
    )
    parser.add_argument("--rdzv-endpoint", "--rdzv_endpoint", default="", help="HOST[:PORT] in the place of the two above")
    parser.add_argument("--rdzv-id", "--rdzv_id", default="", help="a name for this run")
    parser.add_argument(
        "--max-restarts", "--max_restarts", type=int, choices=[0], default=0, help="processes are not started again"
    )
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module, as for python -m")
    parser.add_argument("--no-python", "--no_python", action="store_true", help="the program is run as it is, without Python")
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def _processes(text: str) -> int:
    count = (os.cpu_count() or 1) if text in ("auto", "cpu") else int(text)
    if count < 1:
        raise SystemExit(f"--nproc-per-node must be at least 1, got {text}")
    return count


def _master(options: argparse.Namespace) -> tuple[str, int]:
    host, port = options.master_addr, options.master_port
    if options.rdzv_endpoint:
        host, _, given = options.rdzv_endpoint.partition(":")
        port = int(given) if given else port
    if options.standalone or port == 0:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return "127.0.0.1", probe.getsockname()[1]
    return host, port


def _command(options: argparse.Namespace) -> list[str]:
    if options.no_python:
        return [options.training_script, *options.training_script_args]
    module = ["-m"] if options.module else []
    return [sys.executable, "-m", PACKAGE, "run", *module, options.training_script, *options.training_script_args]


def _wait(processes: list[subprocess.Popen[bytes]]) -> int | None:
    """The first process that failed, or None when all have ended well."""
    try:
        while True:
            codes = [process.poll() for process in processes]
            failed = next((i for i, code in enumerate(codes) if code), None)
            if failed is not None or None not in codes:
                return failed
            time.sleep(_PAUSE_S)
    finally:
        _end(processes)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    deadline = time.monotonic() + _PATIENCE_S
    for process in running:
        try:
            process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
