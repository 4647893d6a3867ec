"""How a tensor would lie on several devices: descriptions, which libraries make when they are imported. No tensor is spread here."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each device has a part, cut along a dimension."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether each device has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the values of all devices are still to be combined."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each device has a part, cut along `dim`."""

    dim: int


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Each device has several parts."""

    split_factor: int = 1


@dataclass(frozen=True)
class Replicate(Placement):
    """Each device has all of it."""


@dataclass(frozen=True)
class Partial(Placement):
    """The values of all devices are still to be combined."""

    reduce_op: str = "sum"
