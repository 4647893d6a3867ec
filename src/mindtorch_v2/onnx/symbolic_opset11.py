"""torch.onnx.symbolic_opset11: functions that would write a graph for ONNX. Libraries name the module when they are imported; nothing is exported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refusals import refused
from . import WHY

globals().update(refused(__name__, WHY, functions="select squeeze unsqueeze"))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
