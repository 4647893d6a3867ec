"""Traces in a folder for TensorBoard."""

import os
import re
import socket

import pytest

from mindtorch_v2.profiler.output.tensorboard import tensorboard_trace_handler


class Profiler:
    """Notes where it was told to write."""

    def __init__(self):
        self.calls = []

    def export_chrome_trace(self, path, **options):
        self.calls.append((path, options))


def written_by(handler, times=1):
    prof = Profiler()
    for _ in range(times):
        handler(prof)
    return prof.calls


def test_the_name_has_worker_and_time(tmp_path):
    ((path, options),) = written_by(tensorboard_trace_handler(str(tmp_path), "worker7"))
    assert re.fullmatch(r"worker7\.\d{19}\.pt\.trace\.json", os.path.basename(path))
    assert os.path.dirname(path) == str(tmp_path)
    assert options == {}


def test_the_worker_is_host_and_process_unless_named(tmp_path):
    ((path, _),) = written_by(tensorboard_trace_handler(str(tmp_path)))
    assert os.path.basename(path).startswith(f"{socket.gethostname()}_{os.getpid()}.")


def test_compressed(tmp_path):
    ((path, _),) = written_by(tensorboard_trace_handler(str(tmp_path), "w", use_gzip=True))
    assert path.endswith(".pt.trace.json.gz")


def test_every_cycle_has_a_file_of_its_own(tmp_path):
    calls = written_by(tensorboard_trace_handler(str(tmp_path), "w"), times=3)
    assert len({path for path, _ in calls}) == 3


def test_missing_directories_are_made(tmp_path):
    written_by(tensorboard_trace_handler(str(tmp_path / "a" / "b"), "w"))
    assert (tmp_path / "a" / "b").is_dir()


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    handler = tensorboard_trace_handler(str(tmp_path / "file" / "logs"))
    with pytest.raises(RuntimeError, match=r"Can't create directory: .*logs"):
        handler(Profiler())


def test_the_python_export_is_asked_for(tmp_path):
    ((_, options),) = written_by(tensorboard_trace_handler(str(tmp_path), use_python_export=True))
    assert options == {"use_python_export": True}
