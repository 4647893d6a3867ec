"""Memory that runs out while a log is turned into a session: what there is memory for is kept, and the rest is counted."""

import contextlib
import gc
import random
import sys

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._allocation_failure import give_back, reserve
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.capture import capture, columns, draining, log_records
from mindtorch_v2.profiler.capture.memory import free_notes
from mindtorch_v2.profiler.capture.memory.storages import Noted, Notes, Storages, changes_of, without_early
from mindtorch_v2.profiler.capture.operators.operators import Operators
from mindtorch_v2.profiler.capture.operators.recorder import Log
from mindtorch_v2.profiler.capture.reserve import SIZE

x = torch.ones(2)


def log_of(count, **wishes):
    log = Log(**{name: wishes.get(name, False) for name in ("shapes", "stacks", "storages", "heap", "operands")})
    extras = (7,) * (log.width - 5 - log.operands)
    for i in range(count):
        log.records.extend((1, i * 1e-6, i * 1e-6 + 1e-7, 5, i, *extras, *[(i, -i)] * log.operands))
    return log


class Budget:
    """An allocation that fails when it asks for more bytes than are left."""

    def __init__(self, function, fails):
        self.function, self.fails = function, fails

    def __call__(self, *args, **kwargs):
        if self.fails(*args, **kwargs):
            raise MemoryError
        return self.function(*args, **kwargs)


@pytest.mark.parametrize("wishes", [{}, {"shapes": True, "stacks": True, "storages": True, "operands": True}])
def test_all_records_are_kept_in_order(wishes, monkeypatch):
    monkeypatch.setattr(log_records, "PIECE", 100)
    log = log_of(1050, **wishes)
    found = log_records.drain(log)
    assert found.sequence.tolist() == list(range(1050))
    assert found.start.tolist() == [i * 1000 for i in range(1050)]
    assert found.lost == 0
    assert log.records == []
    if wishes:
        assert found.operands.tolist() == [n for i in range(1050) for n in (i, -i)]
        assert found.operand_count.tolist() == [2] * 1050


def test_records_that_are_added_meanwhile_are_not_lost():
    class Growing(list):
        """A list to which another thread adds a record after each look at its length."""

        def __len__(self):
            length = super().__len__()
            self.extend((1, 0.0, 0.0, 5, -1))
            return length

    log = log_of(10)
    log.records = Growing(log.records)
    found = log_records.drain(log)
    assert found.lost == 0
    assert found.sequence.tolist() == list(range(10))


def test_pieces_get_smaller_where_memory_is_short(monkeypatch):
    monkeypatch.setattr(log_records, "PIECE", 1000)
    monkeypatch.setattr(
        log_records, "_converted", Budget(log_records._converted, lambda records, log: len(records) > 100 * log.width)
    )
    found = log_records.drain(log_of(3000))
    assert found.sequence.tolist() == list(range(3000))
    assert found.lost == 0


@pytest.mark.parametrize("wishes", [{}, {"shapes": True, "operands": True}])
def test_what_was_converted_before_memory_ran_out_is_kept(wishes, monkeypatch):
    monkeypatch.setattr(log_records, "PIECE", 100)
    converted = []

    def fails(records, log):
        converted.append(len(records))
        return len(converted) > 4

    monkeypatch.setattr(log_records, "_converted", Budget(log_records._converted, fails))
    log = log_of(1050, **wishes)
    found = log_records.drain(log)
    assert found.sequence.tolist() == list(range(650, 1050))
    assert found.lost == 650
    assert log.records == []


@pytest.mark.parametrize("wishes", [{}, {"shapes": True, "operands": True}])
def test_columns_for_which_there_is_no_memory_are_joined_in_part(wishes, monkeypatch):
    monkeypatch.setattr(log_records, "PIECE", 100)
    monkeypatch.setattr(np, "concatenate", Budget(np.concatenate, lambda arrays: sum(map(len, arrays)) > 800))
    found = log_records.drain(log_of(1050, **wishes))
    assert found.sequence.tolist()[-1] == 1049
    assert found.lost == 1050 - len(found.sequence) > 0
    if wishes:
        assert found.operands.tolist() == [n for i in found.sequence.tolist() for n in (i, -i)]


def recorded(monkeypatch):
    """A profiler that has recorded 200 additions and 100 products, in pieces of 100."""
    options = {"record_shapes": True, "with_stack": True, "profile_memory": True}
    with profile(**options):  # which compiles the operators
        x * (x + x)
    prof = profile(**options)
    prof.start()
    kept = [x + x for _ in range(200)]
    kept += [x * x for _ in range(100)]
    monkeypatch.setattr(log_records, "PIECE", 100)
    return prof, kept


def names(prof):
    return [e.name for e in prof.events() if e["kind"] == "op"]


def test_the_session_has_what_was_kept_and_says_what_is_lost(monkeypatch):
    prof, _ = recorded(monkeypatch)
    converted = []
    fails = Budget(log_records._converted, lambda records, log: converted.append(1) or len(converted) > 1)
    monkeypatch.setattr(log_records, "_converted", fails)
    with pytest.warns(UserWarning, match=r"memory ran out: \d+ of \d+ recorded events could not be kept, the earliest ones"):
        prof.stop()
    assert set(names(prof)) == {"aten::mul"}
    assert len(names(prof)) <= 100


def test_a_session_for_which_there_is_no_memory_has_the_later_events(monkeypatch):
    prof, kept = recorded(monkeypatch)
    tried = []
    monkeypatch.setattr(columns, "_session", Budget(columns._session, lambda records, context: tried.append(1) or len(tried) == 1))
    with pytest.warns(UserWarning, match=r"memory ran out: \d+ of \d+ recorded events"):
        prof.stop()
    assert names(prof)[-100:] == ["aten::mul"] * 100
    assert 100 < len(names(prof)) < 300
    assert all(e["input_shapes"][:2] == [[2], [2]] for e in prof.events() if e["kind"] == "op")
    with profile(profile_memory=True) as now:
        x + x
    assert prof.session.memory.total_bytes[-1] == now.session.info.live_bytes[0][1]
    assert 100 * x.nbytes <= prof.session.memory.size_bytes.sum() < sum(t.nbytes for t in kept)
    assert len(prof.session.flow.operand_address) == 2 * len(names(prof))


def test_notes_for_which_there_is_no_memory_are_given_up_before_the_recording(monkeypatch):
    prof = profile(profile_memory=True)
    prof.start()
    for _ in range(100):
        x + x
    for _ in range(100):
        x * x
    monkeypatch.setattr(Storages, "_noted", Budget(Storages._noted, lambda: True))
    with pytest.warns(UserWarning, match=r"memory ran out: .*changes of memory could not be kept"):
        prof.stop()
    assert set(names(prof)) == {"aten::mul"}
    assert prof.session.memory is None
    assert free_notes.notes == {}
    monkeypatch.undo()
    with profile(profile_memory=True) as now:
        y = x + x
    assert now.session.memory.size_bytes.tolist() == [y.nbytes]


def test_early_changes_that_are_summed_up_are_told(monkeypatch):
    with profile(profile_memory=True):
        torch.tensor([1.0])
    prof = profile(profile_memory=True)
    prof.start()
    for _ in range(100):
        torch.tensor([1.0])
    tried = []
    monkeypatch.setattr(columns, "_session", Budget(columns._session, lambda records, context: tried.append(1) or len(tried) == 1))
    with pytest.warns(UserWarning, match="memory ran out: the earliest changes of memory are known by their sum alone; "):
        prof.stop()
    assert 0 < len(prof.session.memory.size_bytes) < 200


def bytes_of(found):
    """What columns take, and tuples of them."""
    if isinstance(found, tuple):
        return sum(map(bytes_of, found))
    return found.nbytes if isinstance(found, np.ndarray) else 0


def test_changes_of_memory_survive_in_a_given_budget(monkeypatch):
    """Of 3,000 operators in 150 kB: the later events, the later changes, and what all of them come to."""
    with profile(profile_memory=True):
        x + x
    prof = profile(profile_memory=True)
    prof.start()
    for _ in range(2900):
        x + x
    kept = [x + x for _ in range(100)]

    def fails(records, context):
        return bytes_of((records, context.found.memory)) > 150_000

    monkeypatch.setattr(columns, "_session", Budget(columns._session, fails))
    with pytest.warns(UserWarning, match="the earliest changes of memory are known by their sum alone; ") as told:
        prof.stop()
    monkeypatch.undo()
    lost = 3000 - len(names(prof))
    assert 1000 < lost < 2500
    assert [str(w.message).partition(";")[0] for w in told] == [
        f"memory ran out: {lost:,} of 3,000 recorded events could not be kept, the earliest ones"
    ]
    memory, (_, held) = prof.session.memory, prof.session.info.live_bytes[0]
    assert len(memory.size_bytes) > 1000
    assert memory.total_bytes[-1] - held == memory.size_bytes.sum()
    with profile(profile_memory=True) as now:
        x + x
    assert memory.total_bytes[-1] == now.session.info.live_bytes[0][1]
    assert len(kept) * x.nbytes <= memory.size_bytes.sum() + held


@pytest.mark.parametrize(("free_bytes", "survive"), [(1_000_000, True), (10_000, False)])
def test_notes_are_given_up_meanwhile_where_they_take_more_than_is_left(free_bytes, survive):
    gc.collect()
    prof = profile(profile_memory=True)
    prof.start()
    (storages,) = [source for source in capture.active._sources if isinstance(source, Storages)]
    for _ in range(1000):
        x + x
    storages.meanwhile(free_bytes)
    y = x + x
    lost = pytest.warns(UserWarning, match="memory ran out: changes of memory could not be kept; ")
    with contextlib.nullcontext() if survive else lost:
        prof.stop()
    assert names(prof) == ["aten::add"] * 1001
    if survive:
        assert len(prof.session.memory.size_bytes) == 2001
        assert prof.session.memory.size_bytes[-1] == y.nbytes
    else:
        assert prof.session.memory is None


@pytest.mark.parametrize("lost_in", ["the log", "the columns"])
def test_results_of_lost_operators_are_said_to_be_missing(monkeypatch, lost_in):
    prof = profile(profile_memory=True)
    prof.start()
    kept = [x + x for _ in range(1600)]
    if lost_in == "the log":
        fails, name = (lambda log, *_: len(log.records) == 1600 * log.width), "drain"
    else:
        fails, name = (lambda records, *_: len(records.label) == 1600), "_with_results"
    monkeypatch.setattr(log_records, name, Budget(getattr(log_records, name), fails))
    with pytest.warns(UserWarning, match="memory ran out: ") as told:
        prof.stop()
    monkeypatch.undo()
    lost = 1600 - len(names(prof))
    assert lost > 0
    assert f"; live memory leaves out the results of {lost:,} of them; " in str(told[0].message)
    with profile(profile_memory=True) as now:
        pass
    assert now.session.info.live_bytes[0][1] - prof.session.memory.total_bytes[-1] == lost * kept[0].nbytes


def test_leaks_say_that_changes_could_not_be_kept(monkeypatch):
    prof = profile(profile_memory=True)
    prof.start()
    x + x
    monkeypatch.setattr(Storages, "_noted", Budget(Storages._noted, lambda: True))
    with pytest.warns(UserWarning, match="memory ran out"):
        prof.stop()
    with pytest.raises(ValueError, match="memory ran out before they were kept; then record fewer steps at a time"):
        prof.leaks()


def test_notes_are_forgotten_when_they_have_become_columns(monkeypatch):
    held = []
    session = columns._session

    def look(records, context):
        held.extend(storages._pieces + [storages._ends._addresses])
        return session(records, context)

    prof = profile(profile_memory=True)
    prof.start()
    (storages,) = [source for source in capture.active._sources if isinstance(source, Storages)]
    for _ in range(10):
        torch.tensor([1.0])
    monkeypatch.setattr(columns, "_session", look)
    prof.stop()
    assert [len(each) for each in held] == [0]
    assert len(prof.session.memory.size_bytes) == 20


def test_the_reserve_is_given_back_before_anything_is_ended(monkeypatch):
    prof = profile()
    prof.start()
    assert len(reserve) == 1
    kept = []
    pause = Operators.pause
    monkeypatch.setattr(Operators, "pause", lambda self, now: (kept.extend(reserve), pause(self, now))[1])
    prof.stop()
    assert kept == []


def test_the_reserve_is_taken_again_where_there_is_enough(monkeypatch):
    monkeypatch.setattr(draining, "INTERVAL_S", 1e6)
    with profile(sample_steps=2) as prof:
        kept = capture.active._draining._sources[0]
        while not reserve:
            prof.step()
        give_back()
        kept.meanwhile(SIZE)
        assert not reserve
        kept.meanwhile(1 << 40)
        assert reserve
        while reserve:
            prof.step()
        kept.meanwhile(1 << 40)  # while nothing is collected
        assert not reserve
    kept.meanwhile(1 << 40)
    assert not reserve


def test_the_reserve_is_given_back_when_an_allocation_fails():
    with profile():
        with pytest.raises(RuntimeError, match="can't allocate memory"):
            torch.zeros(1 << 60)
        assert reserve == []


def test_records_outlive_a_failure_to_find_their_results(monkeypatch):
    tried = []
    monkeypatch.setattr(
        log_records, "_with_results", Budget(log_records._with_results, lambda records, *_: tried.append(1) or len(tried) == 1)
    )
    found = log_records.drain(log_of(400, storages=True))
    assert found.sequence.tolist() == list(range(100, 400))
    assert found.lost == 100


def test_pieces_are_freed_while_columns_are_joined():
    log = log_of(300)
    pieces = log_records._pieces(log, 300)
    log_records._joined(pieces, log)
    assert all(len(column) == 0 for piece in pieces for column in piece)


PROGRAM = """
    import resource, sys, warnings
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import profile
    from mindtorch_v2.profiler.capture import draining

    draining.INTERVAL_S, draining.FASTEST = 1e6, 1.0  # nobody looks after memory meanwhile
    x = torch.ones(2)
    warnings.simplefilter("always")
    with profile() as prof:
        x + x
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    prof = profile(**{wished: True for wished in sys.argv[1:]})
    prof.start()
    resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), -1))
    done = 0
    try:
        while True:
            x + x
            done += 1
    except (MemoryError, RuntimeError) as error:
        failed = type(error).__name__
    prof.stop()
    kept = len(prof.session)
    print(done, kept, failed)
    assert done > 200_000
    assert kept > done * 0.4
    with profile() as after:
        x + x
    assert len(after.events()) == 1
"""


LONG = """
    import resource, sys, warnings
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import profile

    x, megabytes = torch.ones(2), int(sys.argv[1])
    count = 10_000 * megabytes
    with profile():
        x + x
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with profile(**{wished: True for wished in sys.argv[2:]}) as prof:
            resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20), -1))
            for _ in range(count):
                x + x
    kept, (reason, dropped) = prof.session, *prof.session.info.dropped
    assert reason == "memory"
    assert len(kept) + dropped in (count, count + 1), (len(kept), dropped)  # with stacks, the program itself
    assert len(kept) > 300 * megabytes
    assert [f"{dropped:,} events were not kept" in str(w.message) for w in told] == [True], told
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("megabytes", [120, 200])
@pytest.mark.parametrize("wishes", [[], ["with_stack"]], ids=["plain", "stacks"])
def test_a_long_recording_leaves_the_memory_to_the_program(run_python, wishes, megabytes):
    """Operators that do next to nothing: they outrun the thread that takes their records out of the log."""
    done = run_python(LONG, str(megabytes), *wishes)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("wishes", [[], ["with_stack"]], ids=["plain", "stacks"])
def test_a_recording_that_fills_the_memory(run_python, wishes):
    done = run_python(PROGRAM, *wishes)
    assert done.returncode == 0, done.stderr[-2000:]


WITH_MEMORY = """
    import re, resource, sys, warnings
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import profile
    from mindtorch_v2.profiler.capture import draining

    draining.INTERVAL_S, draining.FASTEST = 1e6, 1.0  # nobody looks after memory meanwhile
    x = torch.ones(2)
    with profile(profile_memory=True):
        x + x
    room = bytearray(4 << 20)  # which the program gives up when memory is full
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    prof = profile(profile_memory=True)
    prof.start()
    resource.setrlimit(resource.RLIMIT_AS, (used + (83 << 20), -1))
    done = 0
    try:
        while True:
            x + x
            done += 1
    except MemoryError:
        del room
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        prof.stop()
    text = " ".join(str(w.message) for w in told)
    lost = [int(count.replace(",", "")) for count in re.findall(r"([\\d,]+) of [\\d,]+ recorded events", text)]
    assert done > 10_000
    # whether there is memory for all of them or not: those that are missing are counted in one warning
    labels = prof.session.labels
    kept = sum(labels[number].kind == "op" for number in prof.session.label.tolist())
    assert kept + sum(lost) in (done, done + 1), (kept, done, text)
    assert [str(w.message)[:16] for w in told] == ["memory ran out: "] * (text != ""), text
    memory = prof.session.memory
    assert (memory is None) == ("changes of memory could not be kept" in text), text
    if memory is not None:
        (_, held), *_ = prof.session.info.live_bytes
        assert memory.total_bytes[-1] - held == memory.size_bytes.sum()
    with profile() as after:
        x + x
    assert len(after.events()) == 1
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_recording_of_memory_that_fills_it(run_python):
    done = run_python(WITH_MEMORY)
    assert done.returncode == 0, done.stderr[-2000:]


LONG_WITH_MEMORY = """
    import re, resource, warnings
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import profile

    x = torch.ones(2)
    with profile(profile_memory=True):
        x + x
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with profile(profile_memory=True) as prof:
            resource.setrlimit(resource.RLIMIT_AS, (used + (240 << 20), -1))
            for _ in range(1_200_000):
                x + x
    texts = [str(w.message) for w in told]
    dropped = dict(prof.session.info.dropped)
    assert list(dropped) == ["memory"]
    labels = prof.session.labels
    kept = sum(labels[number].kind == "op" for number in prof.session.label.tolist())
    lost = [int(count.replace(",", "")) for count in re.findall(r"([\\d,]+) of [\\d,]+ recorded events", texts[0])]
    assert kept + sum(lost) + dropped["memory"] == 1_200_000, (kept, dropped, texts)
    assert f"{dropped['memory']:,} events were not kept: without max_events, a recording keeps as many" in texts[-1], texts
    # of results that are not known, and of changes that there was no memory for, another warning tells
    assert [text[:16] for text in texts[:-1]] == ["memory ran out: "], texts
    assert (prof.session.memory is None) == ("changes of memory could not be kept" in texts[0]), texts
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_long_recording_of_memory_leaves_the_memory_to_the_program(run_python):
    done = run_python(LONG_WITH_MEMORY)
    assert (done.returncode, done.stderr) == (0, "")


def notes_of(rows):
    """Notes of arrays: time, address, bytes (-1 for a free)."""
    time, address, size = (
        (np.array(column, np.int64) for column in zip(*rows, strict=True)) if rows else [np.empty(0, np.int64)] * 3
    )
    return Notes(time, np.full(len(time), 5), address, size, np.full(len(time), -1))


@pytest.mark.parametrize("until", [-1, 0, 150, 333, 499, 1000])
def test_changes_until_a_moment_are_summed_up_exactly(until):
    """Arrays at ten addresses come and go, with one or two storages each."""
    chance, owners, size = random.Random(11), dict.fromkeys(range(1, 11), 0), {}
    made, freed, results = [], [], []
    for moment in range(500):
        address = chance.randrange(1, 11)
        if owners[address] and chance.random() < 0.6:
            owners[address] -= 1
            freed.append((moment, address, -1))
        else:
            size[address] = size[address] if owners[address] else chance.randrange(1, 99)
            owners[address] += 1
            chance.choice((made, results)).append((moment, address, size[address]))
    everything = Noted(notes_of([]), notes_of(made), notes_of(freed)), notes_of(results)
    whole = changes_of(*everything)
    later = changes_of(without_early(*everything, until), everything[1])
    is_later = whole.time_ns > until
    assert later.held_bytes.sum() == whole.size_bytes[~is_later].sum()
    for name in ("time_ns", "address", "size_bytes"):
        assert getattr(later, name).tolist() == getattr(whole, name)[is_later].tolist()


def test_nothing_is_handed_over_when_stopping_fails(monkeypatch):
    """A handler would write an empty trace over the last good one."""
    handed = []
    prof = profile(on_trace_ready=handed.append)
    prof.start()
    monkeypatch.setattr(log_records, "drain", Budget(log_records.drain, lambda *_: True))
    with pytest.raises(MemoryError):
        prof.stop()
    assert handed == []
    monkeypatch.undo()
    with profile() as after:
        x + x
    assert names(after) == ["aten::add"]
