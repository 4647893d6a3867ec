"""torch.utils.deterministic: what `torch.use_deterministic_algorithms` does to memory that nobody has written to."""

from __future__ import annotations

import sys
from types import ModuleType

from .. import _settings

__all__ = ["fill_uninitialized_memory"]

fill_uninitialized_memory: bool


class _Module(ModuleType):
    """The module itself, so that assigning to its name has an effect."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `torch.empty` and the like fill their memory while deterministic algorithms are asked for."""
        return _settings.fills_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        _settings.set_fills_memory(mode)


sys.modules[__name__].__class__ = _Module
