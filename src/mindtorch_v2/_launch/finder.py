"""Imports of `torch` and everything below it, answered with this package's own modules.

`startup/sitecustomize.py` loads this file by its path when a Python starts, before anyone has imported the package. It therefore imports the
standard library alone, and of that little.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec, spec_from_file_location
from types import CodeType, FrameType, ModuleType
from typing import Any, cast

__all__ = ["API_VERSION", "PROFILE_VARIABLE", "TorchFinder", "install", "installed"]

PACKAGE = "mindtorch_v2"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
API_VERSION = "2.13.0"  # of the PyTorch whose API this is
PROFILE_VARIABLE = (
    "MINDTORCH_PROFILE"  # the environment variable of a process that is to record itself (`whole_program/children.py`)
)
METADATA = f"Metadata-Version: 2.1\nName: torch\nVersion: {API_VERSION}\nSummary: torch's API, answered by {PACKAGE}\n"


class TorchFinder:
    """A finder for `sys.meta_path`: `torch.nn` is the module `mindtorch_v2.nn` itself, under a second name.

    It stands first there, so that a PyTorch that is installed, or a folder called torch beside the program, is not asked.
    """

    stands_for_torch = True  # what `installed` looks for: a finder from another copy of this file counts

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == PACKAGE:
            # the very package that the first process runs, also where sys.path would not lead to it
            file = os.path.join(ROOT, "__init__.py")
            loader: Any = _Recorded(name, file) if PROFILE_VARIABLE in os.environ else None
            return spec_from_file_location(name, file, loader=loader, submodule_search_locations=[ROOT])
        if name != "torch" and not name.startswith("torch."):
            return None
        own_name = PACKAGE + name.removeprefix("torch")
        found = find_spec(own_name)
        if found is None:
            if _is_import(sys._getframe(1)):
                raise _no_module(name)
            return None
        spec = ModuleSpec(
            name, cast(Any, _SecondName(own_name)), origin=found.origin, is_package=found.submodule_search_locations is not None
        )
        if found.submodule_search_locations is not None:
            spec.submodule_search_locations = list(found.submodule_search_locations)
        return spec

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """What `importlib.metadata` says about torch."""
        wanted = getattr(context, "name", None)
        if wanted is None or wanted.lower() == "torch":
            from importlib.metadata import Distribution  # costly: few programs ask

            class TorchDistribution(Distribution):
                def read_text(self, filename: str) -> str | None:
                    return METADATA if filename == "METADATA" else None

                def locate_file(self, path: Any) -> Any:
                    return os.path.join(ROOT, path)

            yield TorchDistribution()

    def invalidate_caches(self) -> None:
        """Nothing is kept."""


class _Recorded(SourceFileLoader):
    """A loader of the package, in a process that is to record itself from then on."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        importlib.import_module(f"{PACKAGE}.profiler.whole_program.children").begin_in_this_process()


class _SecondName:
    """A loader that gives a module of the package, as it is."""

    def __init__(self, own_name: str) -> None:
        self.own_name = own_name
        self._own_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.own_name)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module has been executed. Importing puts the spec of the second name into it, and it keeps its own."""
        module.__spec__ = self._own_spec
        if self.own_name == PACKAGE:
            module.__name__ = "torch"  # programs compare it
            for name, loaded in list(sys.modules.items()):
                if name.startswith(f"{PACKAGE}.") and "._" not in name:
                    sys.modules.setdefault("torch" + name.removeprefix(PACKAGE), loaded)

    def get_code(self, name: str) -> CodeType | None:
        """For `python -m torch.…`."""
        spec = find_spec(self.own_name)
        return None if spec is None else spec.loader.get_code(self.own_name)  # type: ignore[union-attr]

    def get_source(self, name: str) -> str | None:
        spec = find_spec(self.own_name)
        return None if spec is None else spec.loader.get_source(self.own_name)  # type: ignore[union-attr]


def _is_import(frame: FrameType) -> bool:
    """Whether an import asks, and not `importlib.util.find_spec`, which is to answer None. `frame` is the caller of the finder."""
    asking = frame.f_back
    return asking is not None and asking.f_code.co_name == "_find_and_load_unlocked"


def _no_module(name: str) -> ModuleNotFoundError:
    from mindtorch_v2._missing import no_module  # costly: imports the whole package

    return no_module(name)


def installed() -> bool:
    """Whether imports of torch in this process lead here."""
    return any(getattr(finder, "stands_for_torch", False) for finder in sys.meta_path)


def install() -> None:
    """Have `import torch` lead here from now on."""
    if not installed():
        sys.meta_path.insert(0, TorchFinder())
