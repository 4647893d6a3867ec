"""Reading snapshots of memory, as the tests do."""

import mindtorch_v2 as torch

memory = torch.cpu.memory


def address(tensor):
    return tensor.untyped_storage().data_ptr()


def trace(snapshot=None):
    (entries,) = (snapshot or memory._snapshot())["device_traces"]
    return entries


def actions(of, entries=None):
    return [entry["action"] for entry in (trace() if entries is None else entries) if entry.get("addr") == of]


def segment_of(tensor, snapshot=None):
    segments = (snapshot or memory._snapshot())["segments"]
    (found,) = [segment for segment in segments if segment["address"] == address(tensor)]
    return found


def functions(frames):
    return [frame["name"] for frame in frames]


ALLOCATION = ["segment_alloc", "alloc"]
FREE = ["free_requested", "free_completed", "segment_free"]
