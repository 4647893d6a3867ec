"""torch.onnx: names that programs import. Models are not exported."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from .._refusals import refused

__all__ = ["OnnxExporterError", "TrainingMode", "is_in_onnx_export"]


class TrainingMode(enum.IntEnum):
    """In which mode a model is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OnnxExporterError(RuntimeError):
    """An error of the export; never raised here."""


def is_in_onnx_export() -> bool:
    """False."""
    return False


globals().update(
    refused(
        __name__,
        "models are not exported here; save the state_dict and export it with PyTorch",
        functions="export register_custom_op_symbolic select_model_mode_for_export unregister_custom_op_symbolic",
        classes="ExportableModule InputObserver JitScalarType ONNXProgram OperatorExportTypes TensorProtoDataType",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
