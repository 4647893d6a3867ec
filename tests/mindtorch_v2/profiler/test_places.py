"""Lines of a program among those of the runtime and of libraries."""

import numpy as np

from mindtorch_v2.profiler.comparison.call_tree import line_of
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
