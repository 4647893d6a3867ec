"""A batch spread over devices. Without an accelerator, the module is called as it is."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls the module that it is made with; as in torch where there is no accelerator, the devices asked for are left out."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        from ...profiler.record_function import record_function  # the profiler asks for modules when it is imported

        with record_function("DataParallel.forward"):
            return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None
) -> Any:
    """Refused, as in torch where there is no accelerator."""
    raise RuntimeError("device type could not be determined")


def _refuse(name: str) -> Any:
    raise RuntimeError(f"nn.parallel.{name} needs several devices, and the only one here is the CPU; call the module itself")


def replicate(network: Module, devices: Any, detach: bool = False) -> Any:
    """Copies of a module on several devices, which there are none of."""
    return _refuse("replicate")


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """Parts of a batch on several devices, which there are none of."""
    return _refuse("scatter")


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """One tensor from parts on several devices, which there are none of."""
    return _refuse("gather")


def parallel_apply(modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None) -> Any:
    """Calls of modules on several devices, which there are none of."""
    return _refuse("parallel_apply")
