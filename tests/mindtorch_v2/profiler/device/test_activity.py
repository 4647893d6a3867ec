"""Device activity of traces written by hand."""

from __future__ import annotations

import pytest

from mindtorch_v2.profiler.device import DeviceActivity
from mindtorch_v2.profiler.opening import open_recording

from ..by_hand import op as own_op
from ..by_hand import record
from ..device_traces import HOST, call, copy, kernel, op, row, sync, write


@pytest.fixture
def device_of(tmp_path):
    def device_of(*rows):
        activity = DeviceActivity.of(open_recording(write(tmp_path / "t.json", [op("aten::mm", 0, 1), *rows])).session)
        (device,) = activity.devices
        assert sum(device.idle_causes.values()) == device.idle_ns
        return device

    return device_of


def caused(device):
    """The causes that have time, in microseconds."""
    return {cause: ns / 1000 for cause, ns in device.idle_causes.items() if ns}


class TestCausesOfIdleTime:
    def test_the_host_was_late(self, device_of):
        device = device_of(
            call("cudaLaunchKernel", 0, 2, 1), kernel("a", 5, 5, 1), call("cudaLaunchKernel", 30, 2, 2), kernel("b", 34, 1, 2)
        )
        assert caused(device) == {"host late": 20, "launch": 4}

    def test_the_host_had_waited_for_the_device(self, device_of):
        device = device_of(
            *(call("cudaLaunchKernel", 0, 2, 1), kernel("a", 5, 5, 1), call("cudaDeviceSynchronize", 3, 9, 2)),
            *(call("cudaLaunchKernel", 30, 2, 3), kernel("b", 34, 1, 3)),
        )
        assert caused(device) == {"synchronization": 20, "launch": 4}

    def test_the_host_was_in_a_copy(self, device_of):
        device = device_of(
            *(call("cudaMemcpy", 0, 12, 1), copy("DtoH", 5, 5, 1, 100)),
            *(call("cudaLaunchKernel", 30, 2, 3), kernel("b", 34, 1, 3)),
        )
        assert caused(device) == {"memory copy": 20, "launch": 4}

    def test_the_work_was_queued(self, device_of):
        device = device_of(
            *(call("cudaLaunchKernel", 0, 2, 1), kernel("a", 5, 5, 1)),
            *(call("cudaLaunchKernel", 3, 2, 2), kernel("b", 13, 1, 2, stream=9)),
        )
        assert caused(device) == {"waiting for work": 3}

    def test_the_launch_is_not_in_the_file(self, device_of):
        assert caused(device_of(kernel("a", 5, 5, 1), kernel("b", 12, 5, 2))) == {"unknown": 2}

    def test_rows_of_waiting_are_no_work(self, device_of):
        device = device_of(kernel("a", 5, 5, 1), sync("Stream Wait Event", 10, 10, 3), kernel("b", 20, 5, 2))
        assert device.busy_ns == 10_000


def test_overlap(device_of):
    device = device_of(
        kernel("gemm", 0, 10, 1), kernel("ncclKernel_AllReduce", 5, 10, 2, stream=20), copy("HtoD", 12, 8, 3, 16_000, stream=3)
    )
    assert device.sorts == {"computation": 10_000, "communication": 10_000, "memory": 8_000}
    assert device.alone == {"computation": 5_000, "communication": 2_000, "memory": 5_000}
    assert device.overlap == {"computation, communication": 5_000, "communication, memory": 3_000}
    assert device.communication_overlap == 0.5
    assert (device.busy_ns, device.idle_ns) == (20_000, 0)


def test_kernels_and_copies(device_of):
    device = device_of(kernel("a", 0, 1, 1), kernel("a", 2, 3, 2), kernel("a", 6, 11, 3), copy("DtoH", 20, 5, 4, 10_000))
    first, second = device.kernels
    assert (first.name, first.count, first.total_ns, first.mean_ns, first.median_ns, first.min_ns, first.max_ns) == (
        ("a", 3, 15_000, 5_000, 3_000, 1_000, 11_000)
    )
    assert (first.share, second.share) == (0.75, 0.25)
    (sums,) = device.copies
    assert (sums.direction, sums.count, sums.size_bytes, sums.bandwidth) == ("device to host", 1, 10_000, 2.0)


def test_queue_and_launches(device_of):
    rows = [call("cudaLaunchKernel", i, 0.5, i + 1) for i in range(4)] + [kernel("k", 10 + 2 * i, 2, i + 1) for i in range(4)]
    device = device_of(*rows)
    (stream,) = device.streams
    assert stream.queue.maximum == 4
    assert stream.queue.length.tolist() == [1, 2, 3, 4, 3, 2, 1, 0]
    assert stream.queue.mean == pytest.approx((1 + 2 + 3 + 4 * 7 + 3 * 2 + 2 * 2 + 1 * 2) / 16)
    assert device.launches.delay_total_ns == sum(int((10 + 2 * i - i - 0.5) * 1000) for i in range(4))
    assert (device.launches.count, device.launches.unknown, device.launches.shorter_than_call) == (4, 0, 0)


def test_two_devices(tmp_path):
    rows = [kernel("a", 0, 10, 1), kernel("b", 5, 20, 2, device=1), row("gpu_user_annotation", "x", 0, 50, 0, 7)]
    devices = DeviceActivity.of(open_recording(write(tmp_path / "t.json", rows)).session).devices
    assert [(d.index, d.busy_ns, d.name) for d in devices] == [(0, 10_000, "GPU"), (1, 20_000, "")]


def test_no_device():
    activity = DeviceActivity.of(record([own_op("aten::mm", 0, 5)]))
    assert not activity
    assert activity.as_dict() == {"devices": []}
    assert not DeviceActivity.of(record([]))


def test_as_json(device_of, tmp_path):
    import json

    rows = [call("cudaLaunchKernel", 0, 2, 1), kernel("a", 5, 5, 1)]
    session = open_recording(write(tmp_path / "t.json", rows)).session
    told = json.loads(json.dumps(DeviceActivity.of(session).as_dict()))
    assert told["devices"][0]["streams"][0]["queue_maximum"] == 1
    assert session.info.pid == HOST
