"""torch.fx.node: types that annotations name. Nothing is traced."""

from __future__ import annotations

from typing import Any

from . import Node

__all__ = ["Argument", "Node", "Target"]

Target = Argument = Any  # what a node calls, and with what
