"""torch.distributed.tensor: tensors over several devices. There are none, so that no tensor is a `DTensor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refused import refused_here
from .placement_types import Partial as Partial
from .placement_types import Placement as Placement
from .placement_types import Replicate as Replicate
from .placement_types import Shard as Shard

globals().update(
    refused_here(
        __name__,
        functions="distribute_module distribute_tensor empty full init_device_mesh ones rand randn zeros",
        classes="DTensor DeviceMesh",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
