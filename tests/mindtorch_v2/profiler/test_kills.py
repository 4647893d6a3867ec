"""Spooled recordings that are killed: a fixed choice of them. `python -m tests.mindtorch_v2.profiler.kill_checks` runs hundreds."""

import os

import numpy as np
import pytest

from mindtorch_v2.profiler import profile, record_function

from . import kill_checks
from .kill_checks import ENDS, FLAGS, OPERATORS, Killed

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")

SEEDS = (4, 5, 9, 11, 16)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_killed_program_did_is_in_its_file(seed):
    operators, _ = kill_checks.check_killed(seed)
    assert operators


def test_the_choice_has_most_ends_and_every_mode():
    chosen = [Killed.of(seed) for seed in SEEDS]
    assert len({killed.end for killed in chosen}) >= len(ENDS) - 1
    assert all(any(killed.options[flag] for killed in chosen) for flag in FLAGS)
    assert max(killed.threads for killed in chosen) > 1


class TestDefects:
    """A file that has something else than the program did does not pass."""

    KILLED = Killed(0, 1, dict.fromkeys(FLAGS, False), "abort", 1.0)

    def recorded(self, *, skip=(), change=()):
        operands = {size: kill_checks.torch.ones(size, size) for size in (1, 2, 3, 8, 100)}
        with profile() as prof:
            operators = self.KILLED.operators(0)
            for scope in range(3):
                with record_function(f"scope {scope}"):
                    for at in range(scope * 10, scope * 10 + 10):
                        name, size = next(operators)
                        if at in change:
                            name = next(other for other in OPERATORS if other != name)
                        if at not in skip:
                            OPERATORS[name](operands[size])
        tracks = tuple(track._replace(name=kill_checks.name_of(0)) for track in prof.session.tracks)
        return prof.session.replace(tracks=tracks)

    def check(self, session, *, noted=30, end=30.0):
        times = np.zeros(100)
        times[:noted] = np.arange(1, noted + 1)
        return kill_checks._check_thread(session, self.KILLED, 0, times, end)

    def test_a_whole_one_passes(self):
        assert self.check(self.recorded()) == 0

    @pytest.mark.parametrize("change", [{"skip": (12,)}, {"change": (12,)}, {"skip": range(28, 30)}])
    def test_an_operator_that_is_missing_or_another(self, change):
        with pytest.raises(AssertionError):
            self.check(self.recorded(**change))

    def test_more_than_the_program_made(self):
        with pytest.raises(AssertionError, match="more than were made"):
            self.check(self.recorded(), noted=20)

    def test_more_lost_than_the_last_second(self):
        with pytest.raises(AssertionError, match=r"operators of the last 3.00 s are missing"):
            self.check(self.recorded(), noted=34, end=34.0)
