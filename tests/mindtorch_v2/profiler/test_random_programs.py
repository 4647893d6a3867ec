"""Random programs, recorded for real: a fixed choice of them. `python -m tests.mindtorch_v2.profiler.program_checks` runs thousands."""

import pytest

import mindtorch_v2 as torch

from . import random_programs
from .program_checks import check_memory, check_nesting, check_program, recorded_steps
from .random_programs import MODES, Part, Program

SEEDS = range(50)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_program(seed):
    check_program(seed)


def test_the_choice_has_every_kind_of_part_and_every_mode():
    programs = [Program.of(seed) for seed in SEEDS]
    kinds = {value for value in vars(random_programs).values() if isinstance(value, type) and issubclass(value, Part)}
    assert kinds - {type(part) for program in programs for part in program.all_parts()} == {Part}
    assert {mode for program in programs for mode in program.options} == {*MODES, "acc_events"}
    assert sum(program.schedule is not None for program in programs) > 5


def test_steps_of_a_schedule():
    assert recorded_steps(9, wait=1, warmup=1, active=2, repeat=2, skip_first=1) == [[3, 4], [7, 8]]
    assert recorded_steps(5, wait=0, warmup=1, active=1, repeat=1, skip_first=0) == [[1]]


class TestDefects:
    """A recording that is changed in one place does not pass."""

    @pytest.fixture
    def session(self):
        with torch.profiler.profile(profile_memory=True) as prof, torch.profiler.record_function("outer"):
            kept = torch.ones(3) + torch.ones(3)
        assert kept.tolist() == [2, 2, 2]
        return prof.session

    @pytest.mark.parametrize(
        ("column", "row", "change"),
        [("start_ns", 1, -10_000_000), ("end_ns", 1, 10_000_000), ("depth", 2, 1), ("depth", -1, -1), ("end_ns", 0, -(10**9))],
    )
    def test_times_and_depths(self, session, column, row, change):
        check_nesting(session)
        changed = getattr(session, column).copy()
        changed[row] += change
        with pytest.raises(AssertionError):
            check_nesting(session.replace(**{column: changed}))

    @pytest.mark.parametrize("column", ["size_bytes", "total_bytes", "time_ns"])
    def test_memory(self, session, column):
        check_memory(session)
        changed = getattr(session.memory, column).copy()
        changed[0] += 1 << 60
        with pytest.raises(AssertionError):
            check_memory(session.replace(memory=session.memory._replace(**{column: changed})))
