"""The rules, by subject. They look in the order of the imports: what names a cause before what sees that something is slow."""

from __future__ import annotations

from . import elements, synchronization  # isort: skip - the order of the rules
from . import gradients, optimizers, data_loading, copies, layers  # isort: skip
from . import concatenation, graphs, growth, outside  # isort: skip
from . import loops, recording  # isort: skip

__all__ = [
    "concatenation", "copies", "data_loading", "elements", "gradients", "graphs", "growth", "layers", "loops", "optimizers", "outside", "recording",
    "synchronization",
]  # fmt: skip
