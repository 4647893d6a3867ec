"""Operations of all processes of a group."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _record
from .._tensor import Tensor
from .distributed_c10d import get_group_rank, outside, own_group
from .distributed_c10d import group as groups
from .process_group import ProcessGroup
from .reduce_op import RedOpType, ReduceOp, kind_of
from .work import Work

if TYPE_CHECKING:
    from ..futures import Future

__all__ = [
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "record_comm",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "supports_complex",
]

F = TypeVar("F", bound=Callable[..., Any])


def supports_complex(reduceOp: ReduceOp | RedOpType) -> bool:
    """Whether complex numbers can be combined this way: sums and means."""
    return kind_of(reduceOp) in (RedOpType.SUM, RedOpType.AVG)


@contextmanager
def record_comm(name: str) -> Iterator[None]:
    """Show the operations of a block under a name in profiles."""
    with _record.scope(name):
        yield


def group_rank(group: ProcessGroup, global_rank: int | None, in_group: int | None, default: int | None = None) -> int:
    """The number of a process in a group, which was given as one in the program or in the group."""
    if global_rank is not None and in_group is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if in_group is not None:
        return in_group
    if global_rank is None:
        if default is None:
            raise ValueError("Must specify global_rank or group_rank")
        global_rank = default
    return global_rank if group is groups.WORLD else get_group_rank(group, global_rank)


def check_tensor(value: object, name: str) -> None:
    """Refuse what is not a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             but got {type(value)} instead."
        )


def _check_list(value: object, name: str) -> None:
    expected = (
        f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got {type(value)}"
    )
    if not isinstance(value, list):
        raise TypeError(f"{expected} instead.")
    if not all(isinstance(t, Tensor) for t in value):
        raise TypeError(f"{expected} with elements of type {[type(t) for t in value]}.")


def _check_one_dtype(*values: Any) -> None:
    last = None
    for value in values:
        for tensor in value if isinstance(value, list | tuple) else [value]:
            if last is not None and tensor.dtype != last:
                raise ValueError(f"Invalid usage of tensors with different dtypesFound {last} and  {tensor.dtype}")
            last = tensor.dtype


def _check_complex(tensor: Tensor, op: ReduceOp | RedOpType, name: str = "all_reduce") -> None:
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"{name} does not support {op} on complex tensors")


def _done(work: Work, async_op: bool) -> Work | None:
    """The handle for who asked for it; others wait."""
    if async_op:
        return work
    work.wait()
    return None


def all_reduce(
    tensor: Tensor, op: ReduceOp | RedOpType = RedOpType.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Combine a tensor with those of the other processes, in place; all have the same result.

    Args:
        op: how; sums unless given.
        group: the processes; all unless given.
        async_op: return a handle at once, instead of waiting. The same holds for the functions below.
    """
    check_tensor(tensor, "tensor")
    if outside("all_reduce", group):
        return None
    _check_complex(tensor, op)
    return _done(own_group(group).allreduce([tensor], op), async_op)


def all_reduce_coalesced(
    tensors: Tensor | list[Tensor],
    op: ReduceOp | RedOpType = RedOpType.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Future[list[Any]] | Work | None:
    """Combine several tensors in one operation."""
    _will_be_deprecated("all_reduce_coalesced")
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_list(tensors, "tensors")
    _check_one_dtype(tensors)
    if outside("all_reduce_coalesced", group):
        return None
    for tensor in tensors:
        _check_complex(tensor, op)
    work = own_group(group).allreduce_coalesced(tensors, op)
    return work.get_future() if async_op else _done(work, False)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp | RedOpType = RedOpType.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combine a tensor with those of the other processes; the process `dst` has the result."""
    check_tensor(tensor, "tensor")
    if outside("reduce", group):
        return None
    found = own_group(group)
    return _done(found.reduce([tensor], group_rank(found, dst, group_dst), op), async_op)


def broadcast(
    tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Give all processes the tensor of the process `src`, in place."""
    check_tensor(tensor, "tensor")
    if outside("broadcast", group):
        return None
    found = own_group(group)
    return _done(found.broadcast([tensor], group_rank(found, src, group_src)), async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Write the tensors of all processes into a list of tensors."""
    _check_list(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    _check_one_dtype(tensor_list, tensor)
    if outside("all_gather", group):
        return None
    return _done(own_group(group).allgather([tensor_list], [tensor]), async_op)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Future[list[Any]] | Work | None:
    """Write lists of tensors of all processes into lists, one for each process."""
    _will_be_deprecated("all_gather_coalesced")
    if outside("all_gather_coalesced", group):
        return None
    _check_list(input_tensor_list, "input_tensor_list")
    _check_one_dtype(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for each in output_tensor_lists:
        _check_list(each, "output_tensor_lists")
    work = own_group(group).allgather_coalesced(output_tensor_lists, input_tensor_list)
    return work.get_future() if async_op else _done(work, False)


def all_gather_single(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all processes one after the other into one tensor."""
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    if outside("all_gather_single", group):
        return None
    return _done(own_group(group)._allgather_base(output_tensor, input_tensor), async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp | RedOpType = RedOpType.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine lists of tensors, one tensor for each process, and give each process its own."""
    check_tensor(output, "output")
    _check_list(input_list, "input_list")
    _check_one_dtype(output, input_list)
    if outside("reduce_scatter", group):
        return None
    return _done(own_group(group).reduce_scatter([output], [input_list], op), async_op)


def reduce_scatter_single(
    output: Tensor,
    input: Tensor,
    op: ReduceOp | RedOpType = RedOpType.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine a tensor with those of the other processes, and give each process one part of it."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    if outside("reduce_scatter_single", group):
        return None
    return _done(own_group(group)._reduce_scatter_base(output, input, op), async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write the tensors of all processes into a list of the process `dst`."""
    check_tensor(tensor, "tensor")
    if gather_list:
        _check_list(gather_list, "gather_list")
    else:
        gather_list = []
    _check_one_dtype(tensor, gather_list)
    if outside("gather", group):
        return None
    found = own_group(group)
    root = group_rank(found, dst, group_dst, 0)
    _check_root_list(found, root, gather_list, "gather_list", "destination")
    return _done(found.gather([gather_list] if gather_list else [], [tensor], root), async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write a tensor of a list of the process `src` into that of each process."""
    check_tensor(tensor, "tensor")
    if scatter_list:
        _check_list(scatter_list, "scatter_list")
    else:
        scatter_list = []
    _check_one_dtype(tensor, scatter_list)
    if outside("scatter", group):
        return None
    found = own_group(group)
    root = group_rank(found, src, group_src, 0)
    _check_root_list(found, root, scatter_list, "scatter_list", "source")
    return _done(found.scatter([tensor], [scatter_list] if scatter_list else [], root), async_op)


def _check_root_list(group: ProcessGroup, root: int, tensors: list[Tensor], name: str, role: str) -> None:
    if group.rank() == root and not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {role} rank.")
    if group.rank() != root and tensors:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{role} ranks.")


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Send a tensor of a list to each process, and write those that come into another list."""
    if outside("all_to_all", group):
        return None
    _check_list(output_tensor_list, "output_tensor_list")
    _check_list(input_tensor_list, "input_tensor_list")
    _check_one_dtype(output_tensor_list, input_tensor_list)
    return _done(own_group(group).alltoall(output_tensor_list, input_tensor_list), async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send a part of a tensor to each process, cut along the first dimension, and write the parts that come into another tensor."""
    if outside("all_to_all_single", group):
        return None
    check_tensor(output, "output")
    check_tensor(input, "input")
    _check_one_dtype(output, input)
    return _done(own_group(group).alltoall_base(output, input, output_split_sizes or [], input_split_sizes or []), async_op)


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Sequence[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait until all processes are here."""
    if outside("barrier", group):
        return None
    if device_ids is not None:
        raise RuntimeError("Function argument device_ids not supported for the selected backend gloo")
    work = own_group(group).barrier()
    if async_op:
        return work
    work.wait(timeout)
    return None


def monitored_barrier(group: ProcessGroup | None = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Wait until all processes are here; the process of rank 0 says which are not, after `timeout`."""
    if outside("monitored_barrier", group):
        return
    if timeout is not None and not isinstance(timeout, timedelta):
        warnings.warn(
            f"Please specify timeout arg as a timedelta. Converting current value of {timeout} assuming it represents seconds",
            stacklevel=2,
        )
        timeout = timedelta(seconds=timeout)
    own_group(group).monitored_barrier(timeout, wait_all_ranks)


def _will_be_deprecated(name: str) -> None:
    warnings.warn(
        f"`torch.distributed.{name}` will be deprecated. If you must use it, please revisit our documentation later at"
        " https://pytorch.org/docs/main/distributed.html#collective-functions",
        FutureWarning,
        stacklevel=3,
    )


def _deprecated(name: str, function: F) -> F:
    """The old name of a function, which warns."""

    @functools.wraps(function)
    def old(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`torch.distributed.{name}` is deprecated. Please use `torch.distributed.{function.__name__}` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    old.__name__ = old.__qualname__ = name
    return old  # type: ignore[return-value]


all_gather_into_tensor = _deprecated("all_gather_into_tensor", all_gather_single)
reduce_scatter_tensor = _deprecated("reduce_scatter_tensor", reduce_scatter_single)
