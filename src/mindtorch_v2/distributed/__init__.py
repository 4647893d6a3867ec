"""torch.distributed: processes that compute together, over TCP. The one backend is "gloo", in Python."""

from __future__ import annotations

import datetime
import pdb
from typing import Any

from .. import _missing
from . import constants as constants
from . import device_mesh as device_mesh
from . import distributed_c10d as distributed_c10d
from .collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    record_comm,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    supports_complex,
)
from .constants import default_pg_timeout
from .device_mesh import DeviceMesh, init_device_mesh
from .distributed_c10d import (
    Backend,
    BackendConfig,
    DebugLevel,
    GroupMember,
    GroupName,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_debug_level,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    set_debug_level,
    set_debug_level_from_env,
    shrink_group,
    split_group,
)
from .errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from .file_store import FileStore
from .gloo import ProcessGroupGloo
from .object_collectives import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .options import (
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from .point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from .process_group import ProcessGroup
from .reduce_op import ReduceOp, reduce_op
from .reducer import BuiltinCommHookType, GradBucket, Logger, Reducer
from .rendezvous import register_rendezvous_handler, rendezvous
from .store import HashStore, PrefixStore, Store
from .tcp_store import TCPStore
from .work import Work

__all__ = [name for name in globals() if not name.startswith("_") and name not in ("annotations", "datetime", "pdb", "Any")]
__all__ += ["breakpoint", "is_available"]


def is_available() -> bool:
    """True."""
    return True


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: int = 3600) -> None:
    """Enter the debugger in one process, while the others wait for it.

    Args:
        rank: the process.
        skip: the number of calls to pass first.
        timeout_s: how long the others wait.
    """
    global _breakpoints
    _breakpoints += 1
    if _breakpoints <= skip:
        return
    if get_rank() == rank:
        pdb.Pdb().set_trace()
    barrier(timeout=datetime.timedelta(seconds=timeout_s))


_breakpoints = 0
_missing.install(("distributed",))
# torch: operations are reachable in the module of groups, too
vars(distributed_c10d).update({name: globals()[name] for name in __all__ if name not in vars(distributed_c10d)})


def __dir__() -> list[str]:
    return sorted({*globals(), *_missing.SUBMODULES["distributed"]})
