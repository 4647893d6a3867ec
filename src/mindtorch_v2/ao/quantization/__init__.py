"""torch.ao.quantization: models carry its marks and compute in floating point; converting one is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._refusals import refused
from ..._tensor import Tensor
from ...nn.modules.module import Module

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class QuantStub(Module):
    """Marks where a converted model would quantize; returns its input."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class DeQuantStub(QuantStub):
    """Marks where a converted model would return to floating point; returns its input."""


class QuantWrapper(Module):
    """A module between both marks."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.quant = QuantStub()
        self.dequant = DeQuantStub()
        self.module = module
        self.train(module.training)

    def forward(self, X: Tensor) -> Any:
        return self.dequant(self.module(self.quant(X)))


globals().update(
    refused(
        __name__,
        "quantized tensors are not part of the runtime; models compute in floating point",
        functions="convert default_eval_fn fuse_modules fuse_modules_qat get_default_qat_qconfig get_default_qat_qconfig_mapping"
        " get_default_qconfig get_default_qconfig_mapping prepare prepare_qat propagate_qconfig_ quantize quantize_dynamic quantize_qat swap_module",
        classes="FakeQuantize HistogramObserver MinMaxObserver MovingAverageMinMaxObserver ObserverBase PerChannelMinMaxObserver"
        " PlaceholderObserver QConfig QConfigMapping",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
