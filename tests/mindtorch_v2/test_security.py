"""What SECURITY.md promises of the package as a whole. Readers are tested one by one, with files that are damaged and hostile."""

from __future__ import annotations

import ast
import importlib.util
import io
import os
import pickle
import stat
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

from .profiler import all_writers

SOURCES = Path(torch.__file__).parent

# Calls that make objects of bytes and can run code, by file: the reason that each may.
UNPICKLING = {
    "_checkpoints/unpickler.py": "torch.load(weights_only=False)",
    "distributed/object_collectives.py": "from the other processes of the same program",
    "utils/data/_utils/channel.py": "from the workers that this process started",
    "_dispatch/code_cache.py": "bytecode of the package, where Python keeps its own",
}
NAMES = {
    "pickle": ("load", "loads", "Unpickler"),
    "pickle_module": ("load", "loads", "Unpickler"),
    "marshal": ("load", "loads"),
    "shelve": ("open",),
    "dill": ("load", "loads"),
    "joblib": ("load",),
}


def unpickles(source: str) -> bool:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in NAMES.get(node.value.id, ()):
            return True
        if isinstance(node, ast.ImportFrom) and set(NAMES.get(node.module or "", ())) & {name.name for name in node.names}:
            return True
        if (
            isinstance(node, ast.keyword)
            and node.arg == "allow_pickle"
            and not (isinstance(node.value, ast.Constant) and node.value.value is False)
        ):
            return True
    return False


def test_the_search_finds_what_it_looks_for():
    assert unpickles("import pickle\npickle.loads(x)")
    assert unpickles("from pickle import Unpickler")
    assert unpickles("np.load(f, allow_pickle=flag)")
    assert not unpickles("pickle.dumps(x)\nnp.load(f, allow_pickle=False)")


def test_no_file_is_read_as_a_pickle_but_by_load():
    found = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if unpickles(path.read_text())}
    assert found == set(UNPICKLING)


class Evil:
    def __reduce__(self):
        return os.system, ("exit 1",)


class TestForcedWeightsOnly:
    @pytest.fixture
    def evil(self):
        buffer = io.BytesIO()
        torch.save(Evil(), buffer)
        buffer.seek(0)
        return buffer

    @pytest.mark.parametrize("value", ["1", "true", "YES", "y"])
    @pytest.mark.parametrize("options", [{}, {"weights_only": False}, {"weights_only": None}])
    def test_no_call_can_ask_for_less(self, evil, monkeypatch, value, options):
        monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", value)
        monkeypatch.setattr(os, "system", pytest.fail)
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            torch.load(evil, **options)

    def test_the_opposite_holds_where_nothing_is_said(self, evil, monkeypatch):
        monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
        with pytest.raises(pickle.UnpicklingError):
            torch.load(evil, weights_only=True)
        evil.seek(0)
        with pytest.warns(UserWarning, match="forcing weights_only=False"):
            assert torch.load(evil) != 0

    def test_both_at_once_are_refused(self, evil, monkeypatch):
        for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"):
            monkeypatch.setenv(name, "1")
        with pytest.raises(RuntimeError, match="both were set"):
            torch.load(evil)


@pytest.fixture(params=[0o077, 0o022, 0o007])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_files_have_the_permissions_that_the_umask_leaves(umask, tmp_path):
    with profile(record_shapes=True, with_stack=True, profile_memory=True, with_modules=True) as prof:
        torch.ones(2) + 1
    for name, write in all_writers.WRITERS.items():
        write(prof.session, tmp_path / name)
    torch.save(torch.ones(2), tmp_path / "x.pt")
    prof.profiler.session.save(tmp_path / "again.session")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == len(all_writers.WRITERS) + 2
    assert set(modes.values()) == {0o666 & ~umask}


def test_the_cache_of_code_is_where_python_has_its_own(monkeypatch):
    from mindtorch_v2._dispatch import code_cache

    assert Path(code_cache._path()).parent == Path(importlib.util.cache_from_source(code_cache.__file__)).parent


def test_a_link_in_place_of_a_temporary_file_is_not_followed(tmp_path, monkeypatch):
    """Where the name could be guessed, whoever may write to the folder could have another file overwritten."""
    from mindtorch_v2._dispatch import code_cache

    (tmp_path / "victim").write_bytes(b"precious")
    monkeypatch.setattr(code_cache, "_path", lambda: str(tmp_path / "cache"))
    monkeypatch.setattr(os, "urandom", bytes)
    os.symlink(tmp_path / "victim", tmp_path / f"cache.{os.getpid()}-{bytes(8).hex()}")
    code_cache._write()
    assert (tmp_path / "victim").read_bytes() == b"precious"
