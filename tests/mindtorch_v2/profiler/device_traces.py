"""Trace files as torch and torch_npu write them on machines with devices, written down by hand: times in microseconds."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["HOST", "annotation", "call", "copy", "kernel", "op", "sync", "trace", "write"]

HOST = 4_242


def row(category: str | None, name: str, start: float, duration: float, pid: Any, tid: Any, **args: Any) -> dict[str, Any]:
    found = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": args}
    return {key: value for key, value in found.items() if value is not None}


def op(name: str, start: float, duration: float, *, tid: int = HOST, **args: Any) -> dict[str, Any]:
    return row("cpu_op", name, start, duration, HOST, tid, **args)


def annotation(name: str, start: float, duration: float, *, tid: int = HOST) -> dict[str, Any]:
    return row("user_annotation", name, start, duration, HOST, tid)


def call(name: str, start: float, duration: float, correlation: int, *, tid: int = HOST) -> dict[str, Any]:
    return row("cuda_runtime", name, start, duration, HOST, tid, cbid=211, correlation=correlation)


def kernel(name: str, start: float, duration: float, correlation: int, *, stream: int = 7, device: int = 0) -> dict[str, Any]:
    return row("kernel", name, start, duration, device, stream, device=device, stream=stream, correlation=correlation, context=1)


def copy(
    direction: str, start: float, duration: float, correlation: int, size: int, *, stream: int = 7, device: int = 0
) -> dict[str, Any]:
    name = f"Memcpy {direction} (Device -> Pinned)"
    facts = {"device": device, "stream": stream, "correlation": correlation, "bytes": size}
    return row("gpu_memcpy", name, start, duration, device, stream, **facts)


def sync(name: str, start: float, duration: float, correlation: int, *, stream: int = 7) -> dict[str, Any]:
    return row("cuda_sync", name, start, duration, 0, stream, device=0, stream=stream, correlation=correlation)


def trace(rows: list[dict[str, Any]], **header: Any) -> dict[str, Any]:
    devices = sorted({r["pid"] for r in rows if isinstance(r, dict) and isinstance(r.get("pid"), int) and r["pid"] < 100})
    names = [
        {"ph": "M", "name": "process_name", "pid": HOST, "tid": 0, "ts": 0, "args": {"name": "python3"}},
        {"ph": "M", "name": "thread_name", "pid": HOST, "tid": HOST, "ts": 0, "args": {"name": f"thread {HOST} (python3)"}},
        *({"ph": "M", "name": "process_labels", "pid": d, "tid": 0, "ts": 0, "args": {"labels": f"GPU {d}"}} for d in devices),
    ]
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "GPU"}],
        **header,
        "traceEvents": [*names, *rows],
        "traceName": "t",
    }


def write(path: Any, rows: list[dict[str, Any]], *, indent: int | None = None, **header: Any) -> Any:
    path.write_text(json.dumps(trace(rows, **header), indent=indent))
    return path
