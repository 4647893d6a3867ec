"""What holds for all tests."""

import gc
import os
import random
import re
import signal
import sys

import pytest
from hypothesis import settings

# Before NumPy is imported: the matrices of tests are small, and the tests run in several processes. Threads that wait for each other took
# a quarter more processor time, and longer still where another process had the processor.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# `nohup` has programs ignore SIGHUP, and a shell without job control has those behind `&` ignore SIGINT: what tests start would inherit it.
for ignored, default in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL),
):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, default)

settings.register_profile("untimed", deadline=None)  # how long an example takes says more about the machine than about the code
settings.load_profile("untimed")


def pytest_ignore_collect(collection_path, config):
    """Leave out files whose tests are all deselected: importing PyTorch and its operator database takes longer than all other files."""
    folder = collection_path.parent.name
    if folder not in ("parity", "browser") or not collection_path.match("test_*.py"):
        return None
    if not re.search(rf"^pytestmark = \[?\s*pytest\.mark\.{folder}\b", collection_path.read_text(), re.M):
        raise pytest.UsageError(
            f"{collection_path} needs `pytestmark = pytest.mark.{folder}`: the tests of this folder run where it can be imported"
        )
    return True if f"not {folder}" in config.option.markexpr else None


def pytest_collection_modifyitems(items):
    """Run the profiler's tests first: a recording makes ready what ran before it, which takes seconds for each form of records after all operators ran."""
    items.sort(key=lambda item: "profiler" not in item.path.parts)


def pytest_collection_finish():
    out_of_sight()


def pytest_runtest_logstart(nodeid):
    """Do so between files too: caches and reports of the tests before grow to 150,000 objects and more."""
    file = nodeid.partition("::")[0]
    if file != FILES[-1]:
        FILES[:] = [file]
        out_of_sight()


FILES = [""]  # of the test that runs


def out_of_sight():
    """Take what was made so far, pytest's own objects above all, out of the collector's sight.

    A recording of memory looks at all objects when it begins and ends, which took half a second among those of all tests.
    """
    gc.collect()
    gc.freeze()


def pytest_runtest_setup():
    """Have each test draw the same random numbers, in each run and whichever tests ran before it."""
    random.seed(0)
    for name in ("torch", "mindtorch_v2"):
        if name in sys.modules:
            sys.modules[name].manual_seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)


LEFT_CURRENT = pytest.StashKey[BaseException]()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    """Fail the test that leaves an exception current: to all later tests it would look as if their programs had failed."""
    left = sys.exc_info()[1]
    if left is not None and left is not item.session.stash.get(LEFT_CURRENT, None):
        item.session.stash[LEFT_CURRENT] = left
        pytest.fail(f"an exception is current after the test: {left!r}", pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def bytecode_of_other_processes(tmp_path_factory):
    """Let processes that tests start share compiled modules, in a temporary folder, where PYTHONDONTWRITEBYTECODE keeps them from it.

    There are some two hundred of them, and compiling the package takes as long as all else in its import.
    """
    with pytest.MonkeyPatch.context() as patch:
        if sys.dont_write_bytecode:
            folder = tmp_path_factory.getbasetemp()
            if "PYTEST_XDIST_WORKER" in os.environ:
                folder = folder.parent  # of all workers
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", str(folder / "bytecode"))
        yield


@pytest.fixture(autouse=True)
def no_compile_rows(request, monkeypatch):
    """Compilation is no event, unless the test asks for `compile_rows`: whether an operator is compiled depends on the tests before."""
    if "compile_rows" not in request.fixturenames:
        from mindtorch_v2.profiler.capture.operators import compile_events

        monkeypatch.setattr(compile_events.Compilations, "resume", lambda source: None)


@pytest.fixture
def compile_rows():
    """Compilation inside a recording is an event, as it is for users."""


@pytest.fixture
def no_other_collection():
    """The garbage collector runs when it is called, and not when it likes."""
    gc.disable()
    yield
    gc.enable()
