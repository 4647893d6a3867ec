"""`torch.linalg`: factorisations, solvers, norms and products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._functions import namespace as _namespace
from ._ops.linalg.checks import LinAlgError

globals().update(_namespace("linalg_"))
__all__ = ["LinAlgError", *sorted(_namespace("linalg_"))]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
