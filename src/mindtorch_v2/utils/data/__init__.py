"""torch.utils.data: data sets, samplers, and loaders that make batches of them, in this process or in workers."""

from __future__ import annotations

from typing import Any

from .dataloader import DataLoader, default_collate, default_convert, get_worker_info
from .dataset import ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset, random_split
from .distributed import DistributedSampler
from .iterator import _DatasetKind
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "_DatasetKind",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]

_DATA_PIPES = frozenset({
    "DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation", "functional_datapipe",
    "guaranteed_datapipes_determinism", "non_deterministic", "runtime_validation", "runtime_validation_disabled",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _DATA_PIPES:
        raise AttributeError(f"torch.utils.data.{name}: data pipes are not part of this library; use Dataset or IterableDataset")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
