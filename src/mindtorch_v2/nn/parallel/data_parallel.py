"""A batch spread over devices. Without an accelerator, the module is called as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..modules.module import Module

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ..._types import OptionalDevice

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls the module that it is made with; as in torch where there is no accelerator, the devices asked for are left out."""

    def __init__(
        self, module: Module, device_ids: Sequence[int] | None = None, output_device: OptionalDevice = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        from ...profiler.record_function import record_function  # cycle with profiler.record_function

        with record_function("DataParallel.forward"):
            return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Tensor | tuple[Any, ...],
    device_ids: Sequence[int] | None = None,
    output_device: OptionalDevice = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Refused, as in torch where there is no accelerator."""
    raise RuntimeError("device type could not be determined")
