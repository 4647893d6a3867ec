"""torch.distributed: one process computes. It is not available, as in a PyTorch that was built without it; names can be imported."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from ._refused import refused_here

__all__ = [
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "ReduceOp",
    "group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
]


def is_available() -> bool:
    """False."""
    return False


def is_backend_available(backend: str) -> bool:
    """False."""
    return False


is_initialized = is_gloo_available = is_mpi_available = is_nccl_available = is_ucc_available = is_xccl_available = is_available


def is_torchelastic_launched() -> bool:
    """False."""
    return False


class ReduceOp(enum.IntEnum):
    """How values of several processes would be combined."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


class group:  # noqa: N801 - torch's spelling
    """The processes: none."""

    WORLD = None


class GroupMember:
    """The processes: none."""

    WORLD = None
    NON_GROUP_MEMBER = -100


class DistError(RuntimeError):
    """An error between processes; never raised here."""


class DistBackendError(DistError):
    """An error of a backend."""


class DistNetworkError(DistError):
    """An error of the network."""


class DistStoreError(DistError):
    """An error of a store."""


globals().update(
    refused_here(
        __name__,
        functions="all_gather all_gather_coalesced all_gather_into_tensor all_gather_object all_reduce all_reduce_coalesced all_to_all"
        " all_to_all_single barrier batch_isend_irecv broadcast broadcast_object_list destroy_process_group gather gather_object get_backend"
        " get_global_rank get_group_rank get_node_local_rank get_process_group_ranks get_rank get_world_size init_device_mesh"
        " init_process_group irecv isend monitored_barrier new_group new_subgroups recv recv_object_list reduce reduce_scatter"
        " reduce_scatter_tensor rendezvous scatter scatter_object_list send send_object_list split_group",
        classes="Backend DeviceMesh FileStore HashStore P2POp PrefixStore ProcessGroup Reducer Store TCPStore Work",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
