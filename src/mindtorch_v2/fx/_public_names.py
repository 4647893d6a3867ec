"""The names under which torch offers its functions."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from typing import Any

from .. import _missing

__all__ = ["public_name"]

_NAMESPACES = ("nn.functional", "", "linalg", "fft", "special", "fx._symbolic_trace", "utils.checkpoint")
_names: dict[int, tuple[Any, str]] = {}


def public_name(function: Callable[..., Any]) -> str | None:
    """The name of a function of torch, as `torch.nn.functional.relu`; None for other functions."""
    if not _names:
        _read()
    known = _names.get(id(function))
    return known[1] if known is not None and known[0] is function else None


def _read() -> None:
    package, functional = (importlib.import_module(f"{_missing.PACKAGE}{path}") for path in ("", ".nn.functional"))
    cpp = importlib.import_module(f"{_missing.PACKAGE}._C._nn")
    for path in _NAMESPACES:
        module = importlib.import_module(f"{_missing.PACKAGE}.{path}" if path else _missing.PACKAGE)
        for name in [*dir(module)] if path == "nn.functional" else [*vars(module)]:  # the former are loaded when they are asked for
            value = getattr(module, name, None)
            if callable(value) and not isinstance(value, type | types.ModuleType) and not name.startswith("__"):
                where = f".{path}" if path else ""
                known = name
                if path == "nn.functional" and name in functional._OPERATORS:  # torch: these are functions of `torch` or of C++
                    inner = functional._OPERATORS[name]
                    where, known = (
                        ("", name) if hasattr(package, name) else ("._C._nn", inner) if hasattr(cpp, inner) else (where, name)
                    )
                _names.setdefault(id(value), (value, f"torch{where}.{known}"))
