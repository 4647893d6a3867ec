"""Operations between processes over TCP, in NumPy: what torch's backend "gloo" does on CPUs.

Each operation gets the next number of its group, which its messages carry; two threads do one after the other in the background.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from .. import _record
from .._tensor import Tensor
from .constants import default_pg_timeout
from .reduce_op import RedOpType, ReduceOp, combine, kind_of
from .store import Store
from .transport import ANY, Mesh, Message
from .work import ReceiveWork, Work

__all__ = ["ProcessGroupGloo"]

Array = np.ndarray[Any, Any]
_THREADS = 2  # as torch's gloo has: an operation that waits for a slow process does not hold up the next one
_SEGMENT_BYTES = 1 << 20  # torch's gloo reduces in pieces of at most 1 MB, which decides in which order sums are taken


class _Buffer:
    """The elements of a tensor in one row: its own memory if that is contiguous, otherwise a copy that `write_back` puts there."""

    def __init__(self, tensor: Tensor) -> None:
        if tensor.layout.name != "strided" or tensor.device.type != "cpu":
            raise RuntimeError(
                f"a process group sends dense tensors on the CPU, got one that is {tensor.layout} on {tensor.device}"
            )
        self._tensor = tensor
        array = (tensor.resolve_conj().resolve_neg() if tensor.is_conj() or tensor.is_neg() else tensor)._array
        self._is_own = array is tensor._array and array.flags.c_contiguous and array.flags.writeable
        self.flat: Array = array.reshape(-1) if self._is_own else np.ascontiguousarray(array).reshape(-1).copy()

    @property
    def size_bytes(self) -> int:
        return self.flat.nbytes

    def take(self, message: Message) -> None:
        self.flat.view(np.uint8)[:] = np.frombuffer(message, np.uint8)

    def write_back(self) -> None:
        if not self._is_own:
            self._tensor._array[...] = self.flat.reshape(self._tensor._array.shape)


class ProcessGroupGloo:
    """The processes of a group, and what they do together.

    Args:
        store: where the processes find each other.
        rank: the number of this process, from 0.
        size: the number of processes.
        timeout: how long to wait for the others in each operation.
    """

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta = default_pg_timeout) -> None:
        self._rank, self._size, self._timeout = rank, size, timeout
        self._mesh = Mesh(store, rank, size, timeout.total_seconds())
        self._tags = itertools.count()
        self._waiting: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def rank(self) -> int:
        """The number of this process in the group."""
        return self._rank

    def size(self) -> int:
        """The number of processes."""
        return self._size

    def name(self) -> str:
        """The backend's name."""
        return "gloo"

    def _get_backend_name(self) -> str:
        return "gloo"

    @property
    def supports_splitting(self) -> bool:
        """False, as in torch's gloo."""
        return False

    def _set_default_timeout(self, timeout: timedelta, /) -> None:
        self._timeout = timeout

    def _get_sequence_number_for_group(self) -> int:
        number = next(self._tags)
        self._tags = itertools.chain([number], self._tags)  # type: ignore[assignment]
        return number

    def close(self) -> None:
        """End the connections and the threads; operations that still run raise."""
        self._closed = True
        for _ in self._threads:
            self._waiting.put(None)
        self._mesh.close()

    # --- running ----------------------------------------------------------------------------------------------------

    def _begin(self, name: str, tensors: Sequence[Any], run: Callable[[int], Sequence[Any]]) -> Work:
        """Have an operation run on a thread of the group."""
        if self._closed:
            raise RuntimeError(f"{name}: the process group has been destroyed")
        tag = next(self._tags)

        def recorded() -> Sequence[Any]:
            with _record.scope(f"gloo:{name}", (_record.Arguments(tensors), None)):
                return run(tag)

        work = Work(recorded, name)
        if len(self._threads) < _THREADS:
            thread = threading.Thread(target=_work_off, args=(self._waiting,), name="gloo", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._waiting.put(work)
        return work

    def _others(self) -> list[int]:
        """The other processes, from the next one on, so that not all send to the first at once."""
        return [(self._rank + i) % self._size for i in range(1, self._size)]

    def _receive(self, peer: int, name: str, tag: int, size_bytes: int) -> Message:
        return self._mesh.receive(peer, name, tag, size_bytes, self._timeout.total_seconds())[1]

    def _check_root(self, name: str, root: int) -> None:
        if not 0 <= root < self._size:
            raise RuntimeError(f"ProcessGroupGloo::{name}: invalid root rank: {root}")

    # --- reductions -------------------------------------------------------------------------------------------------

    def allreduce(self, tensors: Sequence[Tensor], op: ReduceOp | RedOpType = RedOpType.SUM) -> Work:
        """Combine the tensors of all processes; each gets the result."""
        return self._reduce("all_reduce", tensors, kind_of(op), root=None)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Sequence[Tensor], root: int, op: ReduceOp | RedOpType = RedOpType.SUM) -> Work:
        """Combine the tensors of all processes; one gets the result."""
        self._check_root("reduce", root)
        return self._reduce("reduce", tensors, kind_of(op), root=root)

    def _reduce(self, name: str, tensors: Sequence[Tensor], op: RedOpType, root: int | None) -> Work:
        buffers = [_Buffer(t) for t in tensors]
        kind = buffers[0].flat.dtype
        combining = combine(op, kind)
        if op == RedOpType.AVG and kind.kind in "iub":
            long = {"int64": "Long", "int32": "Int", "int8": "Char", "uint8": "Byte", "bool": "Bool"}[kind.name]
            raise RuntimeError(f"result type Float can't be cast to the desired output type {long}")

        def run(tag: int) -> Sequence[Tensor]:
            flat = buffers[0].flat if len(buffers) == 1 else np.concatenate([b.flat for b in buffers])
            parts = flat.view(flat.real.dtype) if kind.kind == "c" else flat
            self._combine_everywhere(name, tag, parts, combining, root)
            if op == RedOpType.AVG and root in (None, self._rank):
                np.divide(flat, self._size, out=flat)
            if len(buffers) > 1:
                ends = np.cumsum([b.flat.size for b in buffers])[:-1]
                for buffer, piece in zip(buffers, np.split(flat, ends), strict=True):
                    buffer.flat[:] = piece
            for buffer in buffers:
                buffer.write_back()
            return tensors

        return self._begin(name, tensors, run)

    def _combine_everywhere(self, name: str, tag: int, flat: Array, combining: Callable[..., Any], root: int | None) -> None:
        """Each process combines one chunk of all, and sends it to those who need it."""
        size, rank = self._size, self._rank
        if size == 1:
            return
        chunks = _chunks(flat.size, flat.itemsize, size)
        for peer in self._others():
            if len(flat[chunks[peer]]):
                self._mesh.send(peer, name, tag, flat[chunks[peer]])
        own = flat[chunks[rank]]
        if len(own):
            # torch's ring hands a chunk on from process to process downwards; it ends at the one with the chunk's number
            order = [(rank - i) % size for i in range(1, size)]
            received = {peer: np.frombuffer(self._receive(peer, name, tag, own.nbytes), flat.dtype) for peer in sorted(order)}
            total = received[order[0]].copy()
            for peer in order[1:]:
                combining(total, received[peer], out=total)
            combining(total, own, out=total)
            if root in (None, rank):
                own[:] = total
            for peer in self._others() if root is None else [root]:
                if peer != rank:
                    self._mesh.send(peer, name, tag, total)
        if root in (None, rank):
            for peer in self._others():
                target = flat[chunks[peer]]
                if len(target):
                    target[:] = np.frombuffer(self._receive(peer, name, tag, target.nbytes), flat.dtype)

    # --- the same for all, or a part for each ---------------------------------------------------------------------------

    def broadcast(self, tensors: Sequence[Tensor], root: int) -> Work:
        """Give all processes the tensor of one."""
        self._check_root("broadcast", root)
        buffer = _Buffer(tensors[0])

        def run(tag: int) -> Sequence[Tensor]:
            if self._rank == root:
                for peer in self._others():
                    self._mesh.send(peer, "broadcast", tag, buffer.flat)
            else:
                buffer.take(self._receive(root, "broadcast", tag, buffer.size_bytes))
                buffer.write_back()
            return tensors

        return self._begin("broadcast", tensors, run)

    def allgather(self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor]) -> Work:
        """Give each process the tensors of all."""
        for i, (many, one) in enumerate(zip(outputs, inputs, strict=True)):
            self._check_list("allgather", many, i)
            _check_like("allgather", many, one)
        sources = [_Buffer(t) for t in inputs]
        targets = [[_Buffer(t) for t in many] for many in outputs]

        def run(tag: int) -> Sequence[Tensor]:
            for source in sources:
                for peer in self._others():
                    self._mesh.send(peer, "all_gather", tag, source.flat)
            for source, many in zip(sources, targets, strict=True):
                many[self._rank].flat[:] = source.flat
                for peer in self._others():
                    many[peer].take(self._receive(peer, "all_gather", tag, many[peer].size_bytes))
                for target in many:
                    target.write_back()
            return outputs[0]

        return self._begin("all_gather", inputs, run)

    def gather(self, outputs: Sequence[Tensor], tensor: Tensor, root: int) -> Work:
        """Give one process the tensors of all."""
        self._check_root("gather", root)
        if self._rank == root:
            self._check_list("gather", outputs, 0)
            _check_like("gather", outputs, tensor)
        source, targets = _Buffer(tensor), [_Buffer(t) for t in outputs]

        def run(tag: int) -> Sequence[Tensor]:
            if self._rank != root:
                self._mesh.send(root, "gather", tag, source.flat)
                return outputs
            targets[root].flat[:] = source.flat
            for peer in self._others():
                targets[peer].take(self._receive(peer, "gather", tag, targets[peer].size_bytes))
            for target in targets:
                target.write_back()
            return outputs

        return self._begin("gather", [tensor], run)

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int) -> Work:
        """Give each process one of the tensors of one process."""
        self._check_root("scatter", root)
        if self._rank == root:
            self._check_list("scatter", inputs, 0)
            _check_like("scatter", inputs, output)
        target, sources = _Buffer(output), [_Buffer(t) for t in inputs]

        def run(tag: int) -> Sequence[Tensor]:
            if self._rank == root:
                for peer in self._others():
                    self._mesh.send(peer, "scatter", tag, sources[peer].flat)
                target.flat[:] = sources[root].flat
            else:
                target.take(self._receive(root, "scatter", tag, target.size_bytes))
            target.write_back()
            return [output]

        return self._begin("scatter", [output, *inputs[:1]], run)

    def alltoall(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Work:
        """Give each process one tensor of every process."""
        sources, targets = [_Buffer(t) for t in inputs], [_Buffer(t) for t in outputs]
        if targets[self._rank].size_bytes != sources[self._rank].size_bytes:
            raise RuntimeError("all_to_all: the tensor for this process itself must have the size of the one that it gets")

        def run(tag: int) -> Sequence[Tensor]:
            for peer in self._others():
                self._mesh.send(peer, "all_to_all", tag, sources[peer].flat)
            targets[self._rank].flat[:] = sources[self._rank].flat
            for peer in self._others():
                targets[peer].take(self._receive(peer, "all_to_all", tag, targets[peer].size_bytes))
            for target in targets:
                target.write_back()
            return outputs

        return self._begin("all_to_all", [*outputs[:1], *inputs[:1]], run)

    # --- waiting for each other -----------------------------------------------------------------------------------------

    def barrier(self) -> Work:
        """Done when all processes are here."""

        def run(tag: int) -> Sequence[Tensor]:
            for peer in self._others():
                self._mesh.send(peer, "barrier", tag, b"")
            for peer in self._others():
                self._receive(peer, "barrier", tag, 0)
            return []

        return self._begin("barrier", [], run)

    def monitored_barrier(self, timeout: timedelta, *, wait_all_ranks: bool = False) -> None:
        """Wait until all processes are here; the first one says which are not."""
        tag, seconds = next(self._tags), timeout.total_seconds()
        milliseconds = round(seconds * 1000)
        if self._rank != 0:
            try:
                with _record.scope("gloo:send"):
                    self._mesh.send(0, "monitored_barrier", tag, b"")
                with _record.scope("gloo:recv"):
                    self._mesh.receive(0, "monitored_barrier", tag, 0, max(seconds, self._timeout.total_seconds()))
            except RuntimeError as error:
                raise RuntimeError(
                    f"Rank {self._rank} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank"
                    f" 0. Please check rank 0 logs for faulty rank.\n Original exception: \n{error}"
                ) from error
            return
        missing: list[int] = []
        for peer in range(1, self._size):
            try:
                with _record.scope("gloo:recv"):
                    self._mesh.receive(peer, "monitored_barrier", tag, 0, seconds)
            except RuntimeError as error:
                if not wait_all_ranks:
                    raise RuntimeError(
                        f"[Rank 0]: Rank {peer} failed to pass monitoredBarrier in {milliseconds} ms\n Original exception: \n{error}"
                    ) from error
                missing.append(peer)
        if missing:
            raise RuntimeError(
                f"[Rank 0]: Ranks {', '.join(map(str, missing))} failed to pass monitoredBarrier in {milliseconds} ms"
            )
        for peer in range(1, self._size):
            with _record.scope("gloo:send"):
                self._mesh.send(peer, "monitored_barrier", tag, b"")

    # --- from one to one ------------------------------------------------------------------------------------------------

    def send(self, tensors: Sequence[Tensor], dst: int, tag: int = 0) -> Work:
        """Send a tensor; done when it is on its way."""
        self._check_peer("send", dst)
        work = Work(lambda: self._mesh.send(dst, "send", tag, _Buffer(tensors[0]).flat), "send")
        with _record.scope("gloo:send", (_record.Arguments(tensors), None)):
            work._run()
        return work

    def recv(self, tensors: Sequence[Tensor], src: int, tag: int = 0) -> Work:
        """Receive a tensor; it is written when somebody waits for it."""
        self._check_peer("recv", src)
        return self._receiving("gloo:recv", tensors, src, tag)

    def recv_anysource(self, tensors: Sequence[Tensor], tag: int = 0) -> Work:
        """Receive a tensor from the first process that sends one."""
        return self._receiving("gloo:recvAnySource", tensors, ANY, tag)

    def _receiving(self, name: str, tensors: Sequence[Tensor], src: int, tag: int) -> Work:
        def take() -> tuple[int, list[Any]]:
            with _record.scope(name, (_record.Arguments(tensors), None)):
                buffer = _Buffer(tensors[0])
                source, message = self._mesh.receive(src, "send", tag, buffer.size_bytes, self._timeout.total_seconds())
                buffer.take(message)
                buffer.write_back()
            return source, list(tensors)

        return ReceiveWork(take, lambda: self._mesh.has_message(src, tag))

    def _check_peer(self, name: str, peer: int) -> None:
        if not 0 <= peer < self._size or peer == self._rank:
            raise RuntimeError(f"{name}: there is no other process with rank {peer} in this group of {self._size}")

    def _check_list(self, name: str, tensors: Sequence[Tensor], index: int) -> None:
        if len(tensors) != self._size:
            kind = "input" if name == "scatter" else "output"
            raise RuntimeError(
                f"ProcessGroupGloo::{name}: invalid {kind} tensor list at index {index} (expected length {self._size}, got {len(tensors)})"
            )


def _check_like(name: str, tensors: Sequence[Tensor], like: Tensor) -> None:
    for i, tensor in enumerate(tensors):
        if tensor.dtype != like.dtype:
            raise RuntimeError(
                f"ProcessGroupGloo::{name}: invalid tensor type at index {i} (expected {like.dtype}, got {tensor.dtype})"
            )
        if tensor.shape != like.shape:
            expected, got = (f"({', '.join(map(str, t.shape))})" for t in (like, tensor))
            raise RuntimeError(f"ProcessGroupGloo::{name}: invalid tensor size at index {i} (expected {expected}, got {got})")


def _chunks(count: int, itemsize: int, size: int) -> list[slice]:
    """The part of each process in a reduction: whole segments, as many for each, and at least two."""
    largest = max(1, _SEGMENT_BYTES // itemsize) * itemsize
    segments = -(-max(-(-count * itemsize // largest), 2 * size) // size) * size
    length = -(-count // segments) * (segments // size)
    return [slice(min(i * length, count), min((i + 1) * length, count)) for i in range(size)]


def _work_off(waiting: queue.SimpleQueue[Work | None]) -> None:
    while (work := waiting.get()) is not None:
        work._run()
        del work  # and with it its tensors, before the next one comes
