"""Files that are written in full or not at all, whatever ends the writing."""

import errno
import gc
import gzip
import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mindtorch_v2.profiler.model.session import Session
from mindtorch_v2.profiler.output import chrome_trace, stacks
from mindtorch_v2.profiler.writing import atomic_file
from mindtorch_v2.profiler.writing.atomic_file import Replacement, replacing

from . import all_writers
from .by_hand import op, record


@pytest.fixture(params=["without a name", "beside"])
def way(request, monkeypatch):
    """Files without a name, and the way of systems that have none."""
    if request.param == "beside":
        monkeypatch.setattr(atomic_file, "_unnamed", lambda folder: None)
    return request.param


class Interruption:
    """Raises at the nth line that is traced in the package's and the standard library's code."""

    def __init__(self, number, error):
        self.left, self.error = number, error

    def __call__(self, frame, event, arg):
        if frame.f_code.co_filename == __file__:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise self.error  # a class: an object would keep its frames alive
        return self


def count_lines(action):
    """How many lines an action runs."""
    counter = Interruption(-1, None)
    sys.settrace(counter)
    try:
        action()
    finally:
        sys.settrace(None)
    return -1 - counter.left


def interrupted(action, number, error):
    """Whether the exception came through; on a thread of its own, since one at the end of an `except` clause leaves the clause's exception current."""

    def run():
        sys.settrace(Interruption(number, error))
        try:
            action()
        except error:
            return True
        finally:
            sys.settrace(None)
        return False

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


def content(path):
    """The bytes of a file, without the time of day that compressed ones have."""
    found = path.read_bytes()
    return gzip.decompress(found) if found[:2] == b"\x1f\x8b" else found


SESSION = record([op("f", i, i + 1) for i in range(3)])
WRITERS = {
    "trace.json": lambda path: chrome_trace.write(SESSION, path),
    "trace.json.gz": lambda path: chrome_trace.write(SESSION, path),
    "run.session": SESSION.save,
    "stacks.txt": lambda path: stacks.write(path, ["a 1\n", "b 2\n"]),
}


# an interruption inside of zipfile leaves objects that complain when they are collected
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interruption_at_any_line_leaves_nothing(tmp_path, monkeypatch, way, name, error):
    monkeypatch.setattr(sys, "unraisablehook", lambda what: None)
    path, write = tmp_path / name, WRITERS[name]
    write(path)
    lines = count_lines(lambda: write(path))
    complete = content(path)
    chooser = random.Random(f"{name} {way} {error.__name__}")
    happened = 0
    for number in [*chooser.sample(range(1, lines), min(40, lines - 1)), *range(max(1, lines - 40), lines + 1)]:
        path.write_bytes(b"before")
        happened += interrupted(lambda: write(path), number, error)
        assert os.listdir(tmp_path) == [name]
        assert content(path) in (b"before", complete)
    gc.collect()
    assert happened > 40


CHILD = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("atomic_file", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
if sys.argv[3] == "beside":
    module._unnamed = lambda folder: None
while True:
    with module.replacing(sys.argv[2]) as file:
        for _ in range(10):
            file.write(b"0123456789" * 10_000)
            print("wrote", flush=True)
    print("done", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_process_leaves_nothing_for_long(tmp_path, way, number):
    path = tmp_path / "out"
    path.write_bytes(b"before")
    chooser = random.Random(3)
    for _ in range(5):
        child = subprocess.Popen([sys.executable, "-S", "-c", CHILD, atomic_file.__file__, path, way], stdout=subprocess.PIPE)
        for _ in range(chooser.randrange(1, 35)):
            child.stdout.readline()
        child.send_signal(number)
        child.communicate()
        assert path.read_bytes() in (b"before", b"0123456789" * 100_000)
        left = [name for name in os.listdir(tmp_path) if name != "out"]
        if way == "beside":
            assert all(f"-{child.pid}-" in name for name in left)
    with replacing(path) as file:
        file.write(b"after")
    assert os.listdir(tmp_path) == ["out"]
    assert path.read_bytes() == b"after"


def test_files_of_live_processes_and_other_targets_stay(tmp_path, way):
    path = tmp_path / "out"
    gone = subprocess.Popen([sys.executable, "-S", "-c", ""])
    gone.wait()
    mine, other = atomic_file._temporary_name(str(path)), atomic_file._temporary_name(str(tmp_path / "other"))
    stale = mine.replace(f"-{os.getpid()}-", f"-{gone.pid}-")
    stale_other = other.replace(f"-{os.getpid()}-", f"-{gone.pid}-")
    for name in (mine, stale, stale_other):
        open(name, "wb").close()
    with replacing(path) as file:
        file.write(b"x")
    assert {str(tmp_path / name) for name in os.listdir(tmp_path)} == {mine, stale_other, str(path)}


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="a system without files that have no name")
def test_nothing_has_a_name_while_it_is_written(tmp_path):
    with replacing(tmp_path / "out") as file:
        file.write(b"x")
        file.flush()
        assert os.listdir(tmp_path) == []
    assert (tmp_path / "out").read_bytes() == b"x"


def test_systems_that_cannot_give_names_later(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(errno.ENOENT, "no /proc")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "out").write_bytes(b"before")
    (tmp_path / "out").chmod(0o640)
    with replacing(tmp_path / "out", gzip_level=1) as file:
        file.write(b"x" * 1000)
    assert gzip.decompress((tmp_path / "out").read_bytes()) == b"x" * 1000
    assert os.listdir(tmp_path) == ["out"]
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666, 0o660])
def test_permissions_stay(tmp_path, way, mode):
    path = tmp_path / "out"
    path.write_bytes(b"before")
    path.chmod(mode)
    with replacing(path) as file:
        file.write(b"x")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    with replacing(tmp_path / "new") as file:
        file.write(b"x")
    (tmp_path / "usual").write_bytes(b"")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("exists", [True, False])
def test_links_stay_links(tmp_path, way, exists):
    if exists:
        (tmp_path / "real").write_bytes(b"before")
    (tmp_path / "link").symlink_to("real")
    with replacing(tmp_path / "link") as file:
        file.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"


class TestAFolderThatTakesNoNewFiles:
    @pytest.fixture
    def closed(self, tmp_path, monkeypatch):
        """A folder in which only what is there can be written. Simulated, for a superuser may write everywhere."""
        real = os.open

        def guarded(path, flags, *args, **kwargs):
            makes_new = flags & os.O_CREAT or flags & os.O_TMPFILE == os.O_TMPFILE
            if makes_new and (str(path) == str(tmp_path) or os.path.dirname(str(path)) == str(tmp_path)):
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return real(path, flags, *args, **kwargs)

        (tmp_path / "out").write_bytes(b"before, and longer than what comes")
        monkeypatch.setattr(os, "open", guarded)
        return tmp_path

    def test_a_writable_file_is_written_in_place(self, closed, way):
        inode = (closed / "out").stat().st_ino
        SESSION.save(closed / "out")
        assert len(Session.load(closed / "out")) == 3
        assert (closed / "out").stat().st_ino == inode
        assert os.listdir(closed) == ["out"]

    def test_it_stays_as_it_is_when_writing_fails(self, closed, way):
        def fail():
            with replacing(closed / "out") as file:
                file.write(b"new")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fail()
        assert (closed / "out").read_bytes() == b"before, and longer than what comes"

    def test_others_are_refused_by_their_own_name(self, closed, way):
        with pytest.raises(PermissionError) as caught, replacing(closed / "new"):
            pass
        assert caught.value.filename == str(closed / "new")


@pytest.mark.skipif(os.geteuid() == 0, reason="a superuser may write everywhere")
def test_a_real_closed_folder(tmp_path):
    (tmp_path / "out").write_bytes(b"before")
    tmp_path.chmod(0o555)
    try:
        with replacing(tmp_path / "out") as file:
            file.write(b"x")
        assert (tmp_path / "out").read_bytes() == b"x"
    finally:
        tmp_path.chmod(0o755)


def test_a_missing_folder_and_a_folder_are_named(tmp_path, way):
    for path, error in ((tmp_path / "none" / "out", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(error) as caught, replacing(path):
            pass
        assert caught.value.filename == str(path)


class TestSpecialFiles:
    def test_devices(self, way):
        with replacing("/dev/null") as file:
            file.write(b"x")
        assert not stat.S_ISREG(os.stat("/dev/null").st_mode)

    def test_named_pipes(self, tmp_path, way):
        os.mkfifo(tmp_path / "pipe")
        got = []
        reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
        reader.start()
        with replacing(tmp_path / "pipe", gzip_level=1) as file:
            file.write(b"x")
        reader.join()
        assert gzip.decompress(got[0]) == b"x"
        assert os.listdir(tmp_path) == ["pipe"]

    PRINTING = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("atomic_file", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print("before")
with module.replacing(sys.argv[2]) as file:
    file.write(b"content\\n")
print("after")
"""

    @pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
    @pytest.mark.parametrize("into", ["pipe", "file"])
    def test_standard_output(self, tmp_path, name, into):
        if name == "link":
            (tmp_path / "link").symlink_to("/dev/stdout")
            name = tmp_path / "link"
        command = [sys.executable, "-S", "-c", self.PRINTING, atomic_file.__file__, name]
        if into == "pipe":
            text = subprocess.run(command, check=True, capture_output=True).stdout
        else:
            with open(tmp_path / "printed", "wb") as file:
                subprocess.run(command, check=True, stdout=file)
            text = (tmp_path / "printed").read_bytes()
        assert text == b"before\ncontent\nafter\n"


def test_an_abandoned_object_takes_its_file_along(tmp_path, way):
    replacement = Replacement(tmp_path / "out")
    replacement.file.write(b"x")
    replacement.file.close()
    del replacement
    assert os.listdir(tmp_path) == []


def test_the_content_is_on_the_disk_before_it_has_its_name(tmp_path, way, monkeypatch):
    happened = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (happened.append(name), real(*args))[1])
    with replacing(tmp_path / "out") as file:
        file.write(b"x")
    assert happened == ["fsync", "replace"]


FULL_DISK = """
import json, os, resource, sys
from tests.mindtorch_v2.profiler.all_writers import WRITERS, session
recorded = session()
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
happened = {}
for name, write in WRITERS.items():
    os.mkdir(name)
    path = os.path.join(os.getcwd(), name, name)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))
    try:
        write(recorded, path)
        happened[name] = ["nothing"]
    except OSError as error:
        happened[name] = [type(error).__name__, error.strerror, error.filename == path]
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    happened[name].append(os.listdir(name))
    write(recorded, path)
print(json.dumps(happened))
"""


@pytest.fixture(scope="module")
def on_a_full_disk(tmp_path_factory):
    """What every writer did in one process whose files could not grow, and the folder of what each wrote after that."""
    folder = tmp_path_factory.mktemp("full")
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    command = [sys.executable, "-c", FULL_DISK]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=os.environ | {"PYTHONPATH": root})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), folder


@pytest.fixture(scope="module")
def recorded():
    return all_writers.session()


class TestEveryWriter:
    """A disk that is full, a folder that is gone, several at once: one error that names the file, nothing left, and the session still there."""

    @pytest.mark.parametrize("name", all_writers.WRITERS)
    def test_a_full_disk(self, name, on_a_full_disk):
        happened, folder = on_a_full_disk
        assert happened[name] == ["OSError", "File too large", True, []]
        assert os.listdir(folder / name) == [name]
        assert (folder / name / name).stat().st_size > 100

    @pytest.mark.parametrize("name", all_writers.WRITERS)
    def test_nothing_is_left_of_a_failure(self, name, tmp_path, recorded, monkeypatch, way):
        def full(*arguments):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space left on device") as caught:
                all_writers.WRITERS[name](recorded, tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
        assert os.listdir(tmp_path) == []
        all_writers.WRITERS[name](recorded, tmp_path / name)
        assert os.listdir(tmp_path) == [name]

    @pytest.mark.parametrize("name", all_writers.WRITERS)
    def test_a_folder_that_is_gone(self, name, tmp_path, recorded):
        path = tmp_path / "gone" / name
        with pytest.raises(FileNotFoundError) as caught:
            all_writers.WRITERS[name](recorded, path)
        assert caught.value.filename == str(path)
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("name", all_writers.WRITERS)
    def test_several_threads_at_once(self, name, tmp_path, recorded, way):
        path = tmp_path / name
        all_writers.WRITERS[name](recorded, path)
        alone = len(content(path))
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda _: all_writers.WRITERS[name](recorded, path), range(8)))
        assert os.listdir(tmp_path) == [name]
        assert len(content(path)) == alone
