"""Saved sessions and traces that were changed by hand: each is one clear error, or everything can be made of it."""

import copy
import gzip
import io
import json
import random
import tracemalloc
import zipfile

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function, validate
from mindtorch_v2.profiler.model.session import Session
from mindtorch_v2.profiler.opening import open_recording
from mindtorch_v2.profiler.opening.trace_reader import NotATraceError, TraceReader
from mindtorch_v2.profiler.output import chrome_trace, report
from mindtorch_v2.profiler.output.event_list import EventList


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A session file with every column that a program can have."""
    path = tmp_path_factory.mktemp("recorded") / "s.session"
    model = torch.nn.Linear(4, 2)
    options = dict.fromkeys(("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules"), True)
    with profile(**options) as prof, record_function("scope"):
        model(torch.ones(3, 4)).sum().backward()
    prof.session.head(16).save(path)
    return path.read_bytes()


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def make_everything(session, folder):
    """What users make of a session."""
    events = EventList.of(session)
    EventList.averages_of(session).table()
    chrome_trace.write(session, folder / "trace.json")
    return len(events)


def test_a_good_one(tmp_path, recorded):
    (tmp_path / "s").write_bytes(recorded)
    session = Session.load(tmp_path / "s")
    assert session.memory is not None
    assert session.flow is not None
    assert make_everything(session, tmp_path) > 0


COLUMN_CHANGES = {
    "label": (-1, 10**6),
    "track": (-1, 9),
    "inputs": (-2, 10**6),
    "stack": (-2, 10**6),
    "depth": (-1, 99),
    "end_ns": (0, 2**63 - 1),
    "start_ns": (-(2**63), 2**63 - 1),
    "memory.track": (-1, 9),
    "memory.event": (-2, 10**6),
    "memory.time_ns": (2**63 - 1,),
    "flow.operand_row": (-1, 10**6),
    "flow.role": (-1, 77),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in COLUMN_CHANGES.items() for value in values])
def test_columns_that_point_nowhere(tmp_path, recorded, name, value):
    members = members_of(recorded)
    column = np.load(io.BytesIO(members[f"{name}.0.npy"]))
    if not len(column):
        column = np.zeros(1, column.dtype)
    column[len(column) // 2] = value
    write_members(tmp_path / "s", members | {f"{name}.0.npy": npy(column)})
    with pytest.raises(ValueError, match=r"s is no session file, or is damaged .*save the session again"):
        Session.load(tmp_path / "s")


def test_narrow_times_are_widened(tmp_path, recorded):
    """Numbers of 32 bits are right as they are, and too small to compute with."""
    members = members_of(recorded)
    times = {name: np.load(io.BytesIO(members[f"{name}.0.npy"])) for name in ("start_ns", "end_ns")}
    members |= {f"{name}.0.npy": npy((column - times["start_ns"][0]).astype("i4")) for name, column in times.items()}
    write_members(tmp_path / "s", members)
    session = Session.load(tmp_path / "s")
    assert session.start_ns.dtype == session.end_ns.dtype == np.int64
    report.write([session], tmp_path / "report.html")


@pytest.mark.parametrize("name", ["end_ns", "memory.size_bytes", "flow.held_bytes"])
def test_sums_that_no_number_holds(tmp_path, recorded, name):
    members = members_of(recorded)
    column = np.load(io.BytesIO(members[f"{name}.0.npy"]))
    column[:] = (1 << 62) - 1
    write_members(tmp_path / "s", members | {f"{name}.0.npy": npy(column)})
    with pytest.raises(ValueError, match=r"s is no session file, or is damaged .*add up to more than 64 bits hold"):
        Session.load(tmp_path / "s")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x01\x00\x40\x00{'descr': '<i4', 'fortran_order': False, 'shape': (",
        b"\x93NUMPY\x01\x00\x10\x00{'descr': '<i4'\n",
        npy(np.zeros(30, "f8")),
        npy(np.zeros((30, 2), "i4")),
        npy(np.zeros(30, "O")),
        npy(np.zeros(30, "u8")),
        npy(np.zeros(30, "i4")).replace(b"(30,)", b"(2**40,)"),
        npy(np.zeros(30, "i4")).replace(b"(30,), ", b"(9999,)"),
        npy(np.zeros(30, "i4"))[:-1],
    ],
)
def test_columns_that_are_none(tmp_path, recorded, content):
    write_members(tmp_path / "s", members_of(recorded) | {"label.0.npy": content})
    with pytest.raises(ValueError, match=r"s is no session file, or is damaged"):
        Session.load(tmp_path / "s")


@pytest.mark.parametrize(
    "change",
    [
        {"frames": []},
        {"stacks": [[10**6]] * 1000},
        {"stacks": [["a"]] * 1000},
        {"labels": [["f", "no kind", 0, ""]] * 1000},
        {"labels": [[1, "op", 0, ""]] * 1000},
        {"tracks": [[1, 2, 3, 4, 5]] * 10},
        {"tracks": [["x", 1, "", "CPU", 0]] * 10},
        {"inputs": [[{"tensor": [["a"], [1], "float32"]}]] * 1000},
        {"inputs": [[{"tensor": [[1], [1, 2], "float32"]}]] * 1000},
        {"inputs": [[{"unknown": 1}]] * 1000},
        {"info": {"pid": "text"}},
        {"info": {"metadata": 3}},
        {"info": {"live_bytes": {"tuple": [3]}}},
        {"version": "1"},
        {"version": None},
        {"chunks": {"label": 10**9}},
        {"chunks": {"label": -1}},
        {"chunks": {"../x": 1}},
        {"chunks": []},
    ],
)
def test_tables_that_do_not_fit(tmp_path, recorded, change):
    members = members_of(recorded)
    tables = json.loads(members["session.json"])
    for name, value in change.items():
        tables[name] = tables[name] | value if isinstance(value, dict) else value
    write_members(tmp_path / "s", members | {"session.json": json.dumps(tables).encode()})
    with pytest.raises(ValueError, match=r"s is no session file, or is damaged"):
        Session.load(tmp_path / "s")


def test_small_files_take_little_memory(tmp_path, recorded):
    members = members_of(recorded)
    zeros = npy(np.zeros(20 << 20, "i8"))
    for bomb in ({"start_ns.0.npy": zeros}, {"session.json": b"[" + b"[]," * (6 << 20) + b"[]]"}):
        write_members(tmp_path / "s", members | bomb, zipfile.ZIP_DEFLATED)
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match="larger than the file can hold"):
                Session.load(tmp_path / "s")
            assert tracemalloc.get_traced_memory()[1] < 50_000_000
        finally:
            tracemalloc.stop()


def test_texts_that_nest_without_end(tmp_path, recorded):
    deep = b"[" * 100_000 + b"]" * 100_000
    write_members(tmp_path / "s", members_of(recorded) | {"session.json": deep})
    with pytest.raises(ValueError, match=r"s is no session file, or is damaged"):
        Session.load(tmp_path / "s")


class Fuzz:
    """Mutations of a session file."""

    VALUES = (
        -(2**63),
        -2,
        -1,
        0,
        1,
        2,
        7,
        10**6,
        2**31 - 1,
        2**62,
        2**63 - 1,
        "",
        "x",
        None,
        [],
        {},
        1.5,
        True,
        [[]],
        {"tuple": []},
    )

    def __init__(self, content, seed):
        self.random = random.Random(seed)
        self.whole = content
        self.members = members_of(content)
        self.tables = json.loads(self.members["session.json"])

    def write(self, path, number):
        kinds = (self.flipped, self.cut, self.column, self.table, self.swapped)
        kinds[number % len(kinds)](path)

    def flipped(self, path):
        content = bytearray(self.whole)
        for _ in range(self.random.choice((1, 1, 4))):
            content[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
        path.write_bytes(content)

    def cut(self, path):
        first, last = sorted(self.random.randrange(len(self.whole)) for _ in range(2))
        path.write_bytes(self.whole[:first] + (self.whole[last:] if self.random.random() < 0.5 else b""))

    def column(self, path):
        name = self.random.choice([name for name in self.members if name.endswith(".npy")])
        if self.random.random() < 0.3:
            content = bytearray(self.members[name])
            content[self.random.randrange(len(content))] = self.random.randrange(256)
            write_members(path, self.members | {name: bytes(content)})
            return
        column = np.load(io.BytesIO(self.members[name])).astype("i8")
        for _ in range(self.random.choice((1, 3))):
            if len(column):
                column[self.random.randrange(len(column))] = self.random.choice(self.VALUES[:11])
        write_members(path, self.members | {name: npy(column[: self.random.choice((len(column), len(column), 1))])})

    def table(self, path):
        tables = copy.deepcopy(self.tables)
        at = tables
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            key = self.random.choice(keys)
            if isinstance(at[key], dict | list) and at[key] and self.random.random() < 0.85:
                at = at[key]
                continue
            at[key] = self.random.choice(self.VALUES)
            break
        write_members(path, self.members | {"session.json": json.dumps(tables).encode()})

    def swapped(self, path):
        one, other = self.random.sample(list(self.members), 2)
        changed = self.members | {one: self.members[other], other: self.members[one]}
        if self.random.random() < 0.3:
            del changed[one]
        write_members(path, changed)


def test_mutated_sessions_are_usable_or_refused(tmp_path, recorded):
    fuzz = Fuzz(recorded, seed=5)
    path = tmp_path / "s.session"
    usable, refused = 0, []
    for number in range(1_200):
        fuzz.write(path, number)
        try:
            session = Session.load(path)
        except ValueError as error:
            refused.append(str(error))
        else:
            make_everything(session, tmp_path)
            usable += 1
    assert all("s.session" in text for text in refused)
    assert usable > 100
    assert len(refused) > 500


class TestTraces:
    @pytest.fixture
    def trace(self, tmp_path, recorded):
        (tmp_path / "s").write_bytes(recorded)
        chrome_trace.write(Session.load(tmp_path / "s"), tmp_path / "trace.json")
        return (tmp_path / "trace.json").read_bytes()

    def test_a_compressed_bomb(self, tmp_path):
        path = tmp_path / "trace.json.gz"
        path.write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * (80 << 20) + b"]}", 1))
        tracemalloc.start()
        try:
            with pytest.raises(NotATraceError, match=r"trace\.json\.gz is no trace.*larger"):
                list(TraceReader(path))
            assert tracemalloc.get_traced_memory()[1] < 220_000_000
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize(
        "row", ["[" * 5_000 + "]" * 5_000, '{"a":' * 800 + "1" + "}" * 800, "[" * 900 + "]" * 900, "9" * 5_000]
    )
    def test_rows_that_nest_deep(self, tmp_path, row):
        (tmp_path / "trace.json").write_text('{"traceEvents": [' + row + "]}")
        assert validate(tmp_path / "trace.json")

    def test_durations_that_no_clock_tells(self, tmp_path):
        rows = [{"ph": "X", "cat": "cpu_op", "name": "f", "pid": 1, "tid": i, "ts": 0, "dur": 2**50} for i in range(4)]
        (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": rows}))
        with pytest.raises(ValueError, match=r"trace\.json cannot be read as a recording: its durations add up"):
            open_recording(tmp_path / "trace.json")

    def test_mutated_traces_are_judged(self, tmp_path, trace):
        chooser = random.Random(7)
        path = tmp_path / "changed.json"
        tokens = [b"null", b"-1", b"1e999", b'"x"', b"[]", b"{}", b"true", b",", b"}", b'"ts":"x"', b"99999999999999999999"]
        for number in range(300):
            content = bytearray(trace)
            for _ in range(chooser.choice((1, 3))):
                at = chooser.randrange(len(content))
                content[at : at + chooser.randrange(6)] = chooser.choice(tokens)
            path.write_bytes(gzip.compress(content)[: chooser.choice((10**9, 50))] if number % 10 == 0 else content)
            assert isinstance(validate(path), list)
