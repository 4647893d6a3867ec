"""The command `mindtorch`, which starts without the runtime.

Importing anything of `mindtorch_v2` runs the package's `__init__`, and with it operators and kernels, a second and more. Most commands read a
file and need none of that. So two packages stand here as their folders alone; their `__init__` runs as soon as something is asked of
them that is not one of their modules, or a module of the runtime is imported.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["main"]

ROOT = "mindtorch_v2"
PACKAGES = (ROOT, f"{ROOT}.profiler")
# By package, what is in it that can be imported before its `__init__` has run.
WITHOUT_RUNTIME = {
    ROOT: ("cli", "profiler", "_launch"),
    f"{ROOT}.profiler": ("model", "output", "opening", "device", "writing", "comparison", "query", "spool", "device_type"),
}

_loading = threading.RLock()


class _Folder(ModuleType):
    """A package whose `__init__` has not run."""

    def __getattr__(self, name: str) -> Any:
        if name in ("__wrapped__", "__warningregistry__"):  # asked of every module by the standard library
            raise AttributeError(name)
        _load(self)
        return getattr(self, name)


def _load(package: ModuleType) -> None:
    """Run the `__init__` of a package, unless that was done."""
    with _loading:
        if type(package) is _Folder:
            package.__class__ = ModuleType  # type: ignore[assignment]
            assert package.__spec__ is not None
            assert package.__spec__.loader is not None
            package.__spec__.loader.exec_module(package)


class _RuntimeFirst:
    """A finder that has the packages loaded before a module of the runtime is: modules import each other in the packages' order."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        parent, _, child = name.rpartition(".")
        if child in WITHOUT_RUNTIME.get(parent, (child,)) or not any(type(sys.modules[p]) is _Folder for p in PACKAGES):
            return None
        for package in PACKAGES:
            _load(sys.modules[package])
        return ModuleSpec(name, self) if name in sys.modules else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return sys.modules[spec.name]  # as the package has imported it

    def exec_module(self, module: ModuleType) -> None:
        """It has run."""


def main() -> None:
    """Run the command that `sys.argv` names."""
    for name in PACKAGES:
        if name not in sys.modules:
            _stand_for(name)
    sys.meta_path.insert(0, _RuntimeFirst())
    importlib.import_module("mindtorch_v2.cli.frame").main()


def _stand_for(name: str) -> None:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    package = _Folder(name)
    package.__spec__, package.__path__, package.__file__ = spec, spec.submodule_search_locations, spec.origin  # type: ignore[assignment]
    package.__package__, package.__loader__ = name, spec.loader
    sys.modules[name] = package
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)


if __name__ == "__main__":
    main()
