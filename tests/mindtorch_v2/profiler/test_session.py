"""Sessions cut and joined, and what they know of their process."""

import os
import platform
import sys

import mindtorch_v2 as torch
from mindtorch_v2.profiler.model import links
from mindtorch_v2.profiler.model.session import Info, Track, join

from .by_hand import kernel, op, record, runtime

TRACKS = [Track(1, 1), Track(2, 2, "", "NPU")]


def on_device(start_ns):
    launch = op("aten::add", start_ns, start_ns + 50, runtime("aclnnAdd", start_ns + 10, start_ns + 20, correlation=7))
    return record([launch, kernel("Add", start_ns + 60, start_ns + 90, stream=2, correlation=7)], tracks=TRACKS)


def test_kernels_know_their_launch_in_a_joined_session():
    joined = join([record([op("aten::mul", 0, 10)]), on_device(100), on_device(300)])
    assert joined.launch.tolist() == [-1, -1, -1, 2, -1, -1, 5]
    assert [joined.labels[n].name for n in joined.label[[2, 5]]] == ["aclnnAdd", "aclnnAdd"]


def test_without_a_device_there_are_no_launches():
    assert join([record([op("a", 0, 1)]), record([op("b", 2, 3)])]).launch is None


def test_the_head_has_all_columns():
    head = on_device(100).head(2)
    assert len(head) == len(head.launch) == 2


def test_a_joined_session_knows_the_memory_of_all_its_parts():
    with torch.profiler.profile(
        profile_memory=True, acc_events=True, schedule=torch.profiler.schedule(wait=0, warmup=1, active=1)
    ) as prof:
        for _ in range(4):
            kept = torch.empty(256).fill_(1).exp()
            prof.step()
    del kept
    made = [e["cpu_memory_allocated_delta"] for e in prof.events() if e.name == "aten::exp"]
    assert made == [1024, 1024]
    assert {row.key: row.cpu_memory_usage for row in prof.key_averages()}["aten::exp"] == 2048
    numbers = [e["cpu_memory_allocated_before"] for e in prof.events() if e.name == "aten::exp"]
    assert all(number >= 1024 for number in numbers)


def test_scopes_nest_as_deep_as_anyone_likes():
    depth = 40_000
    with torch.profiler.profile() as prof:
        open_scopes = [torch.profiler.record_function("deep").__enter__() for _ in range(depth)]
        torch.ones(1)
        for scope in reversed(open_scopes):
            scope.__exit__(None, None, None)
    (ones,) = [e for e in prof.events() if e.name == "aten::ones"]
    assert prof.session.depth[prof.events().index(ones)] == depth
    assert prof.key_averages().self_cpu_time_total >= 0


def test_joined_recordings_keep_their_numbers():
    first = record([op("a", 0, 10), op("b", 20, 30)], info=Info(first_ids=((0, 5),)))
    second = record([op("c", 100, 110)], info=Info(first_ids=((0, 40),)))
    third = record([op("d", 200, 210), op("e", 220, 230)], info=Info(first_ids=((0, 50),)))
    joined = join([join([first, second]), third])
    assert links.ids(joined).tolist() == [5, 6, 40, 50, 51]
    assert links.ids(joined.head(2)).tolist() == [5, 6]


def test_a_recording_says_what_it_is_of() -> None:
    with torch.profiler.profile() as prof:
        pass
    info = prof.session.info
    assert (info.pid, info.parent_pid) == (os.getpid(), os.getppid())
    assert info.command == tuple(sys.argv)
    assert info.environment["Python"] == platform.python_version()
    assert info.environment["cores"] == os.cpu_count()
