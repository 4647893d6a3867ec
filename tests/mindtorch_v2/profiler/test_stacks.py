"""Stacks as lines for flame graphs."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_v2.profiler.capture.stacks import stack_walk
from mindtorch_v2.profiler.model.session import Frame, Info, Track
from mindtorch_v2.profiler.output import stacks
from mindtorch_v2.profiler.output.event_list import EventList

from .by_hand import kernel, op, record, runtime, scope

MAIN = Frame("train.py", 10, "<module>")
INNER = Frame("/my models/net.py", 45, "forward; twice")
INFO = Info(with_stack=True)


def lines(path) -> list[str]:
    return path.read_text().splitlines()


def test_outermost_first_with_the_time_of_its_own_in_microseconds(tmp_path):
    session = record(
        [
            op("aten::linear", 0, 10_000, op("aten::addmm", 1_000, 7_500, stack=(INNER, MAIN)), stack=(MAIN,)),
            scope("step", 20_000, 22_999, stack=(MAIN,)),
        ],
        info=INFO,
    )
    stacks.export_stacks(session, tmp_path / "out")
    assert lines(tmp_path / "out") == [
        "train.py(10):_<module> 3",  # 10 µs less 6.5 µs of the child
        "train.py(10):_<module>;/my_models/net.py(45):_forward__twice 6",
        "train.py(10):_<module> 2",
    ]


def test_less_than_a_microsecond_and_no_stack_have_no_line(tmp_path):
    session = record([op("a", 0, 999, stack=(MAIN,)), op("b", 1_000, 9_000), op("c", 9_000, 10_000, stack=(MAIN,))], info=INFO)
    stacks.export_stacks(session, tmp_path / "out")
    assert lines(tmp_path / "out") == ["train.py(10):_<module> 1"]


@pytest.mark.parametrize("metric", ["self_cuda_time_total", "self_privateuse1_time_total", "self_xpu_time_total"])
def test_time_on_a_device_is_that_of_the_kernels(tmp_path, metric):
    tracks = [Track(1, 1), Track(2, 2, "", "NPU")]
    launch = op("aten::add", 0, 50_000, runtime("aclnnAdd", 10_000, 20_000, correlation=7), stack=(MAIN,))
    session = record([launch, kernel("Add", 60_000, 95_000, stream=2, correlation=7)], info=INFO, tracks=tracks)
    stacks.export_stacks(session, tmp_path / "out", metric)
    assert lines(tmp_path / "out") == ["train.py(10):_<module> 35"]


def test_on_a_cpu_alone_there_is_none(tmp_path):
    stacks.export_stacks(record([op("a", 0, 9_000, stack=(MAIN,))], info=INFO), tmp_path / "out", "self_cuda_time_total")
    assert lines(tmp_path / "out") == []


@pytest.mark.parametrize(
    "export", [lambda s, p, m: stacks.export_stacks(s, p, m), lambda s, p, m: EventList.of(s).export_stacks(p, m)]
)
def test_an_unknown_metric_is_refused_and_nothing_written(tmp_path, export):
    with pytest.raises(ValueError, match=r"metric should be one of: .*self_cpu_time_total"):
        export(record([op("a", 0, 1)]), tmp_path / "out", "cpu_time_total")
    assert os.listdir(tmp_path) == []


def test_events_one_by_one_give_the_same_lines(tmp_path):
    session = record([op("a", 0, 9_000, op("b", 1_000, 3_000, stack=(INNER, MAIN)), stack=(MAIN,))], info=INFO)
    stacks.export_stacks(session, tmp_path / "whole")
    events = EventList.of(session)
    events[0].count = 2  # events that were written to are read one by one
    EventList(list(events)).export_stacks(str(tmp_path / "list"), "self_cpu_time_total")
    assert lines(tmp_path / "whole") == lines(tmp_path / "list")
    assert len(lines(tmp_path / "whole")) == 2


@given(st.lists(st.text(st.characters(), min_size=1), min_size=1))
def test_any_names_make_one_line_that_can_be_read_again(names):
    (line,) = stacks.line(names, 12).encode("utf-8", "backslashreplace").decode().splitlines()
    frames, amount = line.rsplit(" ", 1)
    assert amount == "12"
    assert len(frames.split(";")) == len(names)
    assert not any(character.isspace() for character in frames)


class CountingCode:
    """A code object that counts how often its table of lines is read."""

    co_filename, co_name, co_firstlineno = "big.py", "big", 1

    def __init__(self, lines):
        self.lines = lines
        self.read = 0

    def co_lines(self):
        self.read += 1
        return iter([(2 * i, 2 * i + 2, None if i == 3 else i + 2) for i in range(self.lines)])


def test_the_lines_of_a_function_are_read_once_however_often_it_calls():
    code = CountingCode(1000)
    stack_walk.forget()
    frames = [stack_walk.resolve([(code, 2 * i)]) for i in range(1000)]
    assert code.read == 1
    assert [f.line for (f,) in frames] == [2, 3, 4, 1, *range(6, 1002)]  # the first line of the function stands for none
    assert stack_walk.frame_at(code, -1).line == 1
    other = CountingCode(2)
    assert stack_walk.frame_at(other, 2).line == 3
    stack_walk.forget()
