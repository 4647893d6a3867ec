"""torch.distributed.fsdp: modules whose parameters are spread over processes. There is one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refused import refused_here

globals().update(
    refused_here(
        __name__,
        functions="fully_shard register_fsdp_forward_method",
        classes="BackwardPrefetch CPUOffload CPUOffloadPolicy FSDPModule FullOptimStateDictConfig FullStateDictConfig FullyShardedDataParallel LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision MixedPrecisionPolicy OffloadPolicy OptimStateKeyType ShardedOptimStateDictConfig ShardedStateDictConfig ShardingStrategy StateDictType UnshardHandle",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
