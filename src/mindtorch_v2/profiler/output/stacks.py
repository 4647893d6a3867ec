"""Stacks and the time spent in them, a line each: what `flamegraph.pl` and speedscope draw."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..model import links
from ..model.recording import Recording
from ..model.session import Session
from ..writing.atomic_file import replacing

__all__ = ["METRICS", "check_metric", "export_stacks", "line", "lines", "write"]

Column = np.ndarray[Any, np.dtype[Any]]

METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

# `;` parts frames and a space the number; readers end lines at more characters than the newline.
# with what a terminal would obey: controls, and marks that turn the direction of writing
_BREAKS_THE_FORMAT = re.compile(r"[\s;\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def export_stacks(session: Session, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
    """Write a line for each event that has a stack and at least a microsecond of the metric."""
    check_metric(metric)
    recording = Recording(session)
    write(path, lines(recording, recording.rows, metric))


def lines(recording: Recording, rows: Column, metric: str) -> Iterator[str]:
    """The lines of these events."""
    texts = [_frames(recording.places[frame] for frame in stack) for stack in recording.session.stack_table]
    self_us = _self_ns(recording, metric)[rows] // 1000
    for stack, us in zip(recording.stack[rows].tolist(), self_us.tolist()):
        if stack >= 0 and us > 0 and texts[stack]:
            yield f"{texts[stack]} {us}\n"


def check_metric(metric: str) -> None:
    if metric not in METRICS:
        raise ValueError(f"metric should be one of: {METRICS}")


def line(stack: Sequence[str], amount: int) -> str:
    """`outermost;…;innermost amount` of a stack that begins with its innermost frame."""
    return f"{_frames(stack)} {amount}\n"


def write(path: str | os.PathLike[str], texts: Iterable[str]) -> None:
    with replacing(path) as file:
        file.writelines(text.encode("utf-8", "backslashreplace") for text in texts)


def _frames(stack: Iterable[str]) -> str:
    return ";".join([_BREAKS_THE_FORMAT.sub("_", frame) for frame in stack][::-1])


def _self_ns(recording: Recording, metric: str) -> Column:
    if metric == "self_cpu_time_total":
        return np.where(recording.on_cpu, recording.without_children(recording.duration_ns), 0)
    on_device = np.zeros(len(recording.session), np.int64)
    _, kernels = links.launches(recording.session)
    if len(kernels):
        operators, _ = links.device_rows(recording.session)
        np.add.at(on_device, operators[kernels], recording.duration_ns[kernels])
    return on_device
