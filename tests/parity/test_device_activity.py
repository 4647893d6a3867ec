"""What devices did, next to what HolisticTraceAnalysis finds in the same file."""

from __future__ import annotations

import logging
import random
import warnings

import pytest
from tests.mindtorch_v2.profiler.device_traces import annotation, call, copy, kernel, op, write

from mindtorch_v2.profiler.device import DeviceActivity
from mindtorch_v2.profiler.opening import open_recording

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]  # HTA's own warnings


def training(seed: int, steps: int = 4) -> list[dict]:
    """Steps of a training on two streams, with copies, communication, and a host that is late at times. Nanoseconds matter."""
    chance = random.Random(seed)
    host, compute, network, correlation, rows = 1_000.0, 1_000.0, 1_000.0, 0, []
    for step in range(steps):
        began = host
        for at in range(20):
            correlation += 1
            length = round(chance.uniform(1, 60), 3)
            length_of_call = round(chance.uniform(2, 9), 3)
            rows.append(op("aten::mm", round(host, 3), length_of_call + 4))
            if at % 9 == 4:
                rows.append(call("cudaMemcpyAsync", round(host + 1, 3), length_of_call, correlation))
                begin = max(compute + 0.5, host + length_of_call + 2)
                rows.append(copy("HtoD", round(begin, 3), length, correlation, int(length * 1_000)))
                compute = begin + length
            elif at % 7 == 3:
                rows.append(call("cudaLaunchKernel", round(host + 1, 3), length_of_call, correlation))
                begin = max(network + 1.5, host + length_of_call + 3)
                rows.append(kernel("ncclDevKernel_AllReduce_Sum_f32", round(begin, 3), length * 2, correlation, stream=20))
                network = begin + length * 2
            else:
                rows.append(call("cudaLaunchKernel", round(host + 1, 3), length_of_call, correlation))
                begin = max(compute + 0.01, host + length_of_call + 1.5)
                rows.append(kernel(f"gemm_{at % 3}", round(begin, 3), length, correlation))
                compute = begin + length
            host += length_of_call + 5 + (chance.random() < 0.2) * 150
        rows.append(annotation(f"ProfilerStep#{step}", round(began, 3), round(host - began - 0.5, 3)))
    return rows


@pytest.fixture(params=range(5))
def both(request, tmp_path, monkeypatch):
    """HTA's analysis, and ours."""
    monkeypatch.setenv("HTA_DISABLE_NS_ROUNDING", "1")
    from hta.trace_analysis import TraceAnalysis

    logging.disable(logging.CRITICAL)
    path = write(tmp_path / "rank0.json", training(request.param), distributedInfo={"rank": 0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(tmp_path), include_last_profiler_step=True)
    logging.disable(logging.NOTSET)
    (device,) = DeviceActivity.of(open_recording(path).session).devices
    return theirs, device


def test_busy_idle_and_computation(both):
    theirs, device = both
    row = theirs.get_temporal_breakdown(visualize=False).iloc[0]
    assert device.idle_ns == pytest.approx(row["idle_time(us)"] * 1000, abs=1)
    assert device.span_ns == pytest.approx(row["kernel_time(us)"] * 1000, abs=1)
    assert device.sorts["computation"] == pytest.approx(row["compute_time(us)"] * 1000, abs=1)
    assert sum(device.idle_causes.values()) == device.idle_ns


def test_overlap_of_communication_and_computation(both):
    theirs, device = both
    row = theirs.get_comm_comp_overlap(visualize=False).iloc[0]
    assert round(100 * device.communication_overlap, 2) == pytest.approx(row["comp_comm_overlap_pctg"], abs=0.011)


def test_idle_time_of_streams_by_cause(both):
    theirs, device = both
    table = theirs.get_idle_time_breakdown(ranks=[0], visualize=False)[0]
    for stream in device.streams:
        rows = table[table["stream"] == stream.number]
        theirs_of_host = rows[rows["idle_category"] == "host_wait"]["idle_time"].sum() * 1000
        ours = sum(stream.idle_causes[cause] for cause in ("host late", "synchronization", "memory copy", "launch"))
        assert ours == pytest.approx(theirs_of_host, abs=50)
        assert stream.idle_ns == pytest.approx(rows["idle_time"].sum() * 1000, abs=50)


def test_kernels(both):
    theirs, device = both
    _, table = theirs.get_gpu_kernel_breakdown(visualize=False, num_kernels=100, duration_ratio=1.0)
    ours = {(kernel.name, kernel.total_ns, kernel.max_ns, kernel.min_ns) for kernel in device.kernels}
    for _, row in table.iterrows():
        total, largest, smallest = (round(row[name] * 1000) for name in ("sum (us)", "max (us)", "min (us)"))
        assert (row["name"], total, largest, smallest) in ours
    assert len(table) == len(ours)


def test_queue_lengths(both):
    theirs, device = both
    table = theirs.get_queue_length_summary(ranks=[0])
    for stream in device.streams:
        assert stream.queue.maximum == table.loc[(0, stream.number)][("queue_length", "max")]


def test_launches(both):
    theirs, device = both
    table = theirs.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0]
    assert device.launches.count == len(table)
    assert device.launches.delay_total_ns == pytest.approx(table["launch_delay"].sum() * 1000, abs=len(table))
    assert device.launches.shorter_than_call == (table["gpu_duration"] < table["cpu_duration"]).sum()
