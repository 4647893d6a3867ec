"""Classes and functions that the user allows in checkpoints."""

from __future__ import annotations

import pickletools
from typing import Any

from .names import torch_module

__all__ = ["add_safe_globals", "allowed_by_user", "clear_safe_globals", "get_safe_globals", "globals_of", "safe_globals"]

_safe: dict[Any, None] = {}  # a set in the order in which they were added


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow these classes and functions in checkpoints that are loaded with `weights_only=True`.

    A pair of one and a text allows it under that name.
    """
    for item in safe_globals:
        _name_of(item)  # raises for what is no pair
    _safe.update(dict.fromkeys(safe_globals))


def get_safe_globals() -> list[Any]:
    """Return what was added with `add_safe_globals`."""
    return list(_safe)


def clear_safe_globals() -> None:
    """Forget what was added with `add_safe_globals`."""
    _safe.clear()


class safe_globals:  # noqa: N801 - torch's spelling
    """Allow more classes and functions for the duration of a `with` block."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exc: Any) -> None:
        for item in self.safe_globals:
            _safe.pop(item, None)


def allowed_by_user() -> dict[str, Any]:
    """What the user allowed, by the names that checkpoints have for it."""
    return {name: item[0] if isinstance(item, tuple) else item for name, item in ((_name_of(item), item) for item in _safe)}


def _name_of(item: Any) -> str:
    if not isinstance(item, tuple):
        return f"{torch_module(item.__module__)}.{item.__qualname__}"
    if len(item) != 2:
        raise ValueError(f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(item)}")
    if not isinstance(item[1], str):
        raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(item[1])}")
    return item[1]


def globals_of(pickled: bytes) -> list[tuple[str, str]]:
    """Modules and names that a pickle refers to, without running it."""
    found: list[tuple[str, str]] = []
    texts: list[str] = []  # a name that is pushed in two texts: the last two
    memo: dict[int, Any] = {}
    argument: Any
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "GLOBAL":
            module, _, name = argument.partition(" ")
            found.append((module, name))
        elif opcode.name == "STACK_GLOBAL" and len(texts) >= 2:
            found.append((texts[-2], texts[-1]))
        elif opcode.name in ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT"):
            memo[len(memo) if argument is None else argument] = texts[-1] if texts else None
        elif opcode.name in ("BINGET", "LONG_BINGET", "GET") and isinstance(memo.get(argument), str):
            texts = [*texts[-1:], memo[argument]]
        elif isinstance(argument, str):
            texts = [*texts[-1:], argument]
    return found
