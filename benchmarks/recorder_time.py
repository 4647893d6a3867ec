"""That the time of a recording without the recorder's own is the time that the program takes unrecorded.

    python -m benchmarks.recorder_time [program ...]

`prof.summary()` and advice take off what events cost, by what one of each kind was measured to cost in this process. In turn, steps of a program are timed
unrecorded and with each option, on the processor; of the recorded ones the recorder's part is taken off. The share by which the rest differs from the
unrecorded step is in the last columns; beyond 15 % it is bold.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections.abc import Callable, Generator
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import mindtorch_v2 as torch

from .recorded_steps import OPTIONS, PROGRAMS, profile

Step = Callable[[], object]
ROUNDS, CHUNK_SECONDS, LEAST = 10, 0.02, 2
WITHIN = 0.15


def dot_by_dot(library: Any, begin_step: Callable[[], None]) -> None:
    """Small operators one by one, and their backward pass: nearly all of a step is calls."""
    blocks = [library.randn(4, 4, requires_grad=True) for _ in range(20)]
    while True:
        begin_step()
        loss = library.zeros(())
        for block in blocks:
            loss = loss + block.max() * block.sum()
        loss.backward()


NAMES = ("dot_by_dot", "mlp", "vae", "gpt")
MEASURED: dict[str, Any] = {"dot_by_dot": dot_by_dot, **PROGRAMS}
MODES = {name: options for name, (options, _) in OPTIONS.items()}
MODES["with shapes and stacks"] = {"record_shapes": True, "with_stack": True}


def chunk() -> Generator[None, None, tuple[float, int]]:
    """Seconds of a step on the processor, the least of a few after one that is not timed, and how many there were."""
    yield
    times: list[float] = []
    while len(times) < LEAST or sum(times) < CHUNK_SECONDS:
        began = time.thread_time()
        yield
        times.append(time.thread_time() - began)
    return min(times), len(times) + 1


def samples(off: list[float], rest: dict[str, list[float]], on: dict[str, list[float]]) -> Generator[None]:
    """Fill in. It is to be advanced where a step begins."""
    yield
    yield
    for _ in range(ROUNDS):
        off.append((yield from chunk())[0])
        for name, options in MODES.items():
            with profile(torch, **options) as prof:
                seconds, steps = yield from chunk()
            on[name].append(seconds)
            rest[name].append(seconds - prof.summary().recorder_ns / 1e9 / steps)


def measure(name: str) -> str:
    off: list[float] = []
    rest: dict[str, list[float]] = {mode: [] for mode in MODES}
    on: dict[str, list[float]] = {mode: [] for mode in MODES}
    turns = samples(off, rest, on)
    gc.collect()
    gc.disable()
    try:
        MEASURED[name](torch, turns.__next__)
    except StopIteration:
        pass
    finally:
        turns.close()
        gc.enable()
    usual = min(off)
    cells = [name, f"{usual * 1e3:.3g}"]
    for mode in MODES:
        recorded = min(on[mode])
        share = min(rest[mode]) / usual - 1
        text = f"{share:+.1%}"
        cells.append(f"{recorded * 1e3:.3g}: {text if abs(share) <= WITHIN else f'**{text}**'}")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.recorder_time", description=__doc__)
    parser.add_argument("programs", nargs="*", help=f"of {', '.join(MEASURED)}; by default {', '.join(NAMES)}")
    print("| | step, ms |", " | ".join(f"{mode}: ms, without the recorder's part" for mode in MODES), "|")
    print("|---|--:|" + "--:|" * len(MODES))
    for name in parser.parse_args().programs or NAMES:
        print(measure(name), flush=True)


if __name__ == "__main__":
    main()
