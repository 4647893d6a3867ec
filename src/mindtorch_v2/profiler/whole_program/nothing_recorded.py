"""Why a recording of a whole program is empty."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

__all__ = ["Surroundings"]

PACKAGE = __name__.partition(".")[0]


class Surroundings:
    """The state before the program ran, to tell what it imported and started."""

    def __init__(self) -> None:
        self._modules = set(sys.modules)
        self._children = _children_seen()
        self._forks = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_parent=self._count_fork)

    def _count_fork(self) -> None:
        self._forks += 1

    def why_nothing_was_recorded(self, code: CodeType | None, own_profilers: Sequence[str]) -> str:
        """The reason in a few sentences. `code` is the program, `own_profilers` are the places where it started profilers."""
        return f"Nothing was recorded: {self._reason(code, own_profilers)}\n"

    def _reason(self, code: CodeType | None, own_profilers: Sequence[str]) -> str:
        if own_profilers:
            return "no operator ran outside of the program's own profiler."
        if self._forks or _children_seen() != self._children:
            return (
                f"no operator of {PACKAGE} ran in this process. The program started others, and what runs in those is not recorded: "
                "use torch.profiler.profile there."
            )
        if "torch" in sys.modules:  # this package, under that name
            return "the program imports torch and ran no operator of it."
        if self._imports_this_package(code):
            return f"the program imports {PACKAGE} and ran no operator of it."
        return f"the program imports neither torch nor {PACKAGE}."

    def _imports_this_package(self, code: CodeType | None) -> bool:
        if code is not None and _mentions(code):
            return True
        loaded = [module for name, module in list(sys.modules.items()) if name == "__main__" or name not in self._modules]
        return any(_refers(module) for module in loaded if type(module) is ModuleType and not _is_of_package(module))


def _is_ours(name: object) -> bool:
    return isinstance(name, str) and name.partition(".")[0] == PACKAGE


def _mentions(code: CodeType) -> bool:
    """Whether code, or a function in it, has the name of the package."""
    return any(map(_is_ours, code.co_names)) or any(_mentions(inner) for inner in code.co_consts if isinstance(inner, CodeType))


def _refers(module: ModuleType) -> bool:
    """Whether a module has the package, or a function or class of it, under some name."""
    return any(map(_is_of_package, list(vars(module).values())))


def _is_of_package(value: Any) -> bool:
    kind = type(value)  # not isinstance: others' objects may do anything when they are asked
    if kind is FunctionType:
        # operators are generated and name no module
        return value is vars(sys.modules[PACKAGE]).get(value.__name__) or _is_ours(value.__module__) or _mentions(value.__code__)
    if kind is ModuleType or kind is type:
        return _is_ours(vars(value).get("__name__" if kind is ModuleType else "__module__"))
    return False


def _children_seen() -> Any:
    """Return the system's counters of processes that were started and have ended; they stay the same as long as there are none."""
    try:
        import resource  # not on every system
    except ImportError:
        return None
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_maxrss, used.ru_minflt
