"""Sessions saved and loaded again."""

import contextlib
import json
import os
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_v2.profiler.model import session_file
from mindtorch_v2.profiler.model.session import Frame, Info, MemoryLog, Session, TensorInput, Track, empty_session

from .by_hand import op, python_function, record, scope
from .same_session import assert_same
from .test_chrome_trace import recordings


def through_a_file(session, tmp_path) -> Session:
    session.save(tmp_path / "session.npz")
    return Session.load(tmp_path / "session.npz")


def full_session() -> Session:
    inputs = (
        *(TensorInput((2, 3), (3, 1), "float32"), [TensorInput((), (), "int64"), None], None, True, 1, -0.0, 2.5, "mean"),
        *([[1, [2.0, None]], ()], (1, "a"), float("nan"), float("-inf"), [float("inf")], 1 + 2j, complex("nan+infj"), 10**30),
    )
    stack = (Frame("a\udc80.py", 3, "f"), Frame("b.py", 4, "<module>"))
    info = Info(
        started_ns=10,
        stopped_ns=2**62,
        pid=42,
        parent_pid=41,
        command=("train.py", "--name", "\udc80"),
        environment={"Python": "3.11", "cores": 2},
        record_shapes=True,
        with_stack=True,
        trace_id="X",
        metadata={"a": [1, {"b": None}], "float": "text", "\x00": float("nan")},
        device_properties=({"id": 0}, {"id": 1}),
        distributed={"rank": 0},
    )
    events = [
        scope('\ud800 "quoted" \n', 100, 900, op("aten::f", 200, 300, inputs=inputs, stack=stack, sequence=2**40, overload="out")),
        python_function("x" * 5000, 1_000, 1_001, step=7, tid=2),
    ]
    log = MemoryLog(*(np.array(c) for c in ([150, 250], [0, 0], [2**47, 1], [64, -64], [64, 0], [0, -1])))
    return record(events, info=info).replace(memory=log, launch=np.array([-1, -1, 0], "i4"))


def test_everything_comes_back(tmp_path):
    assert_same(full_session(), through_a_file(full_session(), tmp_path))


def test_nothing_comes_back_too(tmp_path):
    assert_same(empty_session(), through_a_file(empty_session(), tmp_path))


@given(recordings())
def test_any_recording_comes_back(tmp_path_factory, session):
    assert_same(session, through_a_file(session, tmp_path_factory.mktemp("sessions")))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.tuples(values, values))
def test_any_arguments_come_back(tmp_path_factory, inputs):
    session = record([op("f", 0, 1, inputs=inputs)], info=Info(record_shapes=True))
    assert_same(session, through_a_file(session, tmp_path_factory.mktemp("sessions")))


def test_columns_in_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(session_file, "CHUNK_ROWS", 2)
    session = record([op("f", i, i + 1) for i in range(5)])
    session.save(tmp_path / "s.npz")
    assert_same(session, Session.load(tmp_path / "s.npz"))
    names = zipfile.ZipFile(tmp_path / "s.npz").namelist()
    assert [n for n in names if n.startswith("start_ns")] == ["start_ns.0.npy", "start_ns.1.npy", "start_ns.2.npy"]
    assert names[-1] == "session.json"


def test_numpy_opens_it(tmp_path):
    full_session().save(tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz") as file:
        assert file["start_ns.0"].tolist() == [100, 200, 1_000]
        assert json.loads(file["session.json"])["version"] == session_file.VERSION


def test_the_same_session_is_the_same_file(tmp_path):
    full_session().save(tmp_path / "a")
    full_session().save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_is_small(tmp_path):
    count = 20_000
    rng = np.random.default_rng(0)
    start = 1_794_788_172_254_987_123 + np.cumsum(rng.integers(500, 5_000, count))
    zeros = np.zeros(count, "i4")
    session = record([op("f", 0, 1)]).replace(
        **dict.fromkeys(("label", "track", "step"), zeros),
        start_ns=start,
        end_ns=start + 400,
        depth=zeros.astype("i4"),
        sequence=zeros.astype("i8") - 1,
    )
    session.save(tmp_path / "s.npz")
    assert os.path.getsize(tmp_path / "s.npz") / count < 12  # of 38 bytes at rest


class TestRefusals:
    @pytest.fixture
    def path(self, tmp_path):
        full_session().save(tmp_path / "s.npz")
        return tmp_path / "s.npz"

    def rewrite(self, path, change):
        """The file with its tables changed."""
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        tables = json.loads(members["session.json"])
        members["session.json"] = json.dumps(change(tables) or tables).encode()
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    @pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
    def test_a_part_of_a_file(self, path, share):
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])
        with pytest.raises(ValueError, match=r"s\.npz is no session file, or is damaged or cut off .*save the session again"):
            Session.load(path)

    def test_every_damaged_byte_is_noticed_or_harmless(self, path):
        content = path.read_bytes()
        for place in range(0, len(content), 37):
            path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
            with contextlib.suppress(ValueError):
                assert_same(Session.load(path), full_session())

    @pytest.mark.parametrize("content", [b"", b"hello", b"{}", b"PK\x03\x04", b"PK\x05\x06" + bytes(18)])
    def test_another_file(self, tmp_path, content):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(ValueError, match="other is no session file"):
            Session.load(tmp_path / "other")

    def test_an_npz_of_something_else(self, tmp_path):
        np.savez(tmp_path / "other.npz", a=np.arange(3))
        with pytest.raises(ValueError, match=r"other\.npz is no session file"):
            Session.load(tmp_path / "other.npz")

    def test_an_older_version(self, path):
        wanted = session_file.load(path)

        def as_before(tables):
            info = {name: value for name, value in tables["info"].items() if name != "adjusted"}
            return tables | {"version": 2, "labels": [label[:6] for label in tables["labels"]], "info": info}

        self.rewrite(path, as_before)
        found = session_file.load(path)
        assert (found.labels, repr(found.info), found.copies) == (wanted.labels, repr(wanted.info), None)  # a NaN is unlike itself

    def test_a_newer_version(self, path):
        self.rewrite(path, lambda tables: tables | {"version": 99})
        with pytest.raises(ValueError, match=r"s\.npz is of version 99 .* update mindtorch_v2"):
            Session.load(path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda tables: tables | {"format": "another"},
            lambda tables: tables | {"labels": []},
            lambda tables: tables | {"chunks": tables["chunks"] | {"start_ns": 2}},
            lambda tables: tables | {"info": {"unknown": 1}},
            lambda tables: [tables],
        ],
    )
    def test_tables_that_do_not_fit(self, path, change):
        self.rewrite(path, change)
        with pytest.raises(ValueError, match=r"s\.npz is no session file, or is damaged"):
            Session.load(path)

    def test_columns_of_different_lengths(self, path):
        session = full_session()
        session.replace(step=session.step[:-1]).save(path)
        with pytest.raises(ValueError, match=r"2 rows of step and 3 of label"):
            Session.load(path)

    def test_a_missing_file_is_the_systems_error(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            Session.load(tmp_path / "none")

    def test_what_cannot_be_saved_leaves_nothing(self, tmp_path):
        session = record([op("f", 0, 1, inputs=(object(),))], info=Info(record_shapes=True))
        with pytest.raises(TypeError, match="not object"):
            session.save(tmp_path / "s.npz")
        assert os.listdir(tmp_path) == []


def test_tracks_keep_their_devices(tmp_path):
    session = record([op("f", 0, 1, tid=3)], tracks=[Track(3, 3, "stream", "NPU", 1)])
    assert through_a_file(session, tmp_path).tracks == (Track(3, 3, "stream", "NPU", 1),)
