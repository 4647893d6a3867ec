"""Files of execution traces: complete or not there, whatever becomes of the observer, the disk, the process and the environment."""

import errno
import gc
import json
import os

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ExecutionTraceObserver, profile

from .execution_traces import ONE, Trace


class TestObserver:
    def test_a_second_observer_is_refused(self, tmp_path):
        first = ExecutionTraceObserver().register_callback(tmp_path / "a.json")
        second = ExecutionTraceObserver()
        with pytest.raises(RuntimeError, match=r"a\.json.*unregister"):
            second.register_callback(tmp_path / "b.json")
        assert not second.is_registered
        second.start()
        assert not second.is_running()
        assert first.is_registered
        first.unregister_callback()
        second.register_callback(tmp_path / "b.json").unregister_callback()
        assert (tmp_path / "b.json").exists()

    def test_registering_twice_and_stopping_twice_are_harmless(self, tmp_path):
        observer = ExecutionTraceObserver()
        observer.start()
        observer.stop()
        observer.unregister_callback()
        assert not observer.is_running()
        assert observer.get_output_file_path() is None
        path = str(tmp_path / "a.json")
        observer.register_callback(path)
        assert observer.register_callback(str(tmp_path / "b.json")) is observer
        assert observer.get_output_file_path() == path
        observer.start()
        observer.start()
        assert observer.is_running()
        ONE.neg()
        observer.stop()
        observer.stop()
        ONE.cos()
        observer.unregister_callback()
        observer.unregister_callback()
        observer.cleanup()
        assert Trace(path).names() == ["aten::neg"]
        assert not (tmp_path / "b.json").exists()
        assert observer.get_output_file_path() == path

    def test_paths(self, tmp_path):
        observer = ExecutionTraceObserver()
        with pytest.raises(FileNotFoundError):
            observer.register_callback(str(tmp_path / "no" / "trace.json"))
        for wrong in (None, 3, b"trace.json"):
            with pytest.raises(TypeError):
                observer.register_callback(wrong)
        assert not observer.is_registered
        assert list(tmp_path.iterdir()) == []


class TestFile:
    def test_gzip(self, traced):
        assert traced(lambda: ONE.neg(), "trace.json.gz").names() == ["aten::neg"]

    def test_nothing_is_under_the_final_name_before_the_end(self, tmp_path):
        path = tmp_path / "trace.json"
        path.write_text("what was there")
        observer = ExecutionTraceObserver().register_callback(path)
        observer.start()
        for _ in range(1000):
            ONE.neg()
        assert path.read_text() == "what was there"
        observer.unregister_callback()
        assert len(Trace(path).names()) == 1000
        assert [p.name for p in tmp_path.iterdir()] == ["trace.json"]

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's device that is always full")
    def test_a_full_disk_does_not_disturb_the_program(self, tmp_path):
        link = tmp_path / "trace.json"
        link.symlink_to("/dev/full")
        observer = ExecutionTraceObserver().register_callback(link)
        observer.start()
        for _ in range(1000):
            ONE.neg()
        with pytest.raises(OSError, match="could not be written") as error:
            observer.unregister_callback()
        assert error.value.errno == errno.ENOSPC
        assert not observer.is_registered
        ONE.neg()

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's device that is always full")
    def test_a_full_disk_does_not_hide_the_users_exception(self, tmp_path):
        link = tmp_path / "trace.json"
        link.symlink_to("/dev/full")
        with (
            pytest.warns(UserWarning, match="could not be written"),
            pytest.raises(KeyError, match="mine"),
            profile(execution_trace_observer=ExecutionTraceObserver().register_callback(link)),
        ):
            raise KeyError("mine")

    def test_the_folder_vanishes(self, tmp_path):
        folder = tmp_path / "folder"
        folder.mkdir()
        observer = ExecutionTraceObserver().register_callback(folder / "trace.json")
        observer.start()
        ONE.neg()
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        with pytest.raises(OSError, match="could not be written"):
            observer.unregister_callback()
        assert not observer.is_registered


class TestProcesses:
    def test_the_end_of_a_program_completes_the_file(self, tmp_path, run_python):
        done = run_python(
            """
            import mindtorch_v2 as torch
            one = torch.ones(1)
            observer = torch.profiler.ExecutionTraceObserver().register_callback("trace.json")
            observer.start()
            torch.neg(one)
            """
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert Trace(tmp_path / "trace.json").names() == ["aten::neg"]

    def test_dropping_the_observer_completes_the_file(self, tmp_path):
        observer = ExecutionTraceObserver().register_callback(tmp_path / "trace.json")
        observer.start()
        ONE.neg()
        del observer
        gc.collect()
        assert Trace(tmp_path / "trace.json").names() == ["aten::neg"]

    def test_a_program_that_is_killed_leaves_nothing_under_the_name(self, tmp_path, run_python):
        done = run_python(
            """
            import os, signal
            import mindtorch_v2 as torch
            one = torch.ones(1)
            observer = torch.profiler.ExecutionTraceObserver().register_callback("trace.json")
            observer.start()
            torch.neg(one)
            os.kill(os.getpid(), signal.SIGKILL)
            """
        )
        assert done.returncode != 0
        assert not (tmp_path / "trace.json").exists()

    @pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
    def test_a_forked_process_writes_nothing(self, tmp_path, run_python, name):
        done = run_python(
            f"""
            import os, sys
            import mindtorch_v2 as torch
            x = torch.ones(1)
            observer = torch.profiler.ExecutionTraceObserver().register_callback("{name}")
            observer.start()
            for _ in range(200):
                x.neg()
            child = os.fork()
            if child == 0:
                for _ in range(200):
                    x.cos()
                assert not observer.is_registered and not observer.is_running()
                observer.stop()
                observer.unregister_callback()
                mine = torch.profiler.ExecutionTraceObserver().register_callback("child.json")
                mine.start()
                x.sin()
                mine.unregister_callback()
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            x.exp()
            observer.unregister_callback()
            """
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert Trace(tmp_path / name).names() == [*["aten::neg"] * 200, "aten::exp"]
        assert Trace(tmp_path / "child.json").names() == ["aten::sin"]


class TestTheEnvironment:
    @pytest.fixture(autouse=True)
    def temporary(self, tmp_path, monkeypatch):
        import tempfile

        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def test_it_asks_for_nothing(self, monkeypatch):
        monkeypatch.delenv("ENABLE_PYTORCH_EXECUTION_TRACE", raising=False)
        assert ExecutionTraceObserver.build_execution_trace_obs_from_env() is None
        assert profile().execution_trace_observer is None

    def test_it_asks_for_a_trace(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
        with profile() as prof:
            ONE.neg()
        path = prof.execution_trace_observer.get_output_file_path()
        assert path.startswith(str(tmp_path))
        assert path.endswith(".et.json")
        assert Trace(path).names() == ["aten::neg"]
        assert prof.execution_trace_observer.get_resources_dir() is None

    def test_it_asks_for_a_folder_too(self, monkeypatch):
        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "1")
        observer = ExecutionTraceObserver.build_execution_trace_obs_from_env()
        folder = observer.get_resources_dir()
        assert folder == observer.get_output_file_path().removesuffix(".json") + "_resources"
        assert os.path.isdir(folder)
        observer.unregister_callback()

    def test_two_profilers_may_be_made(self, monkeypatch):
        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
        first = profile()
        with pytest.warns(UserWarning, match="is being written"):
            second = profile()
        assert second.execution_trace_observer is None
        first.execution_trace_observer.unregister_callback()

    def test_ranges_of_integers(self, monkeypatch, traced):
        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_RANGE", "1")
        weight, indices = torch.ones(4, 3), torch.tensor([3, 1, 2])

        def work():
            torch.nn.functional.embedding(indices, weight)
            torch.cat([indices, -indices])
            indices[:0].neg()
            weight.neg()

        trace = traced(work)
        assert json.loads(trace["aten::embedding"]["tensor_range"]) == {"1": [1, 3]}
        assert json.loads(trace["aten::cat"]["tensor_range"]) == {"0": [1, 3], "1": [-3, -1]}
        assert [node["tensor_range"] for node in trace.named("aten::neg")][1:] == ["", ""]

    def test_contents_of_integers(self, monkeypatch, traced, tmp_path):
        import numpy as np

        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_DATA", "aten::embedding,aten::other")
        weight, indices = torch.ones(4, 3), torch.tensor([3, 0, 1, 0, 2, 0])[::2]
        node = traced(lambda: torch.nn.functional.embedding(indices, weight))["aten::embedding"]
        file = tmp_path / "trace_resources" / f"nid_{node.id}_tid_1.dat"
        assert np.fromfile(file, np.int64).tolist() == [3, 1, 2]
        assert [p.name for p in file.parent.iterdir()] == [file.name]
        assert node["tensor_range"] == ""

    def test_folders_of_other_files(self, tmp_path):
        path = str(tmp_path / "trace.json")
        assert ExecutionTraceObserver.get_resources_dir_for_et_path(path) is None
        folder = str(tmp_path / "trace_resources")
        assert ExecutionTraceObserver.get_resources_dir_for_et_path(path, create_dir=True) == folder
        assert ExecutionTraceObserver.get_resources_dir_for_et_path(path) == folder
        with pytest.warns(UserWarning, match="cannot be made"):
            missing = ExecutionTraceObserver.get_resources_dir_for_et_path(str(tmp_path / "no" / "x.json"), create_dir=True)
        assert missing is None
