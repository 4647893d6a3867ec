"""The processes of a program and their groups: `init_process_group`, `new_group`, ranks and sizes."""

from __future__ import annotations

import enum
import os
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NewType

from .. import _record
from .constants import default_pg_timeout
from .process_group import ProcessGroup
from .rendezvous import rendezvous
from .store import PrefixStore, Store

if TYPE_CHECKING:
    from .._device import device
    from .._types import OptionalDevice

__all__ = [
    "Backend",
    "BackendConfig",
    "DebugLevel",
    "GroupMember",
    "GroupName",
    "destroy_process_group",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "set_debug_level",
    "set_debug_level_from_env",
    "shrink_group",
    "split_group",
]

GroupName = NewType("GroupName", str)
_NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


# --- backends ---------------------------------------------------------------------------------------------------------


class Backend(str):
    """The name of a backend, in lower case. The one that works here is "gloo"."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    backend_list: ClassVar[list[str]] = ["undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake"]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo"}
    backend_capability: ClassVar[dict[str, list[str]]] = {
        "gloo": ["cpu", "cuda"],
        "nccl": ["cuda"],
        "xccl": ["xpu"],
        "ucc": ["cpu", "cuda"],
        "mpi": ["cpu", "cuda"],
        "fake": ["cpu", "cuda", "hpu", "xpu"],
    }

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return name.lower()

    @classmethod
    def register_backend(cls, name: str, func: Callable[..., Any], extended_api: bool = False, devices: Any = None) -> None:
        """Refused: the one backend here is "gloo"."""
        raise NotImplementedError(f"the backend {name!r} cannot be registered: the process groups here are those of 'gloo'")


class BackendConfig:
    """Which backend is for which kind of device, as `cpu:gloo,cuda:gloo`."""

    def __init__(self, backend: str) -> None:
        if ":" in backend.lower():
            pairs = [pair.partition(":") for pair in backend.lower().split(",")]
            for device, colon, name in pairs:
                if not (device and colon and name):
                    raise ValueError(f"Invalid device:backend pairing: {device}{colon}{name}; expected cpu:gloo,cuda:nccl")
            self.device_backend_map = {device: name for device, _, name in pairs}
        else:
            devices = Backend.backend_capability.get(backend, ["cpu", "cuda"])
            self.device_backend_map = dict.fromkeys(devices, backend)

    def __repr__(self) -> str:
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """The backends by device."""
        return self.device_backend_map


def is_backend_available(backend: str) -> bool:
    """Whether there is a backend of this name: "gloo" alone."""
    return backend.lower() == "gloo"


def is_gloo_available() -> bool:
    """True."""
    return True


def is_mpi_available() -> bool:
    """False."""
    return False


is_nccl_available = is_ucc_available = is_xccl_available = is_mpi_available


def is_torchelastic_launched() -> bool:
    """Whether a launcher (`torchrun`) started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_default_backend_for_device(device: device | str) -> str:
    """The backend for tensors on a device."""
    kind = device.partition(":")[0] if isinstance(device, str) else device.type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def _check_backend(backend: str | None) -> None:
    """Refuse what is not gloo on the CPU, in torch's words."""
    if backend is None or backend.lower() == "undefined":
        return
    name = BackendConfig(backend.lower()).device_backend_map.get("cpu", backend.lower())
    if name == "gloo":
        return
    if name == "mpi":
        raise RuntimeError(
            "Distributed package doesn't have MPI built in. MPI is only included if you build PyTorch from source on a host that has MPI"
            " installed."
        )
    if name in ("nccl", "xccl", "ucc"):
        raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
    raise AssertionError(f"Unknown backend type {name}")


class DebugLevel(enum.IntEnum):
    """How much is checked and told. Mismatched calls are found at every level here."""

    OFF = 0
    INFO = 1
    DETAIL = 2

    def __str__(self) -> str:
        return f"DebugLevel.{self.name}"


_debug_level = DebugLevel.OFF


def set_debug_level(level: DebugLevel) -> None:
    """Set the level."""
    global _debug_level
    _debug_level = DebugLevel(level)


def get_debug_level() -> DebugLevel:
    """The level."""
    return _debug_level


def set_debug_level_from_env() -> None:
    """Set the level that `TORCH_DISTRIBUTED_DEBUG` names."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, DETAIL, or INFO.")
    set_debug_level(DebugLevel[name])


set_debug_level_from_env()


# --- the groups of this process -----------------------------------------------------------------------------------------


class _World:
    """The groups that this process is in."""

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.store: Store | None = None
        self.ranks: dict[ProcessGroup, list[int]] = {}
        self.count = 0  # of the groups that were made, those without this process included
        self.timeout = default_pg_timeout


_world = _World()


class _GroupMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes."""
        return _world.default

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        _world.default = value


class group(metaclass=_GroupMeta):  # noqa: N801 - torch's spelling
    """`group.WORLD` is the group of all processes, None before `init_process_group`."""


class GroupMember(metaclass=_GroupMeta):
    """`NON_GROUP_MEMBER` is what `new_group` returns to processes outside the group."""

    NON_GROUP_MEMBER = -100


def _default_group() -> ProcessGroup:
    if _world.default is None:
        raise ValueError(_NOT_INITIALIZED)
    return _world.default


_get_default_group = _default_group


def own_group(given: ProcessGroup | None) -> ProcessGroup:
    """The group that an argument stands for; None is that of all processes."""
    found = _default_group() if given is None else given
    if not isinstance(found, ProcessGroup):
        raise ValueError(f"Expecting a ProcessGroup, but got a {type(found)}.")
    return found


def is_outside(given: object) -> bool:
    """Whether this process is not in a group that it was given."""
    return given is not None and given == GroupMember.NON_GROUP_MEMBER


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return _world.default is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: OptionalDevice = None,
) -> None:
    """Connect this process with the other processes of the program.

    Args:
        backend: "gloo", or None for the same.
        init_method: where they find each other: "env://" (the default; `RANK`, `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`), "tcp://host:port",
            "file:///path".
        timeout: how long operations wait for other processes; 30 minutes unless given.
        world_size, rank: the number of processes, and that of this one; where the method does not say.
        store: a store in the place of `init_method`.
    """
    if _world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if pg_options is not None or device_id is not None:
        raise NotImplementedError("pg_options and device_id are for accelerators; there is none here")
    if store is not None and world_size <= 0:
        raise AssertionError("world_size must be positive if using store")
    if store is not None and rank < 0:
        raise AssertionError("rank must be non-negative if using store")
    _check_backend(backend)
    _world.timeout = default_pg_timeout if timeout is None else timeout
    if store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=_world.timeout))
        store.set_timeout(_world.timeout)
    _world.store = PrefixStore("default_pg", store)
    _world.count = 0
    _world.default = _new_group("default_pg", list(range(world_size)), rank, group_name or None)


def _new_group(text: str, ranks: list[int], rank: int, name: str | None = None, timeout: timedelta | None = None) -> ProcessGroup:
    """The group of these processes, of which this one is a member."""
    assert _world.store is not None
    name = _next_name() if name is None else name
    made = ProcessGroup(PrefixStore(name, _world.store), rank, len(ranks), timeout or _world.timeout)
    made._set_group_name(name)
    made._set_group_desc(text)
    _world.ranks[made] = ranks
    return made


def _next_name() -> str:
    _world.count += 1
    return str(_world.count - 1)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End a group, or all of them; `init_process_group` can be called again then."""
    if is_outside(group):
        return
    found = _world.default if group is None else group
    if found is None:
        raise AssertionError("Process group cannot be None")
    if found not in _world.ranks:
        raise ValueError("Invalid process group specified")
    for each in list(_world.ranks) if found is _world.default else [found]:
        each.shutdown()
        del _world.ranks[each]
    if found is _world.default:
        _world.default = _world.store = None


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: OptionalDevice = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some of the processes. All processes call this, with the same ranks; those outside get `GroupMember.NON_GROUP_MEMBER`.

    Args:
        ranks: the processes; None: all of them.
        timeout: how long operations wait for other processes; that of `init_process_group` unless given.
        backend: "gloo", or None for the same.
        use_local_synchronization: whether only the members call this. The group's name is then made of its ranks.
        group_desc: a text about the group.
        sort_ranks: whether ranks in the group follow those in the program; otherwise, the order given.
    """
    world = _default_group()
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    if pg_options is not None or device_id is not None:
        raise NotImplementedError("pg_options and device_id are for accelerators; there is none here")
    _check_backend(backend)
    members = _checked_ranks(list(range(world.size()) if ranks is None else ranks), world.size())
    if sort_ranks:
        members.sort()
    name = "-".join(map(str, members)) if use_local_synchronization else _next_name()
    own = _world.ranks[world][world.rank()]
    if own not in members:
        return GroupMember.NON_GROUP_MEMBER
    return _new_group(group_desc or "undefined", members, members.index(own), name, timeout)


def _checked_ranks(ranks: list[int], size: int) -> list[int]:
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"ranks list must not contain duplicate entries, got {ranks}")
    if len(ranks) > size:
        raise ValueError("the new group's world size should be less or equal to the world size set by init_process_group")
    for rank in ranks:
        if not 0 <= rank < size:
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    return ranks


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of equal size of neighbouring processes: the one with this process, and all."""
    if group_size is None:
        raise ValueError(
            "Default group size only takes effect when CUDA is available.If your subgroup using a backend that does not depend on CUDA,"
            "please pass in 'group_size' correctly."
        )
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    ranks = get_process_group_ranks(group)
    if len(ranks) < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({len(ranks)})")
    if len(ranks) % group_size:
        raise ValueError(f"The world size ({len(ranks)}) must be divisible by '{group_size=}'")
    parts = [ranks[i : i + group_size] for i in range(0, len(ranks), group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of the processes in each list: the one with this process, and all."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    of_rank: dict[int, Sequence[int]] = {}
    made, own, this = [], None, get_rank()
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in of_rank:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {of_rank[rank]} and {ranks}")
            of_rank[rank] = ranks
        made.append(new_group(ranks, timeout, backend, pg_options, group_desc=group_desc))
        if this in ranks:
            own = made[-1]
    return own, made


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:
    """Refused as in torch, whose gloo groups cannot be split; use `new_group`."""
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    own_group(parent_pg)
    raise RuntimeError("No device associated with the default pg, not safe to split any process groups")


def shrink_group(
    ranks_to_exclude: list[int], group: ProcessGroup | None = None, shrink_flags: int = 0, pg_options: Any = None
) -> ProcessGroup:
    """Refused as in torch, whose gloo groups cannot shrink; use `new_group`."""
    found = own_group(group)
    if found.size() < 2:
        raise ValueError(
            f"Cannot shrink a process group with size {found.size()}. Group must have at least 2 ranks to support shrinking."
        )
    raise RuntimeError(
        "Process group backend gloo does not support shrinking; make a group of the remaining processes with new_group"
    )


# --- facts about groups -------------------------------------------------------------------------------------------------


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process in a group, -1 outside of it."""
    return -1 if is_outside(group) else own_group(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes of a group, -1 outside of it."""
    return -1 if is_outside(group) else own_group(group).size()


def _ranks_of(found: ProcessGroup) -> list[int]:
    if found not in _world.ranks:
        raise ValueError(f"Group {found} is not registered, please create group with torch.distributed.new_group API")
    return _world.ranks[found]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The numbers of the processes of a group in the program."""
    return list(_ranks_of(own_group(group)))


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in a group of a process of the program."""
    ranks = _ranks_of(own_group(group))
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The number in the program of a process of a group."""
    ranks = _ranks_of(own_group(group))
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, which the launcher gives."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def get_backend(group: ProcessGroup | None = None) -> str:
    """The backend of a group: "gloo"."""
    if is_outside(group):
        raise ValueError("Invalid process group specified")
    return own_group(group).name()


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The backends of a group by device."""
    return str(BackendConfig(get_backend(group)))


def get_pg_count() -> int:
    """The number of groups that were made."""
    return _world.count


def _describe() -> dict[str, Any] | None:
    """The processes and groups, as trace files have them."""
    if not is_initialized():
        return None
    groups = [
        {
            "pg_name": each.group_name,
            "pg_desc": each.group_desc,
            "backend_config": get_backend_config(each),
            "pg_size": each.size(),
            "ranks": ranks,
        }
        for each, ranks in _world.ranks.items()
    ]
    facts = {"backend": get_backend(), "rank": get_rank(), "world_size": get_world_size(), "pg_count": get_pg_count()}
    return {**facts, "pg_config": groups}


_record.processes = _describe


def outside(name: str, group: ProcessGroup | None) -> bool:
    """Whether this process is outside a group; then a warning is given."""
    if not is_outside(group):
        return False
    warnings.warn(
        f"Running {name} on global rank {get_rank()} which does not belong to the given group.", UserWarning, stacklevel=4
    )
    return True
