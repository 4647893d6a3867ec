"""A process that records again and again does not grow."""

import gc
import sys
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function

MODES: dict[str, dict[str, Any]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "stacks": {"with_stack": True},
    "memory": {"profile_memory": True},
    "modules": {"with_modules": True},
    "heap": {"profile_memory": "tracemalloc"},
    "everything": {"record_shapes": True, "with_stack": True, "profile_memory": True, "with_modules": True},
}
RECORDINGS = 30


@pytest.mark.parametrize("options", MODES.values(), ids=MODES.keys())
def test_recordings_leave_nothing(options: dict[str, Any]) -> None:
    model = torch.nn.Linear(8, 8)

    def record(first: int) -> None:
        for i in range(first, first + RECORDINGS):
            with profile(**options) as prof, record_function(f"request {i}", f"customer {i}"):
                model(torch.ones(2, 8)).sum().backward()
            assert len(prof.key_averages()) > 3

    def size() -> tuple[int, int]:
        gc.collect()
        return len(gc.get_objects()), sys.getallocatedblocks()

    record(0)
    objects, blocks = size()
    record(RECORDINGS)
    more_objects, more_blocks = size()
    assert more_objects - objects < RECORDINGS  # what stays after each is one object at least
    assert more_blocks - blocks < 5 * RECORDINGS  # NumPy keeps small pieces of memory for a while, 3 a recording at most
