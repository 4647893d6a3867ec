"""Options of the operations of a process group."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from .reduce_op import RedOpType

__all__ = [
    "AllToAllOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "BarrierOptions",
    "BroadcastOptions",
    "GatherOptions",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
]

_GROUPS_OWN = timedelta(milliseconds=-1)  # as long as the group waits


@dataclass
class AllToAllOptions:
    """Of `all_to_all`."""

    timeout: timedelta = field(default=_GROUPS_OWN, kw_only=True)
    asyncOp: bool = field(default=True, kw_only=True)  # noqa: N815 - torch's spelling, here and below


@dataclass
class AllreduceOptions(AllToAllOptions):
    """Of `all_reduce`."""

    reduceOp: Any = field(default=RedOpType.SUM, kw_only=True)  # noqa: N815


@dataclass
class AllreduceCoalescedOptions(AllreduceOptions):
    """Of `all_reduce_coalesced`."""


@dataclass
class ReduceScatterOptions(AllreduceOptions):
    """Of `reduce_scatter`."""


@dataclass
class BroadcastOptions(AllToAllOptions):
    """Of `broadcast`."""

    rootRank: int = field(default=0, kw_only=True)  # noqa: N815
    rootTensor: int = field(default=0, kw_only=True)  # noqa: N815


@dataclass
class ReduceOptions(BroadcastOptions):
    """Of `reduce`."""

    reduceOp: Any = field(default=RedOpType.SUM, kw_only=True)  # noqa: N815


@dataclass
class GatherOptions(AllToAllOptions):
    """Of `gather`."""

    rootRank: int = field(default=-1, kw_only=True)  # noqa: N815


@dataclass
class ScatterOptions(GatherOptions):
    """Of `scatter`."""


@dataclass
class BarrierOptions(AllToAllOptions):
    """Of `barrier`."""

    device_ids: list[int] = field(default_factory=list, kw_only=True)
    device: Any = field(default=None, kw_only=True)
