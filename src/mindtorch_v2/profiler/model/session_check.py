"""Whether a session that was read from a file fits together: its columns are of one length and point into its tables.

Everything that is made of a session relies on this, so a file is checked once, when it is loaded. What is wrong is a ValueError.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..device_type import DeviceType
from . import tree
from .session import COLUMNS, COSTS, DIRECTIONS, KINDS, ROLE_NAMES, Column, Info, Label, Session, TensorInput

__all__ = ["check"]

LATEST_NS = 1 << 62  # differences and sums of two times still fit their 64 bits


def check(session: Session) -> None:
    """Raise unless the session fits together."""
    _check_columns(session)
    _check_order(session)
    _check_logs(session)
    _check_tables(session)
    _check_info(session.info)


# Columns -----------------------------------------------------------------------------------------------------------------------


def _check_columns(session: Session) -> None:
    count = len(session)
    for name in COLUMNS:
        column = getattr(session, name)
        if column is not None and len(column) != count:
            raise ValueError(f"{len(column)} rows of {name} and {count} of label")
    _point_into("label", session.label, 0, len(session.labels))
    _point_into("track", session.track, 0, len(session.tracks))
    _point_into("inputs", session.inputs, -1, len(session.input_table))
    _point_into("stack", session.stack, -1, len(session.stack_table))
    _point_into("launch", session.launch, -1, count)


def _point_into(name: str, column: Column | None, first: int, end: int) -> None:
    if column is not None and len(column) and not first <= column.min() <= column.max() < end:
        raise ValueError(f"{name} points outside of its table of {end}")


def _check_order(session: Session) -> None:
    """Rows are in order of start, and what is around a row on its track comes before it."""
    start, end = session.start_ns, session.end_ns
    _check_times("start_ns", start)
    _check_times("end_ns", end)
    if np.any(end < start):
        raise ValueError("an event ends before it starts")
    _check_amounts("the durations of events", end.astype(np.float64) - start)
    if np.any(np.diff(start) < 0):
        raise ValueError("events are not in order of start")
    for rows in tree.groups(session.track):
        depth = session.depth[rows].astype(np.int64)
        if depth[0] != 0 or depth.min() < 0 or np.any(np.diff(depth) > 1):
            raise ValueError("depth tells of events that are not there")


def _check_times(name: str, column: Column) -> None:
    if len(column) and not -LATEST_NS <= column.min() <= column.max() <= LATEST_NS:
        raise ValueError(f"{name} has times that no clock tells")


def _check_amounts(name: str, column: Column) -> None:
    """Raise unless these can be summed up in 64 bits, in any grouping."""
    if np.abs(column.astype(np.float64)).sum() >= LATEST_NS:
        raise ValueError(f"{name} add up to more than 64 bits hold")


# Logs --------------------------------------------------------------------------------------------------------------------------


def _check_logs(session: Session) -> None:
    memory, roles, flow, copies = session.memory, session.roles, session.flow, session.copies
    if memory is not None:
        _of_one_length("memory", [c for c in memory if c is not None])
        _check_times("memory.time_ns", memory.time_ns)
        _check_amounts("memory.size_bytes", memory.size_bytes)
        _point_into("memory.track", memory.track, 0, len(session.tracks))
        _point_into("memory.event", memory.event, -1, len(session))
        _point_into("memory.stack", memory.stack, -1, len(session.stack_table))
    if roles is not None:
        _of_one_length("roles", roles)
        _point_into("roles.role", roles.role, 0, len(ROLE_NAMES))
    if flow is not None:
        _of_one_length("flow.operand_", (flow.operand_row, flow.operand_address))
        _of_one_length("flow.role_", (flow.role_time_ns, flow.role_address, flow.role))
        _of_one_length("flow.held_", (flow.held_time_ns, flow.held_address, flow.held_bytes))
        _check_amounts("flow.held_bytes", flow.held_bytes)
        _point_into("flow.operand_row", flow.operand_row, 0, len(session))
        _point_into("flow.role", flow.role, 0, len(ROLE_NAMES))
        if np.any(np.diff(flow.operand_row) < 0):
            raise ValueError("flow.operand_row does not rise")
    if copies is not None:
        _of_one_length("copies", copies)
        _check_amounts("copies.size_bytes", copies.size_bytes)
        _point_into("copies.row", copies.row, 0, len(session))
        _point_into("copies.direction", copies.direction, 0, len(DIRECTIONS))
        if np.any(np.diff(copies.row) <= 0):
            raise ValueError("copies.row does not rise")


def _of_one_length(name: str, columns: Sequence[Column]) -> None:
    lengths = sorted({len(column) for column in columns})
    if len(lengths) > 1:
        raise ValueError(f"columns of {name} have {lengths[0]} and {lengths[-1]} rows")


# Tables ------------------------------------------------------------------------------------------------------------------------


def _check_tables(session: Session) -> None:
    for label in session.labels:
        _check_label(label)
    for track in session.tracks:
        _check_types("a track", track, (int, int, str, str, int))
        if track.device_type not in DeviceType.__members__:
            raise ValueError(f"a track of the device {track.device_type[:50]!r}")
    for frame in session.frames:
        _check_types("a frame", frame, (str, int, str))
    for stack in session.stack_table:
        if not all(type(frame) is int and 0 <= frame < len(session.frames) for frame in stack):
            raise ValueError(f"a stack points outside of its table of {len(session.frames)} frames")
    for inputs in session.input_table:
        for value in inputs:
            _check_input(value)


def _check_label(label: Label) -> None:
    _check_types("a label", (*label[:4], label.operator, label.category), (str, str, int, str, str, str))
    if label.kind not in KINDS:
        raise ValueError(f"an event of the kind {label.kind[:50]!r}")
    for part in label.module:
        _check_types("a module", part, (str, str))


def _check_types(what: str, values: Sequence[Any], types: Sequence[type]) -> None:
    for value, expected in zip(values, types, strict=True):
        fits = -(1 << 63) <= value < 1 << 63 if isinstance(value, int) else True
        if type(value) is not expected or not fits:
            raise ValueError(f"{what} has {type(value).__name__} where {expected.__name__} is due")


def _check_input(value: object) -> None:
    match value:
        case TensorInput(shape, strides, dtype):
            if type(dtype) is not str or len(shape) != len(strides):
                raise ValueError("an argument's tensor has other strides than sizes, or no dtype")
            _check_types("an argument's tensor", (*shape, *strides), (int,) * (2 * len(shape)))
        case list() | tuple():
            for item in value:
                _check_input(item)
        case dict():
            for item in value.values():
                _check_input(item)


# What is true of the whole -----------------------------------------------------------------------------------------------------

_SIMPLE_TYPES = {"int": int, "bool": bool, "str": str}


def _check_info(info: Info) -> None:
    for field in dataclasses.fields(info):
        expected = _SIMPLE_TYPES.get(str(field.type))
        if expected is not None:
            _check_types(f"info.{field.name}", (getattr(info, field.name),), (expected,))
    if not isinstance(info.use_device, str | None):
        raise ValueError("info.use_device is no text")
    for began in _tuple("info.live_bytes", info.live_bytes):
        _check_types("info.live_bytes", _tuple("info.live_bytes", began), (int, int))
    for numbered in _tuple("info.first_ids", info.first_ids):
        _check_types("info.first_ids", _tuple("info.first_ids", numbered), (int, int))
        if numbered[0] < 0 or not 0 <= numbered[1] <= LATEST_NS:
            raise ValueError("info.first_ids has numbers that no event has")
    for interval in _tuple("info.collected", info.collected):
        _check_types("info.collected", _tuple("info.collected", interval), (int, int))
        _check_interval(*interval)
    for began, following in itertools.pairwise(info.collected):
        if following[0] < began[1]:
            raise ValueError("info.collected has intervals that overlap")
    for cost in _tuple("info.event_costs_ns", info.event_costs_ns):
        _check_types("info.event_costs_ns", _tuple("info.event_costs_ns", cost), (str, int))
        if cost[0] not in (*KINDS, *COSTS) or not 0 <= cost[1] <= LATEST_NS >> 32:
            raise ValueError("info.event_costs_ns has what no event costs")
    for name in ("adjusted", "dropped"):
        for counted in _tuple(f"info.{name}", getattr(info, name)):
            _check_types(f"info.{name}", _tuple(f"info.{name}", counted), (str, int))
    for name in ("source_roots", "command", "unrecorded"):
        texts = _tuple(f"info.{name}", getattr(info, name))
        _check_types(f"info.{name}", texts, (str,) * len(texts))
    mappings = [info.metadata, info.environment, *_tuple("info.device_properties", info.device_properties), info.distributed or {}]
    for mapping in mappings:
        if not isinstance(mapping, Mapping) or not all(type(key) is str for key in mapping):
            raise ValueError("info has something else where names and values are due")
    for time_ns in (info.started_ns, info.stopped_ns):
        if not -LATEST_NS <= time_ns <= LATEST_NS:
            raise ValueError("info has times that no clock tells")


def _check_interval(began_ns: int, ended_ns: int) -> None:
    if not -LATEST_NS <= began_ns <= ended_ns <= LATEST_NS:
        raise ValueError("info.collected has an interval that ends before it begins, or times that no clock tells")


def _tuple(name: str, value: object) -> tuple[Any, ...]:
    if type(value) is not tuple:
        raise ValueError(f"{name} is {type(value).__name__} where tuple is due")
    return value
