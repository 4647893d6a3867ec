"""torch._VF: operators as PyTorch's C++ has them, under the same names as in `torch`."""  # noqa: N999 - the name is PyTorch's

from __future__ import annotations

from typing import Any

from ._functions import functions


def __getattr__(name: str) -> Any:
    found = functions.get(name)
    if found is None:
        raise AttributeError(f"module 'torch._VF' has no attribute {name!r}")
    return found
