"""`torch.linalg`: factorisations, solvers, norms and products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._functions import namespace
from ._ops.linalg_checks import LinAlgError

__all__ = ["LinAlgError", *sorted(namespace("linalg_"))]

globals().update(namespace("linalg_"))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
