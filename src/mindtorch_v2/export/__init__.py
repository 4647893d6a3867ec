"""torch.export: names that programs import. Models are not exported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refusals import refused


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Nothing to register: it would tell an export how to take the class apart."""


globals().update(
    refused(
        __name__,
        "models are not exported here; save the state_dict and export it with PyTorch",
        functions="default_decompositions dims draft_export export load save unflatten",
        classes="AdditionalInputs Dim ExportBackwardSignature ExportGraphSignature ExportedProgram ModuleCallEntry ModuleCallSignature"
        " ShapesCollection UnflattenedModule",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
