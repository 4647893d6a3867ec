"""Files that nvprof wrote, as lists of events."""

from __future__ import annotations

import sqlite3
from typing import Any

from .model.events import FunctionEvent
from .output.event_list import EventList

__all__ = ["EnforceUnique", "load_nvprof", "parse_nvprof_trace"]


class EnforceUnique:
    """Refuses keys that it has seen."""

    def __init__(self) -> None:
        self.seen: set[tuple[Any, ...]] = set()

    def see(self, *key: Any) -> None:
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


def load_nvprof(path: str) -> EventList:
    """The annotated functions of a file that nvprof wrote."""
    return EventList(parse_nvprof_trace(path))


def parse_nvprof_trace(path: str) -> list[FunctionEvent]:
    """Functions by start, each with the kernels that were launched inside it."""
    database = sqlite3.connect(path)
    database.row_factory = sqlite3.Row
    text = dict(database.execute("SELECT _id_, value FROM StringTable"))
    pairs = "CUPTI_ACTIVITY_KIND_MARKER b JOIN CUPTI_ACTIVITY_KIND_MARKER e ON b.id = e.id AND b.name != 0 AND e.name = 0"
    functions: dict[int, FunctionEvent] = {}
    unique = EnforceUnique()
    for row in database.execute(f"SELECT b.id id, b.name name, b.timestamp began, e.timestamp ended FROM {pairs}"):
        unique.see(row["id"])
        functions[row["id"]] = FunctionEvent(
            id=row["id"], node_id=0, name=text[row["name"]], start_us=row["began"], end_us=row["ended"], thread=0
        )
    launches = (
        "SELECT b.id id, r._id_ call, r.cbid cbid, k.name name, k.end - k.start took FROM "
        f"{pairs} JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON b.timestamp < r.start AND r.end < e.timestamp "
        "JOIN CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL k ON k.correlationId = r.correlationId"
    )
    unique = EnforceUnique()
    for row in database.execute(launches):
        unique.see(row["id"], row["call"])
        if row["cbid"] != 211:  # cudaLaunchKernel
            raise AssertionError(f"Expected cbid to be 211, but got {row['cbid']}")
        functions[row["id"]].append_kernel(row["name"], 0, row["took"])
    database.close()
    return sorted(functions.values(), key=lambda event: event.time_range.start)
