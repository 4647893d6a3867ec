"""Operations from one process to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .collectives import check_tensor, group_rank
from .distributed_c10d import get_global_rank, outside, own_group
from .process_group import ProcessGroup
from .work import Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def isend(
    tensor: Tensor, dst: int | None = None, group: ProcessGroup | None = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Send a tensor to the process `dst`, and return a handle at once.

    Args:
        tag: a number that tells messages between two processes apart.
    """
    found = own_group(group) if not outside("isend", group) else None
    if found is None:
        return None
    peer = group_rank(found, dst, group_dst)
    _check_other(found, peer, "destination")
    check_tensor(tensor, "tensor")
    return found.send([tensor], peer, tag)


def irecv(
    tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Receive a tensor from the process `src`, or from any without one; returns a handle at once."""
    check_tensor(tensor, "tensor")
    if outside("irecv", group):
        return None
    found = own_group(group)
    if src is None and group_src is None:
        return found.recv_anysource([tensor], tag)
    peer = group_rank(found, src, group_src)
    _check_other(found, peer, "source")
    return found.recv([tensor], peer, tag)


def send(
    tensor: Tensor, dst: int | None = None, group: ProcessGroup | None = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Send a tensor to the process `dst`."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0, group_src: int | None = None
) -> int:
    """Receive a tensor from the process `src`, or from any without one; returns the rank of who sent it, -1 outside the group."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is None and group_src is None:
        return get_global_rank(own_group(group), work.source_rank())
    return src if src is not None else get_global_rank(own_group(group), int(group_src or 0))


def _check_other(group: ProcessGroup, peer: int, role: str) -> None:
    if peer == group.rank():
        raise ValueError(f"Invalid {role} rank: {role} rank should not be the same as the rank of the current process.")


class P2POp:
    """One sending or receiving of `batch_isend_irecv`."""

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = own_group(group)
        self.group_peer = group_rank(self.group, peer, group_peer)
        self.peer = get_global_rank(self.group, self.group_peer) if peer is None else peer

    def __repr__(self) -> str:
        own, other = self.group.rank(), self.group_peer
        source, target = (own, other) if self.op is isend else (other, own)
        ends = f"group_src={source}, group_dst={target}"
        return f"P2POp({self.op.__name__} pg={self.group.group_name}, {ends},  {self.tensor.shape}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin all of these; returns their handles."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    group = p2p_op_list[0].group
    if any(op.group is not group for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = []
    for each in p2p_op_list:
        ends = {"group_dst" if each.op is isend else "group_src": each.group_peer}
        work = each.op(each.tensor, group=each.group, tag=each.tag, **ends)
        if work:
            works.append(work)
    return works
