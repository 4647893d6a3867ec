"""Operations with Python objects, which are pickled. As in torch: unpickling runs code, so that all processes must be trusted."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from .._device import device as torch_device
from .._interop import from_numpy
from .._tensor import Tensor
from . import collectives
from .distributed_c10d import outside, own_group
from .point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send

if TYPE_CHECKING:
    from .._types import OptionalDevice
    from .process_group import ProcessGroup

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _pickled(obj: object) -> Tensor:
    return from_numpy(np.frombuffer(pickle.dumps(obj), np.uint8).copy())


def _unpickled(tensor: Tensor) -> Any:
    return pickle.loads(tensor._array.tobytes())


def _numbers(values: list[int]) -> Tensor:
    return from_numpy(np.array(values, np.int64))


def _bytes(count: int) -> Tensor:
    return from_numpy(np.zeros(count, np.uint8))


def _cut(tensor: Tensor, sizes: list[int]) -> list[Any]:
    ends = np.cumsum(sizes)
    return [pickle.loads(tensor._array[end - size : end].tobytes()) for size, end in zip(sizes, ends, strict=True)]


def _joined(objects: list[Any]) -> tuple[Tensor, Tensor]:
    """The pickles of objects one after the other, and their sizes."""
    pickles = [pickle.dumps(obj) for obj in objects]
    return from_numpy(np.frombuffer(b"".join(pickles), np.uint8).copy()), _numbers([len(p) for p in pickles])


def all_gather_object(object_list: list[Any], obj: object, group: ProcessGroup | None = None) -> None:
    """Write the objects of all processes into a list."""
    if outside("all_gather_object", group):
        return
    found = own_group(group)
    data = _pickled(obj)
    sizes = [_numbers([0]) for _ in range(found.size())]
    collectives.all_gather(sizes, _numbers([data.numel()]), group=found)
    lengths = [int(s._array[0]) for s in sizes]
    padded = _bytes(max(lengths))
    padded._array[: data.numel()] = data._array
    pieces = [_bytes(max(lengths)) for _ in lengths]
    collectives.all_gather(pieces, padded, group=found)
    for i, (piece, length) in enumerate(zip(pieces, lengths, strict=True)):
        object_list[i] = _unpickled(piece[:length])


def gather_object(
    obj: object,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Write the objects of all processes into a list of the process `dst`."""
    if outside("gather_object", group):
        return
    found = own_group(group)
    root = collectives.group_rank(found, dst, group_dst, 0)
    if found.rank() == root and object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if found.rank() != root and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    data = _pickled(obj)
    sizes = [_numbers([0]) for _ in range(found.size())]
    collectives.all_gather(sizes, _numbers([data.numel()]), group=found)
    lengths = [int(s._array[0]) for s in sizes]
    padded = _bytes(max(lengths))
    padded._array[: data.numel()] = data._array
    pieces = [_bytes(max(lengths)) for _ in lengths] if found.rank() == root else None
    collectives.gather(padded, pieces, group=found, group_dst=root)
    if pieces is not None and object_gather_list is not None:
        for i, (piece, length) in enumerate(zip(pieces, lengths, strict=True)):
            object_gather_list[i] = _unpickled(piece[:length])


def _check_device(name: str, where: OptionalDevice) -> None:
    """Objects travel as bytes on the CPU."""
    if where is not None and torch_device(where).type != "cpu":
        raise RuntimeError(f"{name}: objects are sent through the memory of the CPU, not of {where}; leave `device` out")


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: OptionalDevice = None,
    group_src: int | None = None,
) -> None:
    """Write the objects in a list of the process `src` into the lists of all."""
    if outside("broadcast_object_list", group):
        return
    _check_device("broadcast_object_list", device)
    found = own_group(group)
    root = collectives.group_rank(found, src, group_src, 0)
    data, sizes = _joined(object_list) if found.rank() == root else (_bytes(0), _numbers([0] * len(object_list)))
    collectives.broadcast(sizes, group=found, group_src=root)
    lengths = [int(n) for n in sizes._array]
    if found.rank() != root:
        data = _bytes(sum(lengths))
    collectives.broadcast(data, group=found, group_src=root)
    if found.rank() != root:
        object_list[:] = _cut(data, lengths)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Write one of the objects in a list of the process `src` into the list of each process, at its beginning."""
    if outside("scatter_object_list", group):
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    found = own_group(group)
    root = collectives.group_rank(found, src, group_src, 0)
    is_root = found.rank() == root
    if is_root and scatter_object_input_list is None:
        raise ValueError("source rank must provide non-None scatter_object_input_list")
    pickles = [_pickled(obj) for obj in scatter_object_input_list or []] if is_root else []
    largest = _numbers([max(p.numel() for p in pickles)] if is_root else [0])
    collectives.broadcast(largest, group=found, group_src=root)
    padded = []
    for each in pickles:
        padded.append(_bytes(int(largest._array[0])))
        padded[-1]._array[: each.numel()] = each._array
    own, own_size = _bytes(int(largest._array[0])), _numbers([0])
    collectives.scatter(own, padded or None, group=found, group_src=root)
    collectives.scatter(own_size, [_numbers([p.numel()]) for p in pickles] or None, group=found, group_src=root)
    scatter_object_output_list[0] = _unpickled(own[: int(own_size._array[0])])


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: OptionalDevice = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send the objects in a list to the process `dst`."""
    if outside("send_object_list", group):
        return
    _check_device("send_object_list", device)
    data, sizes = _joined(object_list)
    for each in (sizes, data):
        if use_batch:
            batch_isend_irecv([P2POp(isend, each, dst, group, group_peer=group_dst)]).pop().wait()
        else:
            send(each, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: OptionalDevice = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Write the objects that the process `src` sends into a list, from any without one; returns the rank of who sent them."""
    if outside("recv_object_list", group):
        return -1
    _check_device("recv_object_list", device)
    sizes = _numbers([0] * len(object_list))
    source = _received(sizes, src, group, group_src, use_batch=use_batch)
    lengths = [int(n) for n in sizes._array]
    data = _bytes(sum(lengths))
    _received(data, source, group, None, use_batch=use_batch)
    object_list[:] = _cut(data, lengths)
    return source


def _received(tensor: Tensor, src: int | None, group: ProcessGroup | None, group_src: int | None, *, use_batch: bool) -> int:
    """Fill a tensor with what a process sends; returns the rank of that process."""
    if not use_batch:
        return recv(tensor, src, group, group_src=group_src)
    operation = P2POp(irecv, tensor, src, group, group_peer=group_src)
    batch_isend_irecv([operation]).pop().wait()
    return operation.peer
