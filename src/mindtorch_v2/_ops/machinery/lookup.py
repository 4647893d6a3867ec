"""Operators of other families by name, found at the first use: families may then name each other in any order of import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._dispatch import registry
from ..._dispatch.resolver import make_resolver
from ..._tensor import Tensor

__all__ = ["aten"]


class _Aten:
    """`aten.name(…)` calls the operator of that name; overloads are told apart by the arguments."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        overloads = list(registry.overloads("aten::" + name).values())
        if not overloads:
            raise AttributeError(f"there is no operator aten::{name}")
        function = overloads[0].entry if len(overloads) == 1 else make_resolver(name, overloads, Tensor)
        assert function is not None
        setattr(self, name, function)
        return function


aten = _Aten()
