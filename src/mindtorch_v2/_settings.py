"""Switches of the whole process: determinism, precision of products, denormal numbers."""

from __future__ import annotations

import builtins
import warnings
from typing import Any

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "use_deterministic_algorithms",
]

# 0: off, 1: warn, 2: on. Kernels give the same result for the same input in either.
_mode = 0
_MODES = {"default": 0, "warn": 1, "error": 2}
_precision = "highest"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for results that do not differ between runs. Every kernel here is of that kind, so that nothing changes."""
    global _mode
    for name, given in (("mode", mode), ("warn_only", warn_only)):
        if type(given) is not bool:
            position = "(position 1) " if name == "mode" else ""
            raise TypeError(
                f"_set_deterministic_algorithms(): argument '{name}' {position}must be bool, not {type(given).__name__}"
            )
    _mode = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic results were asked for."""
    return _mode != 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether they were asked for with `warn_only=True`."""
    return _mode == 1


def get_deterministic_debug_mode() -> int:
    """0 for off, 1 for warnings, 2 for errors."""
    return _mode


def set_deterministic_debug_mode(debug_mode: builtins.int | str) -> None:
    """As `use_deterministic_algorithms`, by "default", "warn", "error" or 0, 1, 2."""
    global _mode
    if not isinstance(debug_mode, str | builtins.int):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}")
        debug_mode = _MODES[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _mode = builtins.int(debug_mode)


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of float32 to be computed with less precision. They are computed in float32 all the same."""
    global _precision
    if precision in ("highest", "high", "medium"):
        _precision = precision
    else:
        message = (
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call has no effect."
        )
        warnings.warn(message, stacklevel=2)


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was given last."""
    return _precision


def set_flush_denormal(mode: Any, /) -> bool:
    """False: NumPy computes with denormal numbers, and that cannot be changed here."""
    return False
