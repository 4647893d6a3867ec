"""torch.autograd.graph: the graph's nodes and edges, and hooks on saved tensors and gradients."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .._autograd.differentiate import GradientEdge, get_gradient_edge
from .._autograd.engine import will_run
from .._autograd.node import Node
from .._autograd.saved_hooks import saved_tensors_hooks
from .._dispatch.tls import state
from .._forking import new_lock
from .._tensor import Tensor
from ..utils.hooks import RemovableHandle
from ._mutation import allow_mutation_on_saved_tensors

if TYPE_CHECKING:
    from .._types import TensorOrTensors

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version", "register_multi_grad_hook",
    "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """Inside, tensors saved for backward wait in the CPU's memory, and return to their device when needed."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        if pin_memory:
            raise RuntimeError("save_on_cpu(pin_memory=True) needs a device whose transfers use pinned memory; none is available")

        def pack(t: Tensor) -> tuple[Any, Tensor]:
            return (t.device, t.cpu())

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, t = packed
            return t.to(device)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, using saved-tensor hooks raises RuntimeError with this message."""
    if state.saved_hooks:
        raise RuntimeError(error_message)
    previous, state.hooks_disabled = state.hooks_disabled, error_message
    try:
        yield
    finally:
        state.hooks_disabled = previous


def increment_version(tensor: TensorOrTensors) -> None:
    """Count a write that autograd did not see, so that saved tensors are known to be stale."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        t._storage.version += 1


class _MultiHandle(RemovableHandle):
    """Removes several hooks at once."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        super().__init__({})
        self.handles = handles

    def remove(self) -> None:
        """Take all of the hooks out."""
        for each in self.handles:
            each.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all") -> RemovableHandle:
    """Call `fn` in each backward pass once the gradients of all tensors (with "any": of the first) are there."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = new_lock()
    if mode == "any":
        return _MultiHandle(_hook_any(tensors, fn, lock))
    counts: dict[int, int] = {}
    buffers: dict[int, list[Any]] = {}

    def arrived(index: int, grad: Tensor) -> None:
        # one count for each backward pass, told apart by the pass's id
        task = state.backward_id
        with lock:
            buffer = buffers.setdefault(task, [None] * len(tensors))
            counts[task] = counts.get(task, 0) + 1
            buffer[index] = grad
            complete = counts[task] == _expected(tensors)
            if complete:
                del counts[task], buffers[task]
        if complete:
            fn(buffer)

    return _MultiHandle(tuple(t.register_hook(functools.partial(arrived, i)) for i, t in enumerate(tensors)))


def _hook_any(tensors: Sequence[Tensor], fn: Callable[..., None], lock: Any) -> tuple[RemovableHandle, ...]:
    ran: set[int] = set()

    def arrived(grad: Tensor) -> None:
        with lock:
            first = state.backward_id not in ran
            ran.add(state.backward_id)
        if first:
            fn(grad)

    return tuple(t.register_hook(arrived) for t in tensors)


def _expected(tensors: Sequence[Tensor]) -> int:
    """Count the tensors that get a gradient in the pass that is running."""
    return sum(will_run(t) for t in tensors)
