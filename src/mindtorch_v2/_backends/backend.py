"""The protocol of a backend, and the backends that this process can use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from .._device import device
from .._dispatch.codegen import Body
from .._dispatch.op import Op

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .._types import Array

__all__ = ["Backend", "unavailable"]


class Backend(Protocol):
    """A place where kernels run.

    Written so that an asynchronous device fits: a kernel may return before its result is computed, as long as the copies to
    the host (`to_host`) and `synchronize` wait for it.
    """

    key: int

    def body(self, op: Op, full: int) -> Body:
        """Statements that launch the operator's kernel and leave a tensor in `result`."""

    def is_available(self) -> bool:
        """Whether this process can use the device now."""

    def allocate(self, size_bytes: int, index: int) -> Any:
        """Memory on device number `index`."""

    def to_host(self, tensor: Tensor) -> Array:
        """A NumPy array with the tensor's elements; waits for what computes them."""

    def from_host(self, array: Array, index: int) -> Any:
        """A tensor on the device from a NumPy array."""

    def synchronize(self, index: int) -> None:
        """Wait for all work launched on the device."""

    def record_event(self, stream: int) -> Callable[[], bool]:
        """A mark in a stream's work; the returned function tells whether it has been reached."""


def unavailable(where: device) -> Exception:
    """Why a tensor cannot be put on this device."""
    if where.type in ("cuda", "xpu"):
        return AssertionError(f"Torch not compiled with {where.type.upper()} enabled")  # torch's words, which programs look for
    if where.type in ("npu", "privateuseone"):
        return RuntimeError(
            f"cannot use device '{where}': no Ascend NPU runtime (CANN) was found on this machine, "
            "torch.npu.is_available() is False; use device='cpu'"
        )
    return RuntimeError(f"cannot use device '{where}': this package runs on 'cpu', 'meta' and 'npu'")
