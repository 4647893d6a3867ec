"""SciPy's parts, each imported when it is first needed: together they cost 0.2 s of processor time, and many programs use none.

Most of that time goes to SciPy's own Python modules. Where an extension has the functions that kernels call, it is loaded without the
package around it, in about a millisecond: they are the same objects.

Kernels name a part as a module global and look functions up in it when they run. The compilation of an operator loads the parts
that its kernel may use (`load_parts`), so that no call's time has their import in it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import Any

from ._forking import new_lock

__all__ = [
    "Part",
    "blas",
    "fft",
    "folder",
    "lapack",
    "linalg",
    "load_parts",
    "on_load",
    "sparse",
    "sparsetools",
    "special",
    "ufuncs",
]

_lock = new_lock()
_on_load: list[Callable[[], None]] = []


class Part:
    """A module of SciPy that is imported with the first of its names that is asked for; an extension in it, if one is named, before that."""

    def __init__(self, module: str, extension: str = "") -> None:
        self._name = module
        self._extension_name = extension
        self._loaded: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what tools ask every object for
            raise AttributeError(name)
        loaded = self.load()
        found = getattr(loaded if hasattr(loaded, name) else importlib.import_module(self._name), name)
        vars(self)[name] = found  # the next time it is found as an attribute
        return found

    def load(self) -> ModuleType:
        """The extension, or else the module."""
        with _lock:
            if self._loaded is None:
                extension = _extension(self._extension_name) if self._extension_name else None
                self._loaded = extension or importlib.import_module(self._name)
                for function in _on_load:
                    function()
        return self._loaded


def on_load(function: Callable[[], None]) -> Callable[[], None]:
    """Have a function called when a part was loaded: a library with threads may have come with it."""
    _on_load.append(function)
    return function


def folder() -> Path:
    """Where SciPy is installed. Its package is not imported, which takes 12 ms, but on Windows, where that makes its libraries known to the system."""
    spec = PathFinder.find_spec("scipy") if "scipy" not in sys.modules and sys.platform != "win32" else None
    found = spec.submodule_search_locations if spec is not None else None
    return Path((found or importlib.import_module("scipy").__path__)[0])


def _extension(name: str) -> ModuleType | None:
    """A compiled module of SciPy, without the package that it is in; None where this version of SciPy has none of this name."""
    if name in sys.modules:
        return sys.modules[name]
    spec = PathFinder.find_spec(name, [str(folder().joinpath(*name.split(".")[1:-1]))])
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


blas = Part("scipy.linalg.blas", "scipy.linalg._fblas")
fft = Part("scipy.fft", "scipy.fft._pocketfft.pypocketfft")
lapack = Part("scipy.linalg.lapack", "scipy.linalg._flapack")
linalg = Part("scipy.linalg")
sparse = Part("scipy.sparse")
sparsetools = Part("scipy.sparse._sparsetools", "scipy.sparse._sparsetools")
special = Part("scipy.special")
ufuncs = Part("scipy.special", "scipy.special._special_ufuncs")

_PACKAGE = __name__.partition(".")[0]
_EMPTY = CellType()
_looked_through: set[FunctionType] = set()


def load_parts(kernel: Callable[..., Any]) -> None:
    """Load the parts of SciPy that a function of this package names, or that those name which it calls by name."""
    waiting: list[Any] = [kernel]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Part):
            found.load()
        elif isinstance(found, FunctionType) and found not in _looked_through and (found.__module__ or "").startswith(_PACKAGE):
            _looked_through.add(found)
            names = found.__globals__
            waiting += [names[name] for name in found.__code__.co_names if name in names]
            waiting += [cell.cell_contents for cell in found.__closure__ or () if cell != _EMPTY]
