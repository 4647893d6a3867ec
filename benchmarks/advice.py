"""What advice promises against what following it gains: `PYTHONPATH=src python -m benchmarks.advice`."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable

# before NumPy starts its threads
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from tests.mindtorch_v2.profiler.advice_programs import PROGRAMS, recorded

from mindtorch_v2.profiler import advise
from mindtorch_v2.profiler.advice import Facts

ROUNDS = 100


def alternated(one: Callable[[], object], other: Callable[[], object], clock: Callable[[], int]) -> tuple[float, float]:
    """The least time of each in ns, taken in turn."""
    best = [float("inf"), float("inf")]
    gc.disable()
    for _ in range(ROUNDS):
        for i, step in enumerate((one, other)):
            began = clock()
            step()
            best[i] = min(best[i], clock() - began)
    gc.enable()
    return best[0], best[1]


def main() -> None:
    print("| rule | program | a step, us | estimated gain | real gain |")
    print("|---|---|--:|--:|--:|")
    for rule, pairs in PROGRAMS.items():
        for program, advised in pairs:
            slow, fast = program(), advised()
            waits = rule.startswith("DataLoader")
            # the least of several, as for the times
            gains = []
            for _ in range(5):
                prof = recorded(slow, 6)
                (gain,) = [finding.gain_ns_per_step for finding in advise(prof, min_share=0) if finding.rule == rule]
                # of a busy machine, to which the timing below is blind
                gains.append(gain if waits else gain / Facts(prof.session).slowdown)
            before, after = alternated(slow, fast, time.perf_counter_ns if waits else time.thread_time_ns)
            name = program.__name__.replace("_", " ")
            print(
                f"| {rule} | {name} | {before / 1e3:,.0f} | {min(gains) / before:.0%} | {(before - after) / before:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
