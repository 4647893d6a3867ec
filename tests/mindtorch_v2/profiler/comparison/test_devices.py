"""What changed on devices between two runs, from traces written by hand: times are given, so every answer is known."""

import pytest

from mindtorch_v2.profiler.comparison import compare
from mindtorch_v2.profiler.opening import open_recording

from ..device_traces import annotation, call, kernel, op, write

STEP = 1_000  # microseconds


def run(path, kernels, *, count=12, device=0):
    """The session of steps that launch these kernels one after the other: (name, microseconds). Every third step, each takes 3 % longer."""
    rows, correlation = [], 0
    for step in range(count):
        at = 10_000 + step * STEP
        rows += [annotation(f"ProfilerStep#{step}", at, STEP), op("aten::mm", at + 1, 40)]
        begin = at + 50
        for which, (name, length) in enumerate(kernels):
            correlation += 1
            length = length * (1.03 if step % 3 == 0 else 1)
            rows.append(call("cudaLaunchKernel", at + 2 + 3 * which, 2, correlation))
            rows.append(kernel(name, begin, length, correlation, device=device))
            begin += length
    return open_recording(write(path, rows)).session


@pytest.fixture
def compared(tmp_path):
    def compared(before, after, **facts):
        return compare(run(tmp_path / "before.json", before), run(tmp_path / "after.json", after, **facts))

    return compared


BEFORE = [("gemm", 200), ("relu", 50), ("gemm", 100)]


def test_the_same_work_has_no_change(compared):
    found = compared(BEFORE, BEFORE)
    (device,) = found.devices
    assert device.names == ("CUDA:0", "CUDA:0")
    assert device.work_ns == (350_000, 350_000)
    assert device.kernels == ()
    assert "CUDA:0: the work of a step took 350.000us and now takes 350.000us (+0.0%)" in found.table()


def test_a_slower_kernel_is_told_with_the_time_that_it_adds(compared):
    found = compared(BEFORE, [("gemm", 320), ("relu", 50), ("gemm", 100)])
    (device,) = found.devices
    (change,) = device.kernels
    assert (change.kind, change.name, change.before_ns, change.after_ns) == ("slower", "gemm", 300_000, 420_000)
    assert change.calls == (2, 2)
    assert change.p_value < 0.01
    assert found.changes == ()  # the host's places took as long as before
    assert "slower  gemm              300.000us  420.000us        +120.000us       +34.3%" in found.table()
    assert "| slower | `gemm` | 300.000us | 420.000us | +120.000us |" in found.markdown()


def test_kernels_of_other_names(compared, tmp_path):
    found = compared(BEFORE, [("gemm", 200), ("<script>", 60), ("gemm", 100)])
    assert [(k.kind, k.name, k.delta_ns) for k in found.devices[0].kernels] == [
        ("added", "<script>", 60_000),
        ("removed", "relu", -50_000),
    ]
    found.export_page(tmp_path / "diff.html")
    text = (tmp_path / "diff.html").read_text()
    assert "&lt;script&gt;" in text
    assert "<script>" not in text
    facts = found.as_dict()["devices"][0]
    assert [each["delta_ns"] for each in facts["kernels"]] == [60_000, -50_000]


def test_what_is_small_is_left_out(compared):
    assert compared(BEFORE, [("gemm", 200), ("relu", 50), ("gemm", 100), ("tiny", 2)]).devices[0].kernels == ()


def test_one_device_of_another_number_is_the_same(compared):
    found = compared(BEFORE, BEFORE, device=1)
    assert [device.names for device in found.devices] == [("CUDA:0", "CUDA:1")]


def test_idle_time_that_changed_is_told_with_its_cause(compared):
    found = compared(BEFORE, [("gemm", 700)])
    busy = found.devices[0].busy_share
    assert busy[0] < 0.4
    assert busy[1] > 0.7
    assert "(idle, host late: " in found.table()


def test_without_a_device(tmp_path):
    rows = [annotation("ProfilerStep#0", 0, 10), op("aten::mm", 1, 5)]
    session = open_recording(write(tmp_path / "cpu.json", rows)).session
    assert compare(session, session).devices == ()
