"""`ProcessGroup`: what a program calls, by the names that profiles show (`c10d::allreduce_`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .. import _record
from .._device import device as torch_device
from .._tensor import Tensor
from ..autograd.grad_mode import no_grad
from ..futures import Future, collect_all
from .constants import default_pg_timeout
from .gloo import ProcessGroupGloo
from .options import (
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from .reduce_op import RedOpType, ReduceOp
from .store import Store
from .work import Work

if TYPE_CHECKING:
    from .._types import OptionalDevice

__all__ = ["ProcessGroup"]


def _tensors(value: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else list(value)


def _operator(name: str, *arguments: Any) -> _record.scope:
    """The event of an operator between processes."""
    return _record.scope(f"c10d::{name}", (_record.Arguments(arguments), -1))


class ProcessGroup:
    """Processes that do operations together. Made by `init_process_group` and `new_group`.

    Each method takes a tensor or a list of one, and options or, in their place, the way to combine values or the root's rank.
    """

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta = default_pg_timeout) -> None:
        self._store = store
        self._backend = ProcessGroupGloo(store, rank, size, timeout)
        self._timeout = timeout
        self.group_name = ""
        self.group_desc = "undefined"
        self.bound_device_id = None

    def rank(self) -> int:
        """The number of this process in the group."""
        return self._backend.rank()

    def size(self) -> int:
        """The number of processes."""
        return self._backend.size()

    def name(self) -> str:
        """The name of the backend."""
        return "gloo"

    _get_backend_name = name

    def get_group_store(self) -> Store:
        """The store in which the processes found each other."""
        return self._store

    def _get_backend(self, device: OptionalDevice = None) -> ProcessGroupGloo:
        return self._backend

    @property
    def _device_types(self) -> list[torch_device]:
        return [torch_device("cpu")]

    def _set_group_name(self, name: str) -> None:
        self.group_name = name

    def _set_group_desc(self, text: str) -> None:
        self.group_desc = text

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long each operation waits for other processes."""
        self._timeout = timeout
        self._backend._set_default_timeout(timeout)

    def shutdown(self) -> None:
        """End the group."""
        self._backend.close()

    abort = shutdown

    def boxed(self) -> ProcessGroup:
        """The group itself."""
        return self

    unbox = boxed

    # --- operations -------------------------------------------------------------------------------------------------

    def allreduce(self, tensors: Tensor | Sequence[Tensor], opts: Any = RedOpType.SUM) -> Work:
        """Combine the tensors of all processes; each gets the result."""
        _check_timeout(opts)
        given = _tensors(tensors)
        with _operator("allreduce_", given, None, None, None, False, -1):
            return self._backend.allreduce(given, _way(opts, AllreduceOptions))

    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = RedOpType.SUM) -> Work:
        """Combine lists of tensors in one operation."""
        _check_timeout(opts)
        given = _tensors(tensors)
        with _operator("allreduce_coalesced_", given, None, None, False, -1):
            return self._backend.allreduce_coalesced(given, _way(opts, AllreduceCoalescedOptions))

    def reduce(self, tensors: Tensor | Sequence[Tensor], root: Any = 0, op: ReduceOp | RedOpType = RedOpType.SUM) -> Work:
        """Combine the tensors of all processes; the root gets the result."""
        _check_timeout(root)
        given = _tensors(tensors)
        if isinstance(root, ReduceOptions):
            root, op = root.rootRank, root.reduceOp
        with _operator("reduce_", given, None, None, root, 0, False, -1):
            return self._backend.reduce(given, root, op)

    def broadcast(self, tensors: Tensor | Sequence[Tensor], root: Any = 0) -> Work:
        """Give all processes the tensor of the root."""
        _check_timeout(root)
        given = _tensors(tensors)
        root = root.rootRank if isinstance(root, BroadcastOptions) else root
        with _operator("broadcast_", given, None, root, 0, False, -1):
            return self._backend.broadcast(given, root)

    def allgather(self, output_tensors: Sequence[Any], input_tensors: Tensor | Sequence[Tensor], opts: Any = None) -> Work:
        """Give each process the tensors of all."""
        _check_timeout(opts)
        given = _tensors(input_tensors)
        outputs = [list(output_tensors)] if isinstance(output_tensors[0], Tensor) else [list(many) for many in output_tensors]
        with _operator("allgather_", outputs, given, None, False, -1):
            return self._backend.allgather(outputs, given)

    def allgather_coalesced(self, output_lists: Sequence[Sequence[Tensor]], input_list: Sequence[Tensor], opts: Any = None) -> Work:
        """Give each process the lists of all, one list of outputs for each process."""
        _check_timeout(opts)
        outputs = [list(many) for many in zip(*output_lists, strict=True)]
        with _operator("allgather_coalesced_", [list(many) for many in output_lists], list(input_list), None, False):
            return self._backend.allgather(outputs, list(input_list))

    def _allgather_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        _check_timeout(opts)
        with _operator("_allgather_base_", output, input, None, False, -1):
            return self._backend.allgather([list(_parts(output, self.size()))], [input])

    def gather(self, output_tensors: Sequence[Any], input_tensors: Tensor | Sequence[Tensor], root: Any = 0) -> Work:
        """Give the root the tensors of all processes."""
        _check_timeout(root)
        given = _tensors(input_tensors)
        root = root.rootRank if isinstance(root, GatherOptions) else root
        flat = output_tensors if not output_tensors or isinstance(output_tensors[0], Tensor) else output_tensors[0]
        outputs = [list(flat)]
        with _operator("gather_", outputs, given, None, root, False, -1):
            return self._backend.gather(outputs[0], given[0], root)

    def scatter(self, output_tensors: Tensor | Sequence[Tensor], input_tensors: Sequence[Any], root: Any = 0) -> Work:
        """Give each process one of the root's tensors."""
        _check_timeout(root)
        given = _tensors(output_tensors)
        root = root.rootRank if isinstance(root, ScatterOptions) else root
        flat = input_tensors if not input_tensors or isinstance(input_tensors[0], Tensor) else input_tensors[0]
        inputs = [list(flat)]
        with _operator("scatter_", given, inputs, None, root, False, -1):
            return self._backend.scatter(given[0], inputs[0], root)

    def reduce_scatter(
        self, output_tensors: Tensor | Sequence[Tensor], input_tensors: Sequence[Any], opts: Any = RedOpType.SUM
    ) -> Work:
        """Combine lists of tensors, of which each process gets one."""
        _check_timeout(opts)
        output = _tensors(output_tensors)[0]
        inputs = list(input_tensors if isinstance(input_tensors[0], Tensor) else input_tensors[0])
        if len(inputs) != self.size():
            raise RuntimeError(f"reduce_scatter needs a tensor for each of {self.size()} processes, got {len(inputs)}")
        with _operator("reduce_scatter_", [output], [inputs], None, None, False, -1):
            with no_grad():
                copies = [tensor.clone() for tensor in inputs]
            works = [self._backend.allreduce([copy], _way(opts, ReduceScatterOptions)) for copy in copies]
        return _then(works, lambda: _put(output, copies[self.rank()]))

    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any = RedOpType.SUM) -> Work:
        _check_timeout(opts)
        if output.numel() * self.size() != input.numel():
            raise RuntimeError(
                f"the input of reduce_scatter must have {self.size()} times as many elements as its output ({output.numel()}), got"
                f" {input.numel()}"
            )
        with _operator("_reduce_scatter_base_", output, input, None, None, False, -1):
            with no_grad():
                whole = input.clone()
            work = self._backend.allreduce([whole], _way(opts, ReduceScatterOptions))
        return _then([work], lambda: _put(output, _parts(whole, self.size())[self.rank()]))

    def alltoall(self, output_tensors: Sequence[Tensor], input_tensors: Sequence[Tensor], opts: Any = None) -> Work:
        """Give each process one tensor of every process."""
        _check_timeout(opts)
        outputs, inputs = list(output_tensors), list(input_tensors)
        if len(outputs) != self.size() or len(inputs) != self.size():
            raise RuntimeError(
                f"all_to_all needs a tensor for each of {self.size()} processes, got {len(outputs)} outputs and {len(inputs)} inputs"
            )
        with _operator("alltoall_", outputs, inputs, None, False, -1):
            return self._backend.alltoall(outputs, inputs)

    def alltoall_base(
        self, output: Tensor, input: Tensor, output_split_sizes: Sequence[int], input_split_sizes: Sequence[int], opts: Any = None
    ) -> Work:
        """Give each process a part of the tensor of every process, cut along the first dimension."""
        _check_timeout(opts)
        with _operator("alltoall_base_", output, input, None, None, None, False, -1):
            inputs, outputs = _split(input, input_split_sizes, self.size()), _split(output, output_split_sizes, self.size())
            return self._backend.alltoall(outputs, inputs)

    def barrier(self, opts: Any = None) -> Work:
        """Done when all processes are here."""
        _check_timeout(opts)
        with _operator("barrier", None, None, None, False, -1):
            return self._backend.barrier()

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Wait until all processes are here; rank 0 says which are not."""
        with _operator("monitored_barrier_", None, None, None, wait_all_ranks, -1):
            self._backend.monitored_barrier(self._timeout if timeout is None else timeout, wait_all_ranks=wait_all_ranks)

    def send(self, tensors: Sequence[Tensor], dst: int, tag: int) -> Work:
        """Send a tensor."""
        with _operator("send", list(tensors), None, dst, tag):
            return self._backend.send(tensors, dst, tag)

    def recv(self, tensors: Sequence[Tensor], src: int, tag: int) -> Work:
        """Receive a tensor."""
        with _operator("recv_", list(tensors), None, src, tag):
            return self._backend.recv(tensors, src, tag)

    def recv_anysource(self, tensors: Sequence[Tensor], tag: int) -> Work:
        """Receive a tensor from the first process that sends one."""
        with _operator("recv_any_source_", list(tensors), None, tag):
            return self._backend.recv_anysource(tensors, tag)

    all_gather_single = _allgather_base
    reduce_scatter_single = _reduce_scatter_base
    all_to_all_single = alltoall_base


def _check_timeout(opts: Any) -> None:
    """Refuse options with a time to wait of their own."""
    if isinstance(opts, AllToAllOptions) and opts.timeout != AllToAllOptions().timeout:
        raise NotImplementedError(
            f"an operation waits as long as its group: {opts.timeout} in {type(opts).__name__} would have no effect; use"
            " ProcessGroup.set_timeout, or new_group(timeout=...)"
        )


def _way(opts: Any, kind: type[AllreduceOptions]) -> Any:
    return opts.reduceOp if isinstance(opts, kind) else opts


def _parts(tensor: Tensor, size: int) -> list[Tensor]:
    """A tensor in equal parts along its first dimension, as views."""
    with no_grad():
        return list(tensor.chunk(size, 0)) if tensor.dim() else [tensor]


def _split(tensor: Tensor, sizes: Sequence[int], size: int) -> list[Tensor]:
    rows = tensor.shape[0] if tensor.dim() else 1
    if not sizes:
        if rows % size:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        sizes = [rows // size] * size
    elif len(sizes) != size:
        raise RuntimeError("Number of tensor splits not equal to group size")
    elif sum(sizes) != rows:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    with no_grad():
        return list(tensor.split(list(sizes), 0))


def _put(target: Tensor, source: Tensor) -> list[Tensor]:
    target._array[...] = source._array.reshape(target._array.shape)
    return [target]


def _then(first: list[Work], finish: Callable[[], Any]) -> Work:
    """The work that is done when others are, and what follows them."""
    work = Work(finish, first[0]._name)

    def ended(_: Future[Any]) -> None:
        failed = next((w.exception() for w in first if w.exception() is not None), None)
        if failed is None:
            work._run()
        else:
            work._finish(failed)

    collect_all([w.get_future() for w in first]).add_done_callback(ended)
    return work
