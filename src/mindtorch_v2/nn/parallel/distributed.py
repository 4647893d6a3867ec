"""`DistributedDataParallel`: one module in several processes, each with its part of the data; gradients are averaged in backward."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._dispatch.tls import state
from ..._tensor import Tensor, wrap
from ...distributed.algorithms.ddp_comm_hooks import default_hooks
from ...distributed.distributed_c10d import group as groups
from ...distributed.distributed_c10d import own_group
from ...distributed.object_collectives import all_gather_object
from ...distributed.reducer import BuiltinCommHookType, Hook, Logger, Reducer, compute_bucket_assignment_by_size
from ...profiler.record_function import record_function
from ..modules.module import Module
from ..parameter import UninitializedTensorMixin

if TYPE_CHECKING:
    from ..._types import OptionalDevice
    from ...distributed.process_group import ProcessGroup

__all__ = ["DistributedDataParallel"]

_MIB = 1 << 20
_NOT_HERE = {
    "delay_all_reduce_named_params": None,
    "param_to_hook_all_reduce": None,
    "mixed_precision": None,
    "device_mesh": None,
    "skip_all_reduce_unused_params": False,
    "bucket_cap_mb_list": None,
    "batched_grad_copy": False,
}


class DistributedDataParallel(Module):
    """A module of which each process of a group has a copy. They start with the parameters and buffers of the first process, and average their
    gradients in each backward pass, in buckets and while it runs.

    Args:
        module: the module, on the CPU.
        device_ids, output_device: None, as modules on the CPU need it.
        dim: taken for compatibility.
        broadcast_buffers: the old name of `forward_sync_buffers`; False also leaves buffers as they are at the start.
        init_sync: whether all start with the parameters and buffers of the first process.
        process_group: the processes; all unless given.
        bucket_cap_mb: the size of a bucket in MiB; 25 unless given.
        find_unused_parameters: whether to look, after each forward pass, for parameters that will get no gradient. Without it, all must.
        gradient_as_bucket_view: whether gradients are views of the buckets.
        static_graph: whether every step uses the same parameters in the same way; what the first one shows then holds for all.
        forward_sync_buffers: whether each forward pass begins with the buffers of the first process; True unless given.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: OptionalDevice = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        given = locals()
        for name, default in _NOT_HERE.items():
            if given[name] != default:
                raise NotImplementedError(f"DistributedDataParallel({name}=…) is not part of the package; leave it out")
        self.process_group = own_group(process_group)
        self._check(module, device_ids, output_device)
        self.module = module
        self.device = next(iter(module.parameters())).device
        self.device_type, self.device_ids, self.output_device, self.dim = self.device.type, None, None, dim
        self.forward_sync_buffers = _buffers_are_synced(broadcast_buffers, forward_sync_buffers)
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.static_graph = static_graph
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MIB)
        self.bucket_bytes_cap_default = bucket_cap_mb is None
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        ignored: set[str] = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.parameters_to_ignore = ignored
        self._reduced = {n: p for n, p in module.named_parameters() if p.requires_grad and n not in ignored}
        self.modules_buffers = [b for n, b in module.named_buffers() if n not in ignored]
        if init_sync:
            _check_same_parameters(list(self._reduced.values()), self.process_group)
            states = [p.detach() for n, p in module.named_parameters() if n not in ignored]
            _broadcast(states + (self.modules_buffers if broadcast_buffers is not False else []), self.process_group)
        self._make_reducer()

    def _check(self, module: Module, device_ids: Sequence[Any] | None, output_device: OptionalDevice) -> None:
        parameters = list(module.parameters())
        if not any(p.requires_grad for p in parameters):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if device_ids or output_device is not None:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules"
                f" or CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module parameters"
                f" { {p.device for p in parameters} }."
            )
        if any(isinstance(p, UninitializedTensorMixin) for p in parameters):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy forward pass to correctly"
                " initialize the modules"
            )

    def _make_reducer(self) -> None:
        from ...distributed.reducer import (
            Logger,
            Reducer,
        )  # costly: sockets, which most programs never need

        parameters = list(self._reduced.values())
        # torch: buckets that are made anew after the first step begin as one
        one = self.static_graph or not self.find_unused_parameters
        limits = [sys.maxsize] if one else [_MIB, self.bucket_bytes_cap]
        indices = compute_bucket_assignment_by_size(parameters, limits)
        sparse = {id(m.weight) for m in self.module.modules() if type(m).__name__ in ("Embedding", "EmbeddingBag") and m.sparse}
        self.reducer: Reducer = Reducer(
            parameters,
            list(reversed(indices)),
            limits,
            self.process_group,
            [id(p) in sparse for p in parameters],
            self.bucket_bytes_cap,
            self.find_unused_parameters,
            self.gradient_as_bucket_view,
            dict(enumerate(self._reduced)),
            _MIB if self.bucket_bytes_cap_default else self.bucket_bytes_cap,
        )
        if self.static_graph:
            self.reducer._set_static_graph()
        self.logger: Logger = Logger(self.reducer)
        self.logger.set_construction_data_and_log(type(self.module).__name__, [], -1, self.forward_sync_buffers)

    # --- calls ------------------------------------------------------------------------------------------------------

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        with record_function("DistributedDataParallel.forward"):
            averages = state.grad_enabled and self.require_backward_grad_sync
            if averages:
                self.reducer.prepare_for_forward()
                self.reducer._rebuild_buckets()
            if self.will_sync_module_buffers():
                _broadcast(self.modules_buffers, self.process_group)
            output = self.module(*inputs, **kwargs)
            self.require_forward_param_sync = averages
            if averages:
                looks = self.find_unused_parameters and not self.static_graph
                self.reducer.prepare_for_backward(list(_tensors_in(output)) if looks else [])
            return output

    @property
    def broadcast_buffers(self) -> bool:
        """The old name of `forward_sync_buffers`."""
        return self.forward_sync_buffers

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward pass begins with the buffers of the first process."""
        return self.require_forward_param_sync and self.forward_sync_buffers and bool(self.modules_buffers)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Add up gradients without averaging them: forward and backward are both in the block. The next step outside averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: give all processes the same number of batches, as `DistributedSampler` does."""
        raise NotImplementedError(
            "DistributedDataParallel.join is not part of the package: give all processes the same number of batches, as DistributedSampler does"
        )

    def register_comm_hook(self, state: Any, hook: Hook) -> None:
        """Have `hook(state, bucket)` average each bucket; it returns the future of the averaged tensor."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        self.reducer.register_comm_hook(state, hook)

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        compress = comm_hook_type == BuiltinCommHookType.FP16_COMPRESS
        hook = default_hooks.fp16_compress_hook if compress else default_hooks.allreduce_hook
        self.register_comm_hook(self.process_group, hook)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        return self.logger._get_ddp_logging_data()

    def _set_static_graph(self) -> None:
        self.static_graph = True
        self.reducer._set_static_graph()

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        object.__setattr__(module, "_ddp_params_and_buffers_to_ignore", params_and_buffers_to_ignore)

    # --- pickles ----------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        if self.process_group is not groups.WORLD:
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, when you have called"
                " init_process_group and have not passed process_group argument to DDP constructor"
            )
        return {
            name: value for name, value in self.__dict__.items() if name not in ("process_group", "reducer", "logger", "_reduced")
        }

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        super().__setstate__(attributes)
        self.process_group = own_group(None)
        self._reduced = {n: p for n, p in self.module.named_parameters() if p.requires_grad and n not in self.parameters_to_ignore}
        self._make_reducer()


def _buffers_are_synced(old: bool | None, new: bool | None) -> bool:
    if old is not None:
        warnings.warn(
            "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead."
            if new is None
            else "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is deprecated and its value is"
            " ignored when `forward_sync_buffers` is provided.",
            FutureWarning,
            stacklevel=3,
        )
    return new if new is not None else old is not False


def _tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in lists, tuples, dicts and dataclasses."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors_in(each)
    elif isinstance(value, dict):
        yield from _tensors_in(list(value.values()))
    elif hasattr(value, "__dataclass_fields__"):
        yield from _tensors_in([getattr(value, name) for name in value.__dataclass_fields__])


def _check_same_parameters(parameters: list[Tensor], group: ProcessGroup) -> None:
    """Refuse modules that differ between processes."""
    shapes: list[Any] = [None] * group.size()
    all_gather_object(shapes, [tuple(p.shape) for p in parameters], group)
    for rank, theirs in enumerate(shapes):
        if len(theirs) != len(shapes[0]):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {group.rank()} has {len(parameters)} params, while rank {rank} has"
                f" inconsistent {len(theirs)} params."
            )
        for i, (own, other) in enumerate(zip(shapes[group.rank()], theirs, strict=True)):
            if own != other:
                raise RuntimeError(
                    f"[{i}]: params[{i}] in this process with sizes {list(own)} appears not to match sizes {list(other)} of the same param in"
                    f" process {rank}."
                )


def _broadcast(tensors: list[Tensor], group: ProcessGroup) -> None:
    """Give tensors the values of the first process: those of one dtype together."""
    by_dtype: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        by_dtype.setdefault(tensor.dtype, []).append(tensor)
    for alike in by_dtype.values():
        together = np.concatenate([t._array.reshape(-1) for t in alike])
        group.broadcast([wrap(together)], 0).wait()
        if group.rank() != 0:
            ends = np.cumsum([t.numel() for t in alike])[:-1]
            for tensor, part in zip(alike, np.split(together, ends), strict=True):
                tensor._array[...] = part.reshape(tensor._array.shape)
