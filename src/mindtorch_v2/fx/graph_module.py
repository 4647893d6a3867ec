"""torch.fx.graph_module: names that libraries import. Nothing is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refusals import refused
from . import WHY, GraphModule

__all__ = ["GraphModule"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"

globals().update(refused(__name__, WHY, functions="_copy_attr", classes="_CodeOnlyModule"))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
