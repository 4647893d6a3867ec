"""What advice claims against what following it gains: the table of `docs/advice.md`.

    python -m benchmarks.advice [--write docs/advice.md] [rule ...]

Each rule has programs with the defect that it is about, and the same as advised, in two sizes of the defect. In turn, some steps of one and
of the other are timed, and some of the first are recorded and advice is asked for. Where programs compute, time is that of the
processor, so that other work of the machine does not count; where they wait, it is wall time. Recordings have wall time only, and count if the program was
interrupted for less than a tenth of it. They are long, as those of users are: the first events of a recording are slow. Where a busy machine interrupts nearly all,
shorter ones are made. Of all samples the median counts, and of the claims that of the longest recordings of which at least three count; a dash
stands where there are none, or where there is no claim.

Programs are recorded with shapes, and with shapes and stacks.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import select
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

# before NumPy starts its threads
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from tests.mindtorch_v2.profiler.advice_programs import PROGRAMS, UNEXPLAINED

from mindtorch_v2.profiler import advise, profile
from mindtorch_v2.profiler.advice import RULES

Step = Callable[[], object]
Program = Callable[[int], Step]

SIZES = {"small": 1, "large": 4}  # of the defect
ROUNDS, SECONDS = 60, 8.0  # of a program, at most
CHUNK = 0.004  # seconds of a timed sample
LENGTHS, NAP = (0.03, 0.008, 0.0015), 0.002  # seconds of a recording, and of rest before it
INTERRUPTED = 0.1  # share of its time in which the program did not run, at most
# recordings before shorter ones are tried, that count at least, and of which the median is taken, at most
TRIES, ENOUGH, KEPT = 4, 3, 15
LEAST_STEPS = 16  # for a graph that is kept alive: of steps before the recording nothing is known
WITHIN, NOISE = 1.5, 1.05
WAITING = ("sleeping", "DataLoader without workers", "DataLoader too slow")
BEGIN, END = "<!-- claims -->", "<!-- end of claims -->"
HEADING = (
    "| rule | program | size | a step, ms | gain, ms | claimed, ms | / gain | with stacks, ms | / gain |",
    "|---|---|---|--:|--:|--:|--:|--:|--:|",
)
SHAPES, STACKS = {"record_shapes": True}, {"record_shapes": True, "with_stack": True}


class Claim(NamedTuple):
    """What was claimed for a step, in seconds; those that other work of the machine disturbed less are smaller."""

    disturbed: float
    seconds: float
    is_upper_bound: bool

    def is_true(self, gain: float) -> bool:
        """Whether this is within a factor of 1.5 of the gain, or a bound that the gain keeps."""
        return gain <= NOISE * self.seconds if self.is_upper_bound else gain / WITHIN <= self.seconds <= gain * WITHIN

    def as_markdown(self, gain: float) -> str:
        ratio = f"{self.seconds / gain:.2f}" if self.is_true(gain) else f"**{self.seconds / gain:.2f}**"
        return f"{'up to ' * self.is_upper_bound}{1e3 * self.seconds:.3g} | {ratio}"


class Result(NamedTuple):
    rule: str
    program: str
    size: str
    step: float  # seconds
    gain: float
    claims: list[Claim | None]  # without stacks and with them

    @property
    def is_true(self) -> bool:
        return all(claim.is_true(self.gain) for claim in self.claims if claim is not None)

    def as_markdown(self) -> str:
        claims = " | ".join("– | –" if claim is None else claim.as_markdown(self.gain) for claim in self.claims)
        return f"| {self.rule} | {self.program} | {self.size} | {1e3 * self.step:.3g} | {1e3 * self.gain:.3g} | {claims} |"


def timed(step: Step, count: int, clock: Callable[[], float]) -> float:
    """Seconds of a step, after one that fills the caches."""
    step()
    began = clock()
    for _ in range(count):
        step()
    return (clock() - began) / count


def recorded(rule: str, step: Step, count: int, options: dict[str, bool]) -> Claim:
    step()
    select.select([], [], [], NAP)  # not `time.sleep`, which a rule is about
    with profile(**options) as prof:
        cpu, wall = time.thread_time(), time.perf_counter()
        for i in range(count):
            step()
            if i < count - 1:
                prof.step()
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
    advice = advise(prof, min_share=0)
    disturbed = wall if rule in WAITING else 1 - cpu / wall
    for finding in advice:
        if finding.rule == rule:
            return Claim(disturbed, finding.gain_ns / 1e9 / count, finding.is_upper_bound)
    unexplained = [part.time_ns / 1e9 for part in advice.unexplained if part.name == rule]
    return Claim(disturbed, sum(unexplained) / count, is_upper_bound=False)


class Recordings:
    """Recordings of a program with some options, as long as the machine lets them be."""

    def __init__(self, rule: str, step: Step, once: float, options: dict[str, bool]) -> None:
        self._rule, self._step, self._options = rule, step, options
        counts = [LEAST_STEPS] if rule == "graph kept alive" else [max(1, int(seconds / once)) for seconds in LENGTHS]
        self._claims: dict[int, list[Claim]] = {count: [] for count in counts}  # by the number of steps, the longest first
        self._lengths = iter(self._claims)
        self._length = next(self._lengths)

    def take(self) -> None:
        """Record once more, shorter if too few count."""
        found = self._claims[self._length]
        found.append(recorded(self._rule, self._step, self._length, self._options))
        if len(found) % TRIES == 0 and len(_counting(found)) * TRIES < len(found):
            self._length = next(self._lengths, self._length)

    @property
    def is_enough(self) -> bool:
        return len(_counting(self._claims[self._length])) >= KEPT

    def least_disturbed(self) -> Claim:
        return min(claim for found in self._claims.values() for claim in found)

    def usual(self) -> Claim | None:
        """The median of those that were disturbed least, of the longest of which enough count."""
        for found in self._claims.values():
            kept = _counting(found)[:KEPT]
            if len(kept) >= ENOUGH:
                return Claim(*(statistics.median_low(column) for column in zip(*kept, strict=True)))
        return None


def _counting(claims: list[Claim]) -> list[Claim]:
    return [claim for claim in sorted(claims) if claim.disturbed < INTERRUPTED]


def compared(rule: str, slow: Step, fast: Step) -> tuple[float, float, list[Claim | None]]:
    """Seconds of a step, what following the advice saves of it, and what is claimed without stacks and with them."""
    clock = time.perf_counter if rule in WAITING else time.thread_time
    needs_stacks = rule in RULES and "with_stack" in RULES[rule].needs
    timed(slow, 3, clock), timed(fast, 3, clock)  # compiles what is called
    once = min(timed(slow, 1, clock) for _ in range(5))
    count = max(1, int(CHUNK / once))
    if rule in WAITING:
        count = max(count, 5)  # so that batches that are made meanwhile are waited for
    before, after = [], []
    wanted = [not needs_stacks, rule in RULES]
    recordings = [Recordings(rule, slow, once, mode) if wish else None for mode, wish in zip((SHAPES, STACKS), wanted, strict=True)]
    until = time.monotonic() + SECONDS
    gc.disable()
    while len(before) < 5 or (time.monotonic() < until and len(before) < ROUNDS):
        if len(before) >= KEPT and all(made is None or made.is_enough for made in recordings):
            break
        before.append(timed(slow, count, clock))
        after.append(timed(fast, count, clock))
        for made in filter(None, recordings):
            made.take()
        if len(before) % 10 == 0:
            gc.collect()
    gc.enable()
    if rule in WAITING:  # what is added to a wait is other work of the machine
        return min(before), min(before) - min(after), [made and made.least_disturbed() for made in recordings]
    gain = statistics.median(b - a for b, a in zip(before, after, strict=True))
    return statistics.median(before), gain, [made and made.usual() for made in recordings]


def measured(rules: list[str]) -> Iterator[Result]:
    for rule, pairs in [*PROGRAMS.items(), *UNEXPLAINED.items()]:
        for program, advised in pairs if not rules or rule in rules else []:
            for size, factor in SIZES.items():
                yield Result(rule, program.__name__.replace("_", " "), size, *compared(rule, program(factor), advised(factor)))


def with_table(page: str, lines: list[str]) -> str:
    """A page with these lines between its markers."""
    before, _, after = re.split(f"{BEGIN}|{END}", page)
    return "\n".join([f"{before}{BEGIN}", "", *lines, "", f"{END}{after}"])


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.advice", description=__doc__)
    parser.add_argument("rules", nargs="*", help="names of rules; all by default")
    parser.add_argument("--write", metavar="FILE", type=Path, help="put the table into this page, between its markers")
    options = parser.parse_args()
    lines, off = list(HEADING), []
    print(*HEADING, sep="\n")
    for result in measured(options.rules):
        lines.append(result.as_markdown())
        print(lines[-1], flush=True)
        if not result.is_true:
            off.append(f"{result.program}, {result.size}")
    version = ".".join(map(str, sys.version_info[:2]))
    lines += [
        "",
        f"Python {version}. Not within a factor of {WITHIN}, or above what was claimed at most: {'; '.join(off) or 'none'}.",
    ]
    print(*lines[-2:], sep="\n")
    if options.write:
        options.write.write_text(with_table(options.write.read_text(), lines))


if __name__ == "__main__":
    main()
