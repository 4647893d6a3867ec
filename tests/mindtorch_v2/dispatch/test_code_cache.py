"""Code of generated functions is kept for later processes where Python keeps bytecode, and is never trusted to be there."""

import marshal
import os
import subprocess
import sys
from pathlib import Path

import pytest

ADD = """
import mindtorch_v2 as torch
x = torch.ones(2, requires_grad=True)
(x + x).sum().backward()
assert x.grad.tolist() == [2, 2]
"""
COMPILE_NOTHING = """
import mindtorch_v2._dispatch.codegen as codegen
def compile(text, filename, mode):
    raise AssertionError("compiled: " + text)
codegen.compile = compile
"""


@pytest.fixture(scope="module")
def bytecode(tmp_path_factory) -> Path:
    """A folder for bytecode, the same for all: each new one would have 600 modules compiled."""
    return tmp_path_factory.mktemp("bytecode")


@pytest.fixture
def run(bytecode):
    """Run a program in a process that keeps bytecode in that folder, and return what it prints."""

    def run(program: str, **environment: str) -> str:
        variables = {**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode), "PYTHONDONTWRITEBYTECODE": "", **environment}
        done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    yield run
    for path in files(bytecode):
        path.unlink()


@pytest.fixture(scope="module")
def file_of_add(bytecode):
    """The file that a process leaves which adds, and what is in it."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode), "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run([sys.executable, "-c", ADD], env=environment, check=True)
    (path,) = files(bytecode)
    content = path.read_bytes()
    path.unlink()
    return path, content


@pytest.fixture
def added(run, file_of_add):
    """The same as after a process that added, for one that runs next."""
    path, content = file_of_add
    path.write_bytes(content)
    return path


def files(folder: Path) -> list[Path]:
    return list(folder.rglob("*.generated*"))


def test_a_second_process_compiles_nothing(run):
    run(ADD)
    run(COMPILE_NOTHING + ADD)


def test_processes_add_to_what_others_compiled(run, added):
    run("import mindtorch_v2 as torch; torch.ones(2).sin()")
    run(COMPILE_NOTHING + ADD + "torch.ones(2).sin()")


def test_tracebacks_show_the_source(run):
    program = """
import linecache, traceback
from mindtorch_v2._dispatch.codegen import compile_function
function = compile_function("halves", "xs", ["return [1 / x for x in xs]"], {}, title="a title")
try:
    function([0])
except ZeroDivisionError as error:
    frames = traceback.extract_tb(error.__traceback__)[1:]
    print([(frame.filename.partition(" ")[2].rpartition(" ")[0], frame.line) for frame in frames])
"""
    first = run(program)
    assert "a title" in first
    assert "return [1 / x for x in xs]" in first
    assert run(COMPILE_NOTHING + program) == first


@pytest.mark.parametrize("content", [b"", b"nothing of the kind", "cut"])
def test_a_damaged_file_is_made_anew(run, added, content):
    added.write_bytes(added.read_bytes()[:1000] if content == "cut" else content)
    run(ADD)
    run(COMPILE_NOTHING + ADD)


def test_a_file_that_grew_too_large_starts_over(run, added):
    magic = added.read_bytes()[:4]
    added.write_bytes(magic + marshal.dumps(marshal.loads(added.read_bytes()[4:]) | {b"other": bytes(8_000_000)}))
    run("import mindtorch_v2 as torch; torch.ones(2).sin()")
    assert added.stat().st_size < 1_000_000


def test_nothing_is_written_where_python_writes_no_bytecode(run, bytecode):
    run(ADD, PYTHONDONTWRITEBYTECODE="1")
    assert not files(bytecode)


def test_a_folder_that_cannot_be_written_to_is_no_error(run, tmp_path):
    occupied = tmp_path / "occupied"
    occupied.touch()
    assert run(ADD, PYTHONPYCACHEPREFIX=str(occupied)) == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_full_disk_is_no_error_and_leaves_no_piece(run, bytecode):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    assert run(limit + ADD) == ""
    assert not [path for path in bytecode.rglob("*.generated*") if path.is_file()]
