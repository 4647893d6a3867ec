"""`emit_itt` and `emit_nvtx`: annotations for other tools, which this runtime does not have."""

from __future__ import annotations

from types import TracebackType
from typing import Self

__all__ = ["emit_itt", "emit_nvtx"]


class _Emit:
    """A block that would annotate its operators for another tool."""

    tool: str

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self.tool} annotation context manager is not reentrant")
        raise RuntimeError(
            f"{self.tool} is not part of this runtime; record with torch.profiler.profile and export a trace instead"
        )

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        return False if self.enabled else None


class emit_itt(_Emit):  # noqa: N801 - torch's name
    """Annotations for Intel's VTune: needs ITT, and says so when entered."""

    tool = "ITT"


class emit_nvtx(_Emit):  # noqa: N801 - torch's name
    """Annotations for NVIDIA's Nsight: needs CUDA, and says so when entered."""

    tool = "NVTX"
