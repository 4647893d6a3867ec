"""Switches of the whole process: determinism, precision of products, denormal numbers."""

from __future__ import annotations

import builtins
import warnings
from typing import Any

from ._filling import set_filling

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

_mode = 0  # 0: off, 1: warn, 2: on
_fills_memory = True
_warn_only = False
_MODES = {"default": 0, "warn": 1, "error": 2}
_precision = "highest"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for results that do not differ between runs. Kernels here are of that kind; what torch refuses then is refused here, too."""
    global _warn_only
    for name, given in (("mode", mode), ("warn_only", warn_only)):
        if type(given) is not bool:
            position = "(position 1) " if name == "mode" else ""
            raise TypeError(
                f"_set_deterministic_algorithms(): argument '{name}' {position}must be bool, not {type(given).__name__}"
            )
    _set_mode((1 if warn_only else 2) if mode else 0)
    _warn_only = warn_only


def _set_mode(mode: builtins.int) -> None:
    global _mode
    _mode = mode
    set_filling(mode != 0 and _fills_memory)


def fills_memory() -> bool:
    """Whether new memory is filled while deterministic results are asked for."""
    return _fills_memory


def set_fills_memory(mode: bool) -> None:
    """Set that; `torch.utils.deterministic.fill_uninitialized_memory` by another name."""
    global _fills_memory
    if type(mode) is not bool:
        raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
    _fills_memory = mode
    _set_mode(_mode)


def alert_not_deterministic(name: str) -> None:
    """Refuse, or warn about, an operator whose result torch does not determine."""
    if not _mode:
        return
    message = (
        f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True"
        f"{', warn_only=True' if _mode == 1 else ''})'."
    )
    if _mode == 2:
        raise RuntimeError(
            message
            + " You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's "
            "acceptable for your application."
        )
    warnings.warn(message, UserWarning, stacklevel=3)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic results were asked for."""
    return _mode != 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether they were asked for with `warn_only=True`."""
    return _warn_only


def get_deterministic_debug_mode() -> int:
    """0 for off, 1 for warnings, 2 for errors."""
    return _mode


def set_deterministic_debug_mode(debug_mode: builtins.int | str) -> None:
    """As `use_deterministic_algorithms`, by "default", "warn", "error" or 0, 1, 2."""
    global _warn_only
    if not isinstance(debug_mode, str | builtins.int):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}")
        debug_mode = _MODES[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _set_mode(builtins.int(debug_mode))
    _warn_only = debug_mode == 1


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
