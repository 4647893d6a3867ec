"""Unpickling of files whose source is trusted: torch's names are found here, and any other is imported."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .._random import Generator
from .names import own_module
from .rebuild import NAMES

__all__ = ["trusting"]

_MOVED = {"torch.tensor": "torch._tensor"}  # torch: a module by its name in older files


def trusting(pickle_module: Any, file: Any, persistent_load: Callable[[Any], Any], options: dict[str, Any]) -> Any:
    """An unpickler of this module for a file, which may call anything."""

    class Unpickler(pickle_module.Unpickler):  # type: ignore[misc]
        def find_class(self, module: str, name: str) -> Any:
            module = _MOVED.get(module, module)
            full = f"{module}.{name}"
            if full in NAMES:
                return NAMES[full]
            if full == "torch._C.Generator":
                return Generator
            own = own_module(module)
            if own is None:
                return super().find_class(module, name)
            found: Any = importlib.import_module(own)
            for part in name.split("."):
                found = getattr(found, part)
            return found

    made = Unpickler(file, **options)
    made.persistent_load = persistent_load
    return made
