"""What the wall time was spent on, and the rows that matter."""

from __future__ import annotations

from typing import Any

from ....model import dropping
from ....model.summary import Summary
from ..sources import Process

__all__ = ["overview"]

# By part: its name, and what it means. In the order of the picture.
MEANINGS = {
    "forward": (
        "Forward",
        "Operators outside of backward passes and optimizers: forward passes, losses, tensors that the program makes itself.",
    ),
    "backward": ("Backward", "Operators and nodes of backward passes, gradients being added up included."),
    "optimizer": ("Optimizer", "Operators inside of an optimizer's step() and zero_grad()."),
    "data loading": ("Data", "Waiting for the next batch of a DataLoader, or making it in this process."),
    "own Python": (
        "Own Python",
        "Python between operators: your code, and that of modules and optimizers. Larger batches take less of it.",
    ),
    "waiting": ("Waiting", "In functions that wait: for time to pass, a lock, a file, another process."),
    "waiting for the device": (
        "Waiting for the device",
        "In calls that wait until a device has finished: synchronize(), item(), cpu().",
    ),
    "own Python and waiting": (
        "Own Python and waiting",
        "Time outside of operators. A recording with stacks (with_stack=True) tells the two apart.",
    ),
    "compilation": (
        "Compiling",
        "The first call of an operator with a new kind of arguments compiles a function for it; later calls do not.",
    ),
    "recorder": ("Recorder", "The recording's own work, from the measured cost of an event. No other part contains it."),
}


def overview(process: Process) -> dict[str, Any]:
    """The parts of the wall time with their meanings, the steps, and the operators with most self time."""
    summary = Summary.of_parts(process.parts)
    operators = {"forward": summary.forward_ns, "backward": summary.backward_ns, "optimizer": summary.optimizer_ns}
    times = operators | {name: ns for name, ns in summary.parts.items() if name != "operators"}
    steps = process.steps
    return {
        "wall": summary.wall_ns,
        "onProcessor": summary.on_processor_ns,
        "delay": " ".join([*[dropping.LEFT_OUT] * dropping.lacks_operators(process.session.info), summary.delay]).strip(),
        "events": len(process.recording.rows),
        "parts": [{"name": MEANINGS[name][0], "key": name, "ns": ns, "means": MEANINGS[name][1]} for name, ns in times.items()],
        "otherThreads": [[thread.name, thread.operators_ns] for thread in summary.other_threads],
        "devices": [[f"{device.type} {device.index}", device.busy_share] for device in process.devices.devices],
        "steps": {
            "count": len(steps),
            "by": steps.by,
            "median": steps.median_ns,
        },
    }
