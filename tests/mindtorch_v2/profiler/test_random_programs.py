"""Random programs of scopes and operators over several threads, recorded for real."""

import tempfile
import threading
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function, validate

a, b = torch.ones(2, 3), torch.ones(3, 2)
# what is called → the events it makes, outermost first
CALLS = {
    "add": (lambda: a + a, ["aten::add"]),
    "mm": (lambda: torch.mm(a, b), ["aten::mm"]),
    "linear": (lambda: torch.nn.functional.linear(a, a), ["aten::linear", "aten::t", "aten::matmul", "aten::mm"]),
    "raises": (lambda: torch.mm(a, a), ["aten::mm"]),
}

programs = st.recursive(
    st.lists(st.sampled_from(sorted(CALLS)), max_size=4),
    lambda inner: st.lists(
        st.one_of(st.sampled_from(sorted(CALLS)), st.tuples(st.sampled_from(["s", "t", 'u"\\\n']), inner, st.booleans())),
        max_size=4,
    ),
    max_leaves=20,
)


class LeftError(Exception):
    pass


def run(program):
    """Operators by name; a scope is its name, what is inside, and whether it is left by an exception."""
    for part in program:
        if isinstance(part, str):
            try:
                CALLS[part][0]()
            except RuntimeError:
                assert part == "raises"
        else:
            name, inside, raises = part
            try:
                with record_function(name):
                    run(inside)
                    if raises:
                        raise LeftError
            except LeftError:
                pass


def expected(program):
    """Names of the events of a program, in order of their starts."""
    for part in program:
        if isinstance(part, str):
            yield from CALLS[part][1]
        else:
            yield part[0]
            yield from expected(part[1])


@pytest.mark.parametrize("options", [{}, {"record_shapes": True}, {"record_shapes": True, "with_stack": True}])
@settings(max_examples=30, deadline=None)
@given(program=st.lists(programs, min_size=1, max_size=4))
def test_every_program(options, program):
    with profile(**options) as prof:
        threads = [threading.Thread(target=run, args=(part,), name=f"t{i}") for i, part in enumerate(program[1:])]
        for t in threads:
            t.start()
        run(program[0])
        for t in threads:
            t.join()
    session = prof.session
    kinds = [session.labels[i].kind for i in session.label.tolist()]

    # every operator and scope once, on its thread, in its order
    found = {}
    for label, track, kind in zip(session.label.tolist(), session.track.tolist(), kinds, strict=True):
        if kind != "python_function":
            found.setdefault(session.tracks[track].name, []).append(session.labels[label].name)
    wanted = {"MainThread": list(expected(program[0]))} | {f"t{i}": list(expected(p)) for i, p in enumerate(program[1:])}
    assert found == {name: events for name, events in wanted.items() if events}

    # parents contain their children, which do not overlap; self times are what is left
    events = prof.events()
    for e in events:
        last = e["start_ns"]
        for child in e.cpu_children:
            assert child.cpu_parent is e
            assert last <= child["start_ns"] <= child["end_ns"] <= e["end_ns"]
            last = child["end_ns"]
        own = e["duration_ns"] - sum(child["duration_ns"] for child in e.cpu_children)
        assert own >= 0
        assert e.self_cpu_time_total >= 0
        if "python_function" not in kinds:  # those inside an operator leave their time to it
            assert round(e.self_cpu_time_total * 1000) == own

    # sums are exact
    rows = prof.key_averages()
    assert Counter({r.key: r.count for r in rows}) == Counter(e.key for e in events)
    for r in rows:
        assert round(r.cpu_time_total * 1000) == sum(e["duration_ns"] for e in events if e.key == r.key)
    roots = [e for e in events if e.cpu_parent is None]
    assert round(events.self_cpu_time_total * 1000) == sum(e["duration_ns"] for e in roots)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        prof.export_chrome_trace(str(path))
        assert validate(path) == []
