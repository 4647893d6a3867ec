"""`DistributedSampler`: each of several processes loads its own part of a data set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..._functions import functions
from ..._random import Generator
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[Any]):
    """Every `num_replicas`-th sample, from `rank` on, of an order that all processes draw from the same seed.

    Without these numbers, those of `torch.distributed` hold. `set_epoch` gives another order. All processes get as many samples: at the end some come twice, or with `drop_last` are left out.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from ...distributed.distributed_c10d import get_rank, get_world_size  # costly: sockets, which most programs never need

            num_replicas = get_world_size() if num_replicas is None else num_replicas
            rank = get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        count = len(dataset)
        self.num_samples = count // num_replicas if drop_last else math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[Any]:
        count = len(self.dataset)
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = functions["randperm"](count, generator=generator).tolist()
        else:
            indices = list(range(count))
        missing = self.total_size - count
        if missing > 0 and not self.drop_last:
            indices += (indices * math.ceil(missing / count))[:missing]
        indices = indices[: self.total_size] if self.drop_last else indices
        if len(indices) != self.total_size:
            raise AssertionError(f"Number of indices ({len(indices)}) does not match total_size ({self.total_size})")
        own = indices[self.rank : self.total_size : self.num_replicas]
        if len(own) != self.num_samples:
            raise AssertionError(f"Number of subsampled indices ({len(own)}) does not match num_samples ({self.num_samples})")
        return iter(own)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of this epoch."""
        self.epoch = epoch
