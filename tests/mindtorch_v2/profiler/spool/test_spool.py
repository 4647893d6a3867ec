"""Spools: what was written while a recording went on, read after whatever ended it."""

import contextlib
import errno
import io
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.cli import frame
from mindtorch_v2.profiler import Results, profile, record_function
from mindtorch_v2.profiler.bounds import Bounds
from mindtorch_v2.profiler.capture import capture, draining, log_records
from mindtorch_v2.profiler.capture.names import Names
from mindtorch_v2.profiler.capture.operators.recorder import Log
from mindtorch_v2.profiler.model.session import COLUMNS
from mindtorch_v2.profiler.opening import open_recording
from mindtorch_v2.profiler.spool import frames
from mindtorch_v2.profiler.spool.reader import read_spool
from mindtorch_v2.profiler.spool.whereabouts import Whereabouts, parsed
from mindtorch_v2.profiler.spool.writer import Spool

x = torch.ones(2, requires_grad=True)


def write_some():
    """Have the recorder's thread do its work now."""
    capture.active._draining._work()


def program():
    with record_function("outer", "with words"):
        (x * x).sum().backward()
        write_some()
        thread = threading.Thread(target=lambda: x.detach() + 1, name="helper")
        thread.start()
        thread.join()
        write_some()
    x.detach() + x.detach()


def parts_of(log):
    return None if log is None else [None if column is None else column.tolist() for column in log]


def columns_of(session):
    return {name: None if getattr(session, name) is None else getattr(session, name).tolist() for name in COLUMNS}


MODES = [
    {},
    {"record_shapes": True},
    {"with_stack": True, "with_modules": True},
    {"profile_memory": True},
    {"profile_memory": True, "with_stack": True, "record_shapes": True},
    {"profile_memory": "tracemalloc"},
]


@pytest.mark.parametrize("mode", MODES)
def test_a_spool_that_was_stopped_has_the_session(mode, tmp_path):
    path = tmp_path / "run.spool"
    with profile(spool=path, **mode) as prof:
        program()
    spooled = read_spool(path)
    assert spooled.is_complete
    found, made = spooled.session, prof.session
    assert columns_of(found) == columns_of(made)
    for table in ("labels", "tracks", "input_table", "frames", "stack_table"):
        assert getattr(found, table) == getattr(made, table), table
    for log in ("memory", "roles", "flow"):
        assert parts_of(getattr(found, log)) == parts_of(getattr(made, log)), log
    assert (found.info.live_bytes, found.info.profile_memory) == (made.info.live_bytes, made.info.profile_memory)
    assert found.info.ended == ""
    assert (found.info.started_ns, found.info.stopped_ns) == (made.info.started_ns, made.info.stopped_ns)
    assert columns_of(open_recording(path).session) == columns_of(made)


def test_all_is_in_the_file_whatever_is_kept_in_memory(tmp_path):
    path = tmp_path / "run.spool"
    with profile(spool=path, max_events=3, exclude=["*mul"]) as prof:
        for _ in range(10):
            x + x
            x * x
            write_some()
    assert len(prof.session) == 3
    assert dict(prof.session.info.dropped) == {"max_events": 7}
    everything = read_spool(path).session
    assert [everything.labels[i].name for i in everything.label.tolist()] == ["aten::add"] * 10
    assert everything.info.dropped == ()
    assert everything.info.unrecorded == prof.session.info.unrecorded != ()
    last = read_spool(path, Bounds(max_events=4, keep="last")).session
    assert last.start_ns.tolist() == everything.start_ns.tolist()[-4:]
    assert dict(last.info.dropped) == {"max_events": 6}


def test_a_program_that_asks_for_too_much_goes_on_and_so_does_the_spool(tmp_path):
    path = tmp_path / "run.spool"
    with profile(spool=path):
        with pytest.raises(RuntimeError, match="can't allocate memory"):
            torch.empty(1 << 60)
        for _ in range(10):
            x.detach()
        write_some()
        copied = tmp_path / "copy.spool"
        copied.write_bytes(path.read_bytes())
    session = read_spool(copied).session
    assert [session.labels[i].name for i in session.label.tolist()].count("aten::detach") == 10


class TestMemoryThatRunsOut:
    """Another source runs out of memory in the recorder's thread."""

    @pytest.fixture
    def prof_of(self, tmp_path, monkeypatch):
        """Makes a recording of three additions that the thread has written, and of two that it has not when memory runs out; then of a product."""

        def record(**options):
            monkeypatch.setattr(draining, "INTERVAL_S", 1e6)
            prof = profile(spool=tmp_path / "run.spool", **options)
            prof.start()
            for _ in range(3):
                x.detach() + 1
            write_some()
            for _ in range(2):
                x.detach() - 1
            with monkeypatch.context() as patched:
                patched.setattr(Names, "meanwhile", fail)
                write_some()
            x.detach() * 1
            return prof

        def fail(self, free_bytes):
            raise MemoryError

        return record

    @staticmethod
    def names(session):
        return [session.labels[i].name for i in session.label.tolist() if session.labels[i].name != "aten::detach"]

    @pytest.mark.parametrize("options", [{}, {"max_events": 100}, {"exclude": ["*detach"]}, {"max_events": 8, "keep": "last"}])
    def test_all_is_in_the_file(self, options, prof_of, tmp_path):
        prof = prof_of(**options)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            prof.stop()
        assert all(
            "were not kept: memory was short" in str(w.message) or "were not kept: without max" in str(w.message) for w in found
        )
        session = read_spool(tmp_path / "run.spool").session
        assert self.names(session) == ["aten::add"] * 3 + ["aten::sub"] * 2 + ["aten::mul"]
        assert session.start_ns.tolist() == sorted(session.start_ns.tolist())

    def test_the_first_ones_are_kept(self, prof_of):
        prof = prof_of(max_events=8)
        prof.stop()
        assert self.names(prof.session) == ["aten::add"] * 3 + ["aten::sub"]

    def test_what_there_is_no_memory_to_write_is_counted_once(self, prof_of, monkeypatch, tmp_path):
        real = Spool.write

        def fail(self, piece, results=()):
            if len(piece[0]) == 4:
                raise MemoryError
            real(self, piece, results)

        monkeypatch.setattr(Spool, "write", fail)
        prof = prof_of()
        assert capture.active.event_count == 12
        with pytest.warns(UserWarning, match="6 events were not kept"):
            prof.stop()
        assert self.names(prof.session) == ["aten::add"] * 3
        assert self.names(read_spool(tmp_path / "run.spool").session) == ["aten::add"] * 3 + ["aten::mul"]


def test_a_quarter_of_a_second_of_small_operators_is_written_in_few_pieces(monkeypatch):
    """For each piece the recorder's thread waits until all others have run: with ten of them, events would be long on their way."""
    log = Log(shapes=False, stacks=False, storages=False, heap=False, operands=False)
    monkeypatch.setattr(log_records, "reserve", [b"memory"])
    records, pieces = log_records.LogRecords(log), []
    records.spool = lambda piece, results: pieces.append(len(piece[0]))
    records.begin()
    log.records.extend([7, 1.0, 2.0, 1, -1] * 60_000)
    assert records.take_meanwhile(backlog=0)
    assert sum(pieces) == 60_000
    assert len(pieces) == 2


def test_recordings_that_are_kept_follow_each_other_in_the_file(tmp_path):
    path = tmp_path / "run.spool"
    for accumulate, count in ((True, 2), (False, 1)):
        prof = profile(spool=path, acc_events=accumulate)
        for _ in range(2):
            prof.start()
            x + x
            prof.stop()
        assert columns_of(read_spool(path).session) == columns_of(prof.session)
        assert len(prof.session) == count


def test_a_program_that_changes_the_directory_has_one_file(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    prof = profile(spool="run.spool", acc_events=True)
    for _ in range(2):
        prof.start()
        x + x
        prof.stop()
        monkeypatch.chdir(tmp_path / "other")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["other", "run.spool"]
    assert columns_of(read_spool(tmp_path / "run.spool").session) == columns_of(prof.session)
    assert len(prof.session) == 2


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The bytes of a spool and its session."""
    path = tmp_path_factory.mktemp("spools") / "run.spool"
    with profile(spool=path, record_shapes=True) as prof:
        for _ in range(6):
            x * x
            with record_function("scope"):
                x + x
            write_some()
    return path.read_bytes(), prof.session


def names_of(session):
    names = [session.labels[i].name for i in session.label.tolist()]
    return list(zip(names, session.start_ns.tolist(), session.end_ns.tolist(), strict=True))


def operators_of(session):
    labels = [session.labels[i] for i in session.label.tolist()]
    return [label.name for label in labels if label.kind == "op"]


def test_a_file_that_is_cut_off_anywhere_has_what_was_written_before(written, tmp_path):
    content, session = written
    whole, path, counts = names_of(session), tmp_path / "cut.spool", []
    chance = random.Random(5)
    for size in sorted({len(frames.MAGIC), len(content), *(chance.randrange(len(frames.MAGIC), len(content)) for _ in range(60))}):
        path.write_bytes(content[:size])
        spooled = read_spool(path)
        found = names_of(spooled.session)
        assert set(found) <= set(whole)
        counts.append(len(found))
        assert spooled.is_complete == (size == len(content))
        assert bool(spooled.session.info.ended) != spooled.is_complete
    assert counts == sorted(counts)
    assert counts[-1] == len(whole)


def test_a_damaged_piece_costs_no_other(written, tmp_path):
    content, session = written
    whole, path = names_of(session), tmp_path / "damaged.spool"
    at = content.index(b"MTf\n", len(content) // 2)
    path.write_bytes(content[:at] + b"Fatal Python error: of a child\n" + content[at:])
    assert names_of(read_spool(path).session) == whole
    chance = random.Random(6)
    for _ in range(40):
        damaged = bytearray(content)
        damaged[chance.randrange(len(frames.MAGIC), len(content))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        # whichever frame it is: without the head nothing can be read, and a table's rows may be missing for events of other frames
        found = {(start, end) for _, start, end in names_of(read_spool(path).session)}
        assert found <= {(start, end) for _, start, end in whole}


def test_sizes_are_checked_before_memory_is_taken(tmp_path):
    path = tmp_path / "large.spool"
    path.write_bytes(frames.MAGIC + frames._HEADER.pack(frames._MARK, frames.HEAD, 1 << 31, 1 << 62) + b"\0" * 100)
    assert len(read_spool(path).session) == 0
    (tmp_path / "other").write_bytes(b"PK")
    with pytest.raises(ValueError, match="other is no spool, or is damaged"):
        read_spool(tmp_path / "other")


def test_a_column_of_another_length_is_refused(tmp_path):
    frame = frames.frame_bytes(frames.CHUNK, {"time": 1.0}, [np.zeros(3, np.int64)])
    damaged = frame.replace(b'["<i8",3]', b'["<i8",9]')
    start, text = damaged[:20], damaged[24 : len(damaged) - 24]
    checksum = frames._CHECKSUM.pack(frames._checksum(start, text, damaged[len(damaged) - 24 :]))
    path = tmp_path / "a.spool"
    path.write_bytes(frames.MAGIC + start + checksum + text + damaged[len(damaged) - 24 :])
    with pytest.raises(ValueError, match="a column of 9 '<i8' that a frame of a spool cannot have"):
        read_spool(path)


@pytest.mark.parametrize("wrong", [1 << 20, -1])
def test_records_have_as_many_operands_as_there_are(wrong, tmp_path):
    path = tmp_path / "run.spool"
    with profile(spool=path, profile_memory=True, with_stack=True, record_shapes=True):
        x * x
    with open(path, "rb") as file:
        parts = list(frames.read_frames(file))
    at = next(i for i, part in enumerate(parts) if part.kind == frames.CHUNK)
    counts = parts[at].columns[-2].copy()  # of the addresses in the last column
    counts[0] = wrong
    parts[at].columns[-2] = counts
    path.write_bytes(frames.MAGIC + b"".join(frames.frame_bytes(*part) for part in parts))
    with pytest.raises(ValueError, match="operands of records that are not those of the file"):
        read_spool(path)


def test_another_file_is_not_written_over(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("import torch")
    with pytest.raises(ValueError, match=r"train.py' has something other than a spool in it; give another name"):
        profile(spool=path).start()
    assert path.read_text() == "import torch"
    with profile() as prof:
        x + x
    assert len(prof.events()) == 1


def test_a_pipe_or_a_device_is_no_place_for_a_spool(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/null"):
        with pytest.raises(ValueError, match="is a pipe or a device; give the name of a file"), profile(spool=place):
            raise AssertionError


def test_a_full_disk_ends_the_file_and_not_the_recording(tmp_path, monkeypatch):
    path = tmp_path / "run.spool"
    prof = profile(spool=path)
    prof.start()
    x + x
    write_some()
    size = path.stat().st_size

    def fill(self, content):
        self._file.write(content[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Spool, "_write", fill)
    x * x
    write_some()
    assert path.stat().st_size == size
    x * x
    with pytest.warns(UserWarning, match="run.spool' ends early: No space left on device; what was recorded is whole in memory"):
        prof.stop()
    assert [e.name for e in prof.events()] == ["aten::add", "aten::mul", "aten::mul"]
    assert len(read_spool(path).session) == 1


KILLED = """
    import os, sys, time
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import profile, record_function
    from mindtorch_v2.profiler.capture import capture

    x = torch.ones(2)

    def step():
        x + x

    prof = profile(spool="run.spool")
    prof.start()
    with record_function("epoch"):
        for _ in range(1000):
            step()
        capture.active._draining._work()
        for _ in range(10):
            x * x
        {end}
"""


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(3)", "os.abort()"])
def test_a_process_that_is_killed_leaves_what_it_had_written(end, run_python, tmp_path):
    run_python(textwrap.dedent(KILLED).format(end=end))
    spooled = read_spool(tmp_path / "run.spool")
    session = spooled.session
    assert not spooled.is_complete
    assert session.info.ended.startswith("the recording ends ")
    assert session.info.ended.endswith("and was not stopped: its process was killed, crashed or left by os._exit")
    assert operators_of(session) == ["aten::add"] * 1000
    (last,) = spooled.threads
    assert last.name == "MainThread"
    assert [name for name, _ in last.operators] == ["aten::add"] * 5
    assert last.scopes == ("epoch",)
    assert {place.function for place in last.places} == {"<module>"}


def test_a_forked_process_leaves_the_spool_to_its_parent(tmp_path):
    path = tmp_path / "run.spool"
    with profile(spool=path) as prof:
        x + x
        write_some()
        pid = os.fork()
        if not pid:
            x * x
            os._exit(0)
        os.waitpid(pid, 0)
        x + x
    assert columns_of(read_spool(path).session) == columns_of(prof.session)
    assert len(prof.session) == 2


def test_whereabouts_are_those_of_the_program():
    ready, done = threading.Event(), threading.Event()

    def wait_here():
        ready.set()
        done.wait()

    thread = threading.Thread(target=wait_here)
    thread.start()
    ready.wait()
    looking = Whereabouts()
    try:
        found = looking.now()
    finally:
        looking.close()
        done.set()
        thread.join()
    assert ("wait_here", __file__) in [(function, file) for file, _, function in found[thread.ident]]
    assert found[threading.get_ident()][0][2] == "test_whereabouts_are_those_of_the_program"


def test_places_of_a_fault():
    text = 'Fatal Python error: X\n\nThread 0x0000000a (most recent call first):\n  File "a "b".py", line 3 in f\n  ...\n\n'
    text += 'Current thread 0x0b [name] (most recent call first):\n  File "c.py", line 4 in g\n\nExtension modules: numpy\n'
    assert parsed(text) == {10: [('a "b".py', 3, "f")], 11: [("c.py", 4, "g")]}


class TestCommand:
    """`mindtorch profile` spools, and `mindtorch recover` reads."""

    PROGRAM = """
        import ctypes, os, sys
        import torch
        from mindtorch_v2.profiler.capture import capture
        x = torch.ones(2)
        for _ in range(500):
            x + x
        capture.active._draining._work()
        x * x
        {end}
    """

    @pytest.fixture
    def run(self, tmp_path):
        def run(*arguments, module="mindtorch_v2"):
            environment = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(torch.__file__))}
            command = [sys.executable, "-m", module, *arguments]
            return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120)

        return run

    @pytest.fixture
    def read(self, tmp_path, monkeypatch, capsys):
        """Runs a command that reads in this process, and gives what it printed and its errors."""
        monkeypatch.chdir(tmp_path)

        def read(*arguments):
            frame.main(list(arguments))
            return capsys.readouterr()

        return read

    @pytest.mark.parametrize(
        ("end", "status", "why"),
        [
            (
                "os.kill(os.getpid(), 9)",
                -signal.SIGKILL,
                "and was not stopped: its process was killed, crashed or left by os._exit",
            ),
            ("ctypes.string_at(0)", -signal.SIGSEGV, "by a crash: Fatal Python error: Segmentation fault"),
        ],
    )
    def test_a_run_that_is_killed_is_read_by_every_command(self, end, status, why, run, read, tmp_path):
        (tmp_path / "train.py").write_text(textwrap.dedent(self.PROGRAM).format(end=end))
        assert run("profile", "-o", "out", "train.py").returncode == status
        assert os.listdir(tmp_path / "out") == ["run.spool"]
        shown = read("top", "out")
        assert "aten::add" in shown.out
        assert why in shown.err
        facts = json.loads(read("recover", "out", "--last", "--json").out)
        assert why in facts["ended"]
        assert facts["threads"][0]["operators"][0]["name"] == "aten::add"
        assert facts["threads"][0]["places"][0][1:] == [8, "<module>"]
        printed = read("recover", "out", "-o", "found.session")
        assert printed.out.splitlines()[-1] == "saved as found.session"
        session = Results.load(tmp_path / "found.session").session
        assert why in session.info.ended
        assert operators_of(session) == ["aten::ones", *["aten::add"] * 500]

    TWO_THREADS = """
        import ctypes, os, threading, time
        import torch
        x, done = torch.ones(2), threading.Event()

        def other():
            for _ in range(20):
                x.sin()
            x.cos()
            done.set()
            time.sleep(60)

        threading.Thread(target=other, name="helper", daemon=True).start()
        done.wait()
        with torch.profiler.record_function("epoch"):
            for _ in range(20):
                x + x
            x * x
            time.sleep(0.7)
            {end}
    """

    @pytest.mark.parametrize("command", ["profile", "python -m"])
    @pytest.mark.parametrize(
        ("end", "status", "fault"),
        [
            ("os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
            ("os.abort()", -signal.SIGABRT, "Fatal Python error: Aborted"),
            ("ctypes.string_at(0)", -signal.SIGSEGV, "Fatal Python error: Segmentation fault"),
        ],
    )
    def test_the_last_operators_of_each_thread(self, command, end, status, fault, run, read, tmp_path):
        (tmp_path / "train.py").write_text(textwrap.dedent(self.TWO_THREADS).format(end=end))
        done = run("profile", "-o", "out", "train.py") if command == "profile" else run("train.py", module="mindtorch_v2.profiler")
        assert done.returncode == status
        (path,) = tmp_path.rglob("*.spool")
        facts = json.loads(read("recover", str(path), "--last", "--json").out)
        assert facts["fault"].partition("\n")[0] == fault
        threads = {thread["name"]: thread for thread in facts["threads"]}
        last = {name: [operator["name"] for operator in thread["operators"]] for name, thread in threads.items()}
        assert last == {"MainThread": ["aten::mul", *["aten::add"] * 4], "helper": ["aten::cos", *["aten::sin"] * 4]}
        assert threads["MainThread"]["scopes"][-1] == "epoch"
        assert threads["MainThread"]["places"][0][1:] == [19, "<module>"]
        assert threads["helper"]["places"][0][1:] == [11, "other"]
        before = [operator["before_ns"] for operator in threads["MainThread"]["operators"]]
        assert 0 < before[0] < before[-1]
        text = read("recover", str(path), "--last").out
        for shown in ("thread MainThread (", "before the end: aten::mul ended", "thread helper (", "aten::cos ended", fault):
            assert shown in text
        assert not list(tmp_path.rglob("*.session"))  # nothing is written

    def test_a_run_that_ends_well_leaves_no_spool(self, run, tmp_path):
        (tmp_path / "train.py").write_text(textwrap.dedent(self.PROGRAM).format(end=""))
        done = run("profile", "-o", "out", "--quiet", "train.py")
        assert (done.returncode, done.stderr) == (0, "")
        assert "run.session" in os.listdir(tmp_path / "out")
        assert not [name for name in os.listdir(tmp_path / "out") if name.endswith(".spool")]


def test_times_that_no_clock_reads_are_refused(written, tmp_path):
    content, _ = written
    path = tmp_path / "a.spool"
    for wrong in (float("inf"), float("nan"), -1.0, 1e30):
        path.write_bytes(
            content + frames.frame_bytes(frames.END, {"time": wrong, "threads": [], "dropped": []}, [np.empty(0, np.int64)] * 2)
        )
        with pytest.raises(ValueError, match="is no reading of a clock"):
            read_spool(path)


FULL_DISK = """
    import resource, warnings
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import profile

    x = torch.ones(2)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    prof = profile(spool="run.spool")
    prof.start()
    x + x
    from mindtorch_v2.profiler.capture import capture
    capture.active._draining._work()
    import os
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize("run.spool") + 100, limit[1]))
    x * x
    capture.active._draining._work()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        prof.stop()
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert [e.name for e in prof.events() if e["kind"] == "op"] == ["aten::add", "aten::mul"]
    prof.session.save("run.session")
    print(*[warning.message for warning in said])
"""


def test_a_disk_that_is_really_full_ends_the_file_alone(run_python, tmp_path):
    done = run_python(FULL_DISK)
    assert "run.spool' ends early: File too large; what was recorded is whole in memory" in done.stdout, done.stderr
    assert operators_of(read_spool(tmp_path / "run.spool").session) == ["aten::add"]
    assert operators_of(Results.load(tmp_path / "run.session").session) == ["aten::add", "aten::mul"]


def test_a_folder_that_is_gone_is_refused_before_anything_is_recorded(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone/run.spool"):
        profile(spool=tmp_path / "gone" / "run.spool").start()
    with profile() as prof:
        x + x
    assert len(prof.events()) == 1


CLOSES_ALL = """
    import os, time, warnings
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import profile

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with profile(spool="run.spool") as prof:
            torch.ones(2).sin()
            os.closerange(3, 100)
            mine = [open(f"mine{i}", "wb", buffering=0) for i in range(10)]
            torch.ones(2).cos()
            time.sleep(0.6)  # the recorder's thread comes
            torch.ones(2).tan()
    for file in mine:
        file.write(b"mine")
    assert [open(f"mine{i}", "rb").read() for i in range(10)] == [b"mine"] * 10
    assert {"aten::sin", "aten::cos", "aten::tan"} <= {event.name for event in prof.events()}
    assert ["run.spool' ends early: the program closed it" in str(w.message) for w in told] == [True], told
"""


def test_a_program_that_closes_all_files_gets_nothing_of_the_spool_in_its_own(run_python):
    done = run_python(CLOSES_ALL)
    assert done.returncode == 0, done.stderr


def test_a_file_that_was_removed_meanwhile_is_told(tmp_path):
    path = tmp_path / "run.spool"
    prof = profile(spool=path)
    prof.start()
    x + x
    path.unlink()
    with pytest.warns(UserWarning, match="run.spool' ends early: the file was removed; what was recorded is whole in memory"):
        prof.stop()
    assert len(prof.events()) == 1


def test_two_processes_do_not_write_to_one_file(run_python, tmp_path):
    path = tmp_path / "run.spool"
    with profile(spool=path) as prof:
        x + x
        write_some()
        other = f"""
            from mindtorch_v2.profiler import profile
            try:
                profile(spool={str(path)!r}).start()
            except ValueError as error:
                print(error)
        """
        assert "another process is recording to" in run_python(other).stdout
    assert columns_of(read_spool(path).session) == columns_of(prof.session)


class Reads(io.FileIO):
    """A file that counts the bytes that are read."""

    count = 0

    def read(self, size=-1):
        found = super().read(size)
        self.count += len(found)
        return found


@pytest.mark.parametrize(
    "piece",
    [
        b"MTf\n",
        frames._HEADER.pack(b"MTf\n", frames.CHUNK, 1000, 0) + bytes(4),
        frames._HEADER.pack(b"MTf\n", frames.CHUNK, 0, 20_000) + bytes(4),
    ],
)
def test_pieces_that_are_not_whole_cost_no_more_than_the_file_is_long(piece, tmp_path):
    path = tmp_path / "run.spool"
    content = frames.MAGIC + piece * 5_000
    path.write_bytes(content)
    with Reads(path) as file:
        with contextlib.suppress(ValueError):
            assert list(frames.read_frames(file)) == []
        assert file.count < 100 * len(content)
