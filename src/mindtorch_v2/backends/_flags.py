"""Switches of a module, set for the length of a context."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["switched"]


@contextlib.contextmanager
def switched(module: dict[str, Any], **values: Any) -> Iterator[None]:
    """Set these names of a module, and put back what they were."""
    before = {name: module[name] for name in values}
    module.update(values)
    try:
        yield
    finally:
        module.update(before)
