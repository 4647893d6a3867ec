"""What is recorded of a program: its steps, found from optimizers, by a schedule and up to limits."""

import threading
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import schedule
from mindtorch_v2.profiler.bounds import Bounds
from mindtorch_v2.profiler.capture import capture
from mindtorch_v2.profiler.model.session import Session
from mindtorch_v2.profiler.options import Options
from mindtorch_v2.profiler.results import Results
from mindtorch_v2.profiler.spool.reader import read_spool
from mindtorch_v2.profiler.whole_program.program_recording import UNLIMITED, WARMUP_STEPS, ProgramRecording, TimeLimit


def trainer(width=4):
    model = torch.nn.Linear(width, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        model(torch.ones(2, width)).sum().backward()
        optimizer.step()

    return step


@pytest.fixture
def recording():
    """Makes recordings, and ends them whatever happens."""
    made = []

    def make(*, schedule=None, time_limit=UNLIMITED, steps=True, with_stack=False, **bounds):
        options = Options(acc_events=True, with_stack=with_stack, bounds=Bounds(**bounds))
        made.append(ProgramRecording(options, schedule=schedule, time_limit=time_limit, steps=steps))
        return made[-1]

    yield make
    for each in made:
        each.end()


def steps_of(session: Session) -> list[int]:
    return sorted(
        {int(label.name.removeprefix("ProfilerStep#")) for label in session.labels if label.name.startswith("ProfilerStep#")}
    )


def count(session: Session, name: str) -> int:
    return sum(session.labels[i].name == name for i in session.label)


def test_a_step_ends_with_the_step_of_an_optimizer(recording):
    running, step = recording(), trainer()
    running.begin()
    for _ in range(3):
        step()
    running.end()
    assert running.steps == 3
    assert steps_of(running.session) == [0, 1, 2, 3]  # what comes after the last step is in one of its own
    (addmm,) = {i for i, label in enumerate(running.session.labels) if label.name == "aten::addmm"}
    assert running.session.step[running.session.label == addmm].tolist() == [0, 1, 2]


def test_the_optimizer_is_inside_its_step(recording):
    running, step = recording(), trainer()
    running.begin()
    step()
    step()
    running.end()
    around = [event.cpu_parent.name for event in Results(running.session).events() if event.name == "Optimizer.step#SGD.step"]
    assert around == ["ProfilerStep*", "ProfilerStep*"]


def test_of_two_optimizers_the_first_counts(recording):
    running, one, other = recording(), trainer(), trainer()
    running.begin()
    for _ in range(2):
        one()
        other()
    running.end()
    assert running.steps == 2


def test_without_an_optimizer_there_are_no_steps(recording):
    running = recording()
    running.begin()
    torch.ones(2).sin()
    running.end()
    assert [running.session.labels[i].name for i in running.session.label] == ["aten::ones", "aten::sin"]
    assert running.ended_by == ""


def test_a_schedule_picks_the_steps(recording):
    running, step = recording(schedule=schedule(wait=1, warmup=1, active=2, repeat=2)), trainer()
    running.begin()
    for _ in range(9):
        step()
    running.end()
    assert steps_of(running.session) == [2, 3, 6, 7]
    assert count(running.session, "aten::addmm") == 4


def test_a_limit_of_events_ends_it_with_the_step(recording):
    running, step = recording(max_events=20), trainer()
    running.begin()
    for _ in range(5):
        step()
    assert running.ended_by == "20 events"
    per_step = len(running.session) / running.ended_in_step
    assert 20 <= len(running.session) < 20 + per_step
    assert count(running.session, "aten::addmm") == running.ended_in_step < 5


def test_a_limit_of_bytes_ends_it_with_the_step(recording):
    running, step = recording(max_bytes=20 * 40), trainer()
    running.begin()
    for _ in range(5):
        step()
    assert running.ended_by == "800 bytes of records"
    assert count(running.session, "aten::addmm") == running.ended_in_step < 5


@pytest.mark.parametrize("with_spool", [False, True])
def test_the_first_events_are_kept_where_memory_is_short(recording, tmp_path, with_spool):
    x = torch.ones(2)
    running = recording(max_events=10, steps=False, **({"spool": tmp_path / "run.spool"} if with_spool else {}))
    with running._lock:  # no limit ends it
        running.begin()
        for _ in range(20):
            x + x
        capture.active._records.drop_all()
        x * x
        with pytest.warns(UserWarning, match="not kept") as told:
            running.end()
    assert count(running.session, "aten::add") == 20  # a step is whole, so more than ten
    advice = "" if with_spool else ", or give spool"
    assert [str(w.message) for w in told] == [
        f"1 events were not kept: memory was short; record fewer steps (torch.profiler.schedule){advice}"
    ]


def test_the_last_events_are_kept_and_nothing_ends(recording):
    running, step = recording(max_events=12, keep="last"), trainer()
    running.begin()
    for _ in range(20):
        step()
    running.end()
    assert (running.ended_by, running.steps) == ("", 20)
    assert len(running.session) == 12
    assert dict(running.session.info.dropped)["max_events"] > 100
    assert steps_of(running.session)[-1] >= 19


def test_a_limit_of_seconds_begins_after_the_warm_up(recording, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    running, step = recording(time_limit=TimeLimit(seconds=10)), trainer()
    running.begin()
    for _ in range(WARMUP_STEPS):
        now[0] += 60
        step()
    assert running.ended_by == ""
    now[0] += 9
    step()
    assert running.ended_by == ""
    now[0] += 1
    step()
    assert running.ended_by == "10 seconds"


@pytest.mark.parametrize("with_stack", [False, True])
def test_a_program_without_steps_is_ended_by_the_limit_too(recording, with_stack):
    running = recording(max_events=200, with_stack=with_stack)
    running.begin()
    x = torch.ones(2)
    deadline = time.monotonic() + 60
    while not running.ended_by and time.monotonic() < deadline:
        x.sin()
    assert running.ended_by == "200 events"
    recorded = len(running.session)
    x.sin()
    assert len(running.session) == recorded
    with torch.profiler.profile(with_stack=with_stack) as prof:  # nothing is left behind
        x.cos()
    assert "aten::cos" in [event.name for event in prof.events()]


def test_the_program_does_not_meet_the_thread_that_looks_after_limits(recording):
    before = set(threading.enumerate())  # of which some may end meanwhile
    running = recording(max_events=10**9)
    running.begin()
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("rests", [False, True])
@pytest.mark.parametrize("with_stack", [False, True])
def test_a_spool_without_an_optimizer_has_no_steps_either(recording, tmp_path, with_stack, rests):
    """The process may be killed when the recording has ended: the spool is what it leaves."""
    running, x = recording(spool=tmp_path / "run.spool", with_stack=with_stack), torch.ones(2)
    running.begin()
    x.sin()
    if rests:
        running.rest()
        running.go_on()
        x.sin()
    running.end()
    left = read_spool(running.spool).session
    assert steps_of(left) == steps_of(running.session) == []
    assert count(left, "aten::sin") == 1 + rests


def test_the_first_step_is_whole_where_the_optimizer_comes_late(recording):
    running, step = recording(), trainer()
    running.begin()
    running.rest()
    running.go_on()
    for _ in range(2):
        step()
    running.end()
    assert count(running.session, "ProfilerStep#0") == 1


def test_it_rests_while_another_profiler_records(recording):
    running, step = recording(), trainer()
    running.begin()
    step()
    running.rest()
    with torch.profiler.profile() as prof:
        step()
    running.go_on()
    step()
    running.end()
    assert count(prof.session, "aten::addmm") == 1
    assert count(running.session, "aten::addmm") == 2
    assert running.steps == 3  # steps go on meanwhile
