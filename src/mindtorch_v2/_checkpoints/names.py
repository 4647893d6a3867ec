"""Names in checkpoints: torch's names for this package's objects."""

from __future__ import annotations

from typing import Any

from .. import _dtype
from ..storage import LEGACY_NAMES

__all__ = ["PACKAGE", "STORAGE_TYPES", "UNTYPED", "StorageType", "own_module", "torch_module"]

PACKAGE = __name__.partition(".")[0]


def torch_module(module: str) -> str:
    """The name that a module of this package has in torch; others keep theirs, methods of C none."""
    if module is None:
        return None
    return "torch" + module[len(PACKAGE) :] if module == PACKAGE or module.startswith(PACKAGE + ".") else module


def own_module(module: str) -> str | None:
    """The module of this package that stands for one of torch's; None for others."""
    return PACKAGE + module[len("torch") :] if module == "torch" or module.startswith("torch.") else None


class StorageType:
    """Stands for `torch.FloatStorage` in a pickle."""

    __slots__ = ("_dtype", "name")

    def __init__(self, name: str) -> None:
        if name not in _DTYPES:
            raise KeyError(f'pickle storage type "{name}" is not recognized')
        self.name, self._dtype = name, _DTYPES[name]

    @property
    def dtype(self) -> _dtype.dtype:
        """The elements' type; bytes, where the storage has no type."""
        return self._dtype

    def __repr__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


_DTYPES: dict[str, Any] = {name: d for d, name in LEGACY_NAMES.items()} | {"UntypedStorage": _dtype.uint8}
UNTYPED = StorageType("UntypedStorage")
STORAGE_TYPES = {name: StorageType(name) for name in LEGACY_NAMES.values()}
