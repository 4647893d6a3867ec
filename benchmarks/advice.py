"""What advice claims against what following it gains: `PYTHONPATH=src python -m benchmarks.advice [--all-options] [rule ...]`.

Each rule has programs with the defect that it is about, and the same without. In turn, some steps of one and of the other are timed, and some
are recorded and advice is asked for. All times are wall time. Samples are short, a nap comes before each, and of many samples those
count in which the thread was interrupted least: so other work of the machine matters little.
"""

from __future__ import annotations

import gc
import itertools
import os
import select
import statistics
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

# before NumPy starts its threads
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from tests.mindtorch_v2.profiler.advice_programs import PROGRAMS, UNEXPLAINED

from mindtorch_v2.profiler import advise, profile
from mindtorch_v2.profiler.advice import RULES

Step = Callable[[], object]

SAMPLES, KEPT, SECONDS = 100, 8, 10.0  # of each program
SHORT, NAP = 0.0015, 0.003  # seconds
LEAST_STEPS = 16  # for a graph that is kept alive: of steps before the recording nothing is known
WITHIN = 1.5
ALL_OPTIONS = {"record_shapes": True, "with_stack": True}


class Sample(NamedTuple):
    """The share of the time in which the thread did not run; seconds of a step; what advice claims for it, in seconds and as a share."""

    interrupted: float
    step: float
    claimed: float = 0.0
    share: float = 0.0


def timed(step: Step, count: int) -> Sample:
    select.select([], [], [], NAP)
    cpu, ends = time.thread_time(), [time.perf_counter()]
    for _ in range(count):
        step()
        ends.append(time.perf_counter())
    cpu = time.thread_time() - cpu
    # the first steps after a nap take longer
    return Sample(round(1 - cpu / (ends[-1] - ends[0]), 2), statistics.median(b - a for a, b in itertools.pairwise(ends)))


def recorded(rule: str, step: Step, count: int, options: dict[str, bool]) -> Sample:
    with profile(**options) as prof:
        began = time.perf_counter()
        select.select([], [], [], NAP)  # not `time.sleep`, which a rule is about
        cpu, wall = time.thread_time(), time.perf_counter()
        napped = wall - began
        for i in range(count):
            step()
            if i < count - 1:
                prof.step()
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
    advice = advise(prof, min_share=0)
    claims = [finding.gain_ns / 1e9 for finding in advice if finding.rule == rule]
    claims += [part.time_ns / 1e9 - napped for part in advice.unexplained if part.name == rule]
    claimed = claims[0] if claims else 0.0
    return Sample(round(1 - cpu / wall, 2), wall / count, claimed / count, claimed / wall)


def usual(samples: list[Sample]) -> Sample:
    """The median of the samples that were interrupted least; where programs wait, of those that took least time."""
    kept = sorted(samples)[:KEPT]
    return Sample(*(statistics.median(column) for column in zip(*kept, strict=True)))


def compared(rule: str, slow: Step, fast: Step, options: dict[str, bool]) -> tuple[Sample, Sample, Sample]:
    """A step of the program, one of the other, and one that is recorded."""
    timed(slow, 3), timed(fast, 3), recorded(rule, slow, 1, options)  # compiles what is called
    least = LEAST_STEPS if rule == "graph kept alive" else 1
    count = max(least, int(SHORT / min(timed(slow, 1).step for _ in range(5))))
    samples: tuple[list[Sample], list[Sample], list[Sample]] = ([], [], [])
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and len(samples[0]) < SAMPLES:
        gc.collect()
        gc.disable()
        samples[0].append(timed(slow, count))
        samples[1].append(timed(fast, count))
        samples[2].append(recorded(rule, slow, count, options))
        gc.enable()
    before, after, claim = map(usual, samples)
    return before, after, claim


def main() -> None:
    asked = [each for each in sys.argv[1:] if not each.startswith("--")]
    print(
        "| rule | program | a step, us | claimed, us | measured, us | claimed / measured | claimed share | measured share | interrupted |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    off = []
    for rule, pairs in [*PROGRAMS.items(), *UNEXPLAINED.items()]:
        if asked and rule not in asked:
            continue
        needs = RULES[rule].needs if rule in RULES else ()
        options = ALL_OPTIONS if "--all-options" in sys.argv else {**dict.fromkeys(needs, True), "record_shapes": True}
        for program, advised in pairs:
            slow, fast, claim = compared(rule, program(), advised(), options)
            before, after = slow.step, fast.step
            ratio, name = claim.claimed / (before - after), program.__name__.replace("_", " ")
            if not 1 / WITHIN <= ratio <= WITHIN:
                off.append(f"{name} {ratio:.2f}")
            print(
                f"| {rule} | {name} | {1e6 * before:,.0f} | {1e6 * claim.claimed:,.0f} | {1e6 * (before - after):,.0f} | {ratio:.2f} "
                f"| {claim.share:.0%} | {1 - after / before:.0%} | {max(slow.interrupted, fast.interrupted, claim.interrupted):.0%} |",
                flush=True,
            )
    print(f"\nOutside a factor of {WITHIN}: {', '.join(off) or 'none'}")


if __name__ == "__main__":
    main()
