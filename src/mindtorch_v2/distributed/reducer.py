"""Gradients of all processes averaged while backward runs: in buckets, each as soon as all of its gradients are there."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .. import _record
from .._autograd.engine import queue_callback
from .._functions import functions
from .._interop import from_numpy
from .._tensor import Tensor
from ..autograd.grad_mode import no_grad
from ..autograd.graph import get_gradient_edge
from ..futures import Future
from .process_group import ProcessGroup
from .work import Work

__all__ = ["BuiltinCommHookType", "GradBucket", "Logger", "Reducer"]

Hook = Callable[[Any, "GradBucket"], Future[Any]]


class BuiltinCommHookType(enum.IntEnum):
    """Ways to average a bucket that need no function of the program."""

    ALLREDUCE = 1
    FP16_COMPRESS = 2


class GradBucket:
    """Gradients that are averaged together, one after the other in one tensor; what a communication hook gets."""

    def __init__(self, index: int, parameters: list[Tensor]) -> None:
        self._index = index
        self._parameters = parameters
        self._buffer = functions["zeros"](sum(p.numel() for p in parameters), dtype=parameters[0].dtype)
        self._is_last = False
        self.views: list[Tensor] = []
        self.pending = len(parameters)
        self.work: Work | Future[Any] | None = None
        self._cut()

    def _cut(self) -> None:
        start, self.views = 0, []
        for parameter in self._parameters:
            self.views.append(self._buffer[start : start + parameter.numel()].view(parameter.shape))
            start += parameter.numel()

    def index(self) -> int:
        """The place of this bucket among all, from 0."""
        return self._index

    def buffer(self) -> Tensor:
        """The gradients in one dimension."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Put another tensor in the place of the gradients."""
        self._buffer = buffer
        self._cut()

    def gradients(self) -> list[Tensor]:
        """The gradients, each with the shape of its parameter."""
        return self.views

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return self._parameters

    def is_last(self) -> bool:
        """Whether this is the last bucket of the backward pass."""
        return self._is_last


def compute_bucket_assignment_by_size(
    tensors: Sequence[Tensor], bucket_size: Sequence[int], indices: Sequence[int] | None = None
) -> list[list[int]]:
    """Which tensors share a bucket: neighbours of one dtype, until the bucket has its size. The last size is that of all further ones."""
    done: list[list[int]] = []
    open_: dict[Any, list[int]] = {}
    sizes: dict[Any, int] = {}
    limits: dict[Any, int] = {}
    for i, tensor in enumerate(tensors):
        key = tensor.dtype
        open_.setdefault(key, []).append(indices[i] if indices is not None else i)
        sizes[key] = sizes.get(key, 0) + tensor.numel() * tensor.element_size()
        if sizes[key] >= bucket_size[min(limits.get(key, 0), len(bucket_size) - 1)]:
            done.append(open_.pop(key))
            sizes[key] = 0
            limits[key] = limits.get(key, 0) + 1
    done += [members for members in open_.values() if members]
    return done if indices is not None else sorted(done, key=min)


class Reducer:
    """Averages the gradients of parameters over the processes of a group.

    Args:
        params: the parameters.
        bucket_indices: which of them share a bucket, in the order in which buckets are averaged.
        per_bucket_size_limits: the sizes of buckets in bytes; taken for compatibility.
        process_group: the processes.
        bucket_bytes_cap, first_bucket_bytes_cap: the sizes of the buckets that are made anew after the first backward pass, in the order in
            which gradients came.
        find_unused_parameters: whether to look, after each forward pass, which parameters will get no gradient.
        gradient_as_bucket_view: whether gradients are views of the buckets, and not copied back.
        param_to_name_mapping: names of parameters for messages.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        bucket_indices: Sequence[Sequence[int]],
        per_bucket_size_limits: Sequence[int],
        process_group: ProcessGroup,
        expect_sparse_gradients: Sequence[bool] = (),
        bucket_bytes_cap: int = 25 << 20,
        find_unused_parameters: bool = False,
        gradient_as_bucket_view: bool = False,
        param_to_name_mapping: dict[int, str] | None = None,
        first_bucket_bytes_cap: int = 1 << 20,
    ) -> None:
        if any(expect_sparse_gradients):
            raise NotImplementedError("gradients that are sparse are not averaged here; make the embedding with sparse=False")
        self._params = list(params)
        self._group = process_group
        self._caps = [first_bucket_bytes_cap, bucket_bytes_cap]
        self._find_unused = find_unused_parameters
        self._as_view = gradient_as_bucket_view
        self._names = param_to_name_mapping or {}
        self._hook: tuple[Any, Hook] | None = None
        self._static = False
        self._uses: list[int] | None = None  # with a static graph: how often each parameter gets a gradient, once that is known
        self._rebuilt = False
        self._expecting = False  # whether gradients that come are to be averaged
        self._finished = True
        self._arrival: list[int] = []
        self._counts: list[int] = []
        self._unused: set[int] = set()
        self._ready: set[int] = set()
        self._next = 0
        self.iterations = 0
        self._make_buckets(bucket_indices)
        # a node of a leaf lives as long as somebody holds it
        self._nodes = [get_gradient_edge(p).node for p in self._params]
        self._handles = [node.register_hook(self._on_gradient(i)) for i, node in enumerate(self._nodes)]

    def _make_buckets(self, indices: Iterable[Sequence[int]]) -> None:
        self._indices = [list(members) for members in indices]
        self._buckets = [GradBucket(i, [self._params[j] for j in members]) for i, members in enumerate(self._indices)]
        self._buckets[-1]._is_last = True
        self._place = {j: (b, k) for b, members in enumerate(self._indices) for k, j in enumerate(members)}

    # --- around forward ---------------------------------------------------------------------------------------------

    def prepare_for_forward(self) -> None:
        """Count a step, of which there will be a backward pass."""
        self.iterations += 1

    def _rebuild_buckets(self) -> bool:
        """After the first backward pass: buckets in the order in which gradients came, as the first process saw it."""
        if self._rebuilt or len(self._arrival) != len(self._params) or (self._find_unused and not self._static):
            return False
        self._check_finished()
        order = np.array(self._arrival, np.int64)
        self._group.broadcast([from_numpy(order)], 0).wait()
        members = [int(i) for i in order]
        self._make_buckets(compute_bucket_assignment_by_size([self._params[i] for i in members], self._caps, members))
        self._rebuilt = True
        return True

    def prepare_for_backward(self, outputs: Sequence[Tensor]) -> None:
        """Expect gradients: of all parameters, or of those that outputs depend on."""
        self._check_finished()
        self._expecting, self._finished = True, False
        self._arrival, self._ready, self._next = ([] if not self._rebuilt else self._arrival), set(), 0
        self._counts = [0] * len(self._params)
        for bucket in self._buckets:
            bucket.pending, bucket.work = len(bucket._parameters), None
        self._unused = set()
        if self._find_unused and not self._static:
            self._unused = self._unreached(outputs)
        elif self._uses is not None:
            self._unused = {i for i, uses in enumerate(self._uses) if uses == 0}
        self._pending_unused = bool(self._unused)

    def _unreached(self, outputs: Sequence[Tensor]) -> set[int]:
        """The parameters that no output depends on."""
        waiting = [t.grad_fn for t in outputs if t.grad_fn is not None]
        waiting += [get_gradient_edge(t).node for t in outputs if t.requires_grad and t.grad_fn is None]
        seen = set()
        while waiting:
            node = waiting.pop()
            if node is not None and id(node) not in seen:
                seen.add(id(node))
                waiting += [following for following, _ in node.next_functions]
        return {i for i, node in enumerate(self._nodes) if id(node) not in seen}

    # --- in backward ------------------------------------------------------------------------------------------------

    def _on_gradient(self, index: int) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            if self._expecting:
                self._came(index)

        return hook

    def _came(self, index: int) -> None:
        """A parameter has its gradient."""
        self._counts[index] += 1
        if self._static:
            if self._uses is None:  # the first pass shows how often each parameter is used; all is averaged at its end
                if sum(self._counts) == 1:
                    queue_callback(self._learn)
                if not self._rebuilt and index not in self._arrival:
                    self._arrival.append(index)
                return
            if self._counts[index] < self._uses[index]:
                return
        elif index in self._ready:
            raise RuntimeError(
                "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a module"
                " parameter outside the `forward` function, or by several backward passes over one forward pass. 2) Reused parameters in"
                " multiple reentrant backward passes, as with activation checkpointing; static_graph=True supports these if the graph does"
                f" not change. Parameter at index {index}{self._name(index)} has been marked as ready twice."
            )
        if not self._rebuilt:
            self._arrival.append(index)
        self._mark_unused()
        self._mark(index)

    def _mark_unused(self) -> None:
        if self._pending_unused:
            self._pending_unused = False
            for index in sorted(self._unused):
                self._mark(index)

    def _mark(self, index: int) -> None:
        """Put a gradient into its bucket; average the buckets that are complete, in their order."""
        self._ready.add(index)
        b, k = self._place[index]
        bucket = self._buckets[b]
        with no_grad():
            self._fill(bucket.views[k], self._params[index], is_used=index not in self._unused)
        bucket.pending -= 1
        while self._next < len(self._buckets) and self._buckets[self._next].pending == 0:
            self._average(self._buckets[self._next])
            self._next += 1
        if self._next == len(self._buckets):
            queue_callback(self._finish)

    def _fill(self, view: Tensor, parameter: Tensor, *, is_used: bool) -> None:
        grad = parameter.grad
        if grad is None or not is_used:
            view.zero_()
        elif self._hook is not None:
            if grad._storage is not view._storage:
                view.copy_(grad)
        else:
            with _record.scope("torch::distributed::reducer::mul_out", (_record.Arguments([view]), None)):
                functions["mul"](grad, 1.0 / self._group.size(), out=view)
        if self._as_view and is_used and grad is not None and grad._storage is not view._storage:
            parameter.grad = view

    def _average(self, bucket: GradBucket) -> None:
        if self._hook is None:
            bucket.work = self._group.allreduce([bucket._buffer])
        else:
            state, hook = self._hook
            bucket.work = hook(state, bucket)

    def _learn(self) -> None:
        """End the first pass of a static graph."""
        self._uses = list(self._counts)
        self._unused = {i for i, uses in enumerate(self._uses) if uses == 0}
        self._arrival += sorted(self._unused)
        for index in range(len(self._params)):
            self._mark(index)

    def _finish(self) -> None:
        """Wait for the averages, and put them into the gradients."""
        used = self._used_anywhere()
        with no_grad():
            for bucket, members in zip(self._buckets, self._indices, strict=True):
                assert bucket.work is not None
                result = bucket.work.wait()
                if self._hook is not None:
                    averaged = result[0] if isinstance(result, list | tuple) else result
                    if averaged is not bucket._buffer:
                        bucket._buffer.copy_(averaged)
                for view, index in zip(bucket.views, members, strict=True):
                    self._put_back(view, self._params[index], is_used=index in used)
        self._expecting, self._finished = False, True

    def _put_back(self, view: Tensor, parameter: Tensor, *, is_used: bool) -> None:
        if not is_used:
            return
        if parameter.grad is None:
            parameter.grad = view if self._as_view else view.clone()
        elif parameter.grad._storage is not view._storage:
            with _record.scope("torch.distributed.ddp.reducer::copy_bucket_to_grad", (_record.Arguments([parameter.grad]), None)):
                parameter.grad.copy_(view)

    def _used_anywhere(self) -> set[int]:
        """The parameters that got a gradient in any process; the others keep what they had."""
        if not self._find_unused and not self._static:
            return set(range(len(self._params)))
        used = np.array([index not in self._unused for index in range(len(self._params))], np.int32)
        if self._find_unused or self._static:
            self._group.allreduce([from_numpy(used)]).wait()
        return {int(i) for i in np.flatnonzero(used)}

    def _check_finished(self) -> None:
        if self._finished:
            return
        missing = [i for i in range(len(self._params)) if i not in self._ready]
        names = [self._names[i] for i in missing if i in self._names]
        told = f"\nParameters which did not receive grad for rank {self._group.rank()}: {', '.join(names)}" if names else ""
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module"
            " has parameters that were not used in producing loss. You can enable unused parameter detection by passing the keyword"
            " argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward`"
            f" function outputs participate in calculating loss.{told}\n"
            f"Parameter indices which did not receive grad for rank {self._group.rank()}: {' '.join(map(str, missing))}"
        )

    def _name(self, index: int) -> str:
        return f" with name {self._names[index]}" if index in self._names else ""

    def _set_static_graph(self) -> None:
        self._static = True

    def register_comm_hook(self, state: Any, hook: Hook) -> None:
        """Have a function average each bucket."""
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._hook = (state, hook)

    def _remove_autograd_hooks(self) -> None:
        for handle in self._handles:
            handle.remove()


class Logger:
    """What is known about a module in several processes."""

    def __init__(self, reducer: Reducer) -> None:
        self._reducer = reducer
        self._data: dict[str, Any] = {}

    def set_construction_data_and_log(
        self, module_name: str, device_ids: Sequence[int], output_device: int, broadcast_buffers: bool, **more: Any
    ) -> None:
        """Keep how the module was made."""
        self._data |= {"module_name": module_name, "broadcast_buffers": int(broadcast_buffers), **more}

    def set_runtime_stats_and_log(self) -> None:
        """Keep how many steps there have been."""
        self._data["iteration"] = self._reducer.iterations

    def set_error_and_log(self, error: str) -> None:
        """Keep an error."""
        self._data |= {"has_error": 1, "error": error}

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        reducer = self._reducer
        sizes = [b.buffer().numel() * b.buffer().element_size() for b in reducer._buckets]
        return {
            "world_size": reducer._group.size(),
            "rank": reducer._group.rank(),
            "backend_name": reducer._group.name(),
            "iteration": reducer.iterations,
            "num_parameter_tensors": len(reducer._params),
            "bucket_cap_bytes": reducer._caps[1],
            "bucket_sizes": ", ".join(map(str, sizes)),
            "find_unused_parameters": int(reducer._find_unused),
            "gradient_as_bucket_view": int(reducer._as_view),
            "static_graph": int(reducer._static),
            "has_rebuilt_buckets": int(reducer._rebuilt),
            **self._data,
        }
