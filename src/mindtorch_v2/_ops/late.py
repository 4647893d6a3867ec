"""Operators of other families by name, found on first call: families use one another in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch import registry

__all__ = ["late"]


def late(name: str, overload: str = "default") -> Callable[..., Any]:
    """A function that calls the operator of this name, which may be declared later."""
    found: Callable[..., Any] | None = None

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal found
        if found is None:
            op = registry.find("aten::" + name, overload)
            assert op is not None and op.entry is not None, f"aten::{name}.{overload} is not declared"
            found = op.entry
        return found(*args, **kwargs)

    call.__name__ = name
    return call
