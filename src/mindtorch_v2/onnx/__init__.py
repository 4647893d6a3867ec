"""torch.onnx: names that programs import. Models are not exported."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from .._refusals import refused

__all__ = ["OnnxExporterError", "TrainingMode", "is_in_onnx_export", "register_custom_op_symbolic", "unregister_custom_op_symbolic"]

WHY = "models are not exported here; save the state_dict and export it with PyTorch"


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


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Nothing: libraries register how their operators are exported when they are imported, and `export` refuses."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Nothing: nothing is registered."""


globals().update(
    refused(
        __name__,
        WHY,
        functions="export select_model_mode_for_export",
        classes="ExportableModule InputObserver JitScalarType ONNXProgram OperatorExportTypes TensorProtoDataType",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
