"""Lines of a program among those of the runtime and of libraries."""

import os
import sys

import numpy as np

from mindtorch_v2.profiler.comparison.call_tree import line_of
from mindtorch_v2.profiler.model import places
from mindtorch_v2.profiler.model.peak_memory import PeakMemory
from mindtorch_v2.profiler.model.recording import Recording
from mindtorch_v2.profiler.model.session import Frame, Info, MemoryLog

from .by_hand import op, record


def test_the_source_of_the_peak_is_the_line_of_the_program():
    stack = (
        Frame("", 0, "<built-in function linear>"),
        Frame("", 0, "nn.Module: Linear_0"),
        Frame("/lib/torch/nn/modules/linear.py", 130, "forward"),
        Frame("/home/me/train.py", 12, "step"),
    )
    info = Info(stopped_ns=100, with_stack=True, profile_memory=True, source_roots=("/lib/", "/home/me/"))
    log = MemoryLog(*(np.array([value]) for value in (30, 0, 64, 8, 8, 0)))
    session = record([op("aten::mm", 10, 50, stack=stack)], info=info).replace(memory=log)
    (owner,) = PeakMemory.of(session).owners
    assert (owner.operator, owner.source) == ("aten::mm", "train.py(12): step")
    assert line_of(Recording(session), 0) == "/home/me/train.py:12:step"
    assert [str(frame) for frame in stack[1::2]] == ["nn.Module: Linear_0", "/home/me/train.py:12:step"]


def test_a_script_below_a_linked_directory(tmp_path, monkeypatch):
    """Python resolves the link for `sys.path`, and not for the file of the code."""
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    script = tmp_path / "linked" / "train.py"
    monkeypatch.setattr(sys, "path", [str((tmp_path / "real").resolve())])
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(script), raising=False)
    assert places.below(str(script), places.search_path()) == "train.py"
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert places.below(str(script), places.search_path()) == f"linked{os.sep}train.py"


def test_functions_of_libraries():
    """By the file that a name stands for: that of a frame, or one that is there."""
    frames = (Frame("/home/me/train.py", 12, "step"), Frame("/opt/lib/python3.11/queue.py", 5, "get"))
    standard = os.path.join(os.path.dirname(os.__file__), "")
    info = Info(with_stack=True, source_roots=("/opt/lib/python3.11/", standard, "/home/me/"))
    session = record([op("aten::mm", 10, 50, stack=frames)], info=info)
    libraries = ["queue.py(4): get", "selectors.py(402): select", "mindtorch_v2/nn/modules/linear.py(60): forward"]
    libraries += ["<frozen importlib._bootstrap>(666): _load_unlocked", "nn.Module: Linear_0", "<built-in function sleep>"]
    assert places.of_libraries(libraries, session) == [True] * 6
    assert places.of_libraries(["train.py(10): step", "gone.py(3): f", "aten::mm", "ProfilerStep*"], session) == [False] * 4
