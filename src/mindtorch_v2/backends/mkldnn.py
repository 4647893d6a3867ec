"""torch.backends.mkldnn: oneDNN, which is not there. The switches keep what they are set to.

`enabled` says whether a layer of an LSTM is one operator (`mkldnn_rnn_layer`, whose kernel here is NumPy's and BLAS's) or its steps one by one, as in
torch; the others change nothing.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ._flags import checked_precision, switched

__all__ = ["allow_tf32", "deterministic", "enabled", "flags", "fp32_precision", "is_acl_available", "is_available", "set_flags"]

enabled = True
deterministic = False
allow_tf32: bool | None = None
fp32_precision = "none"


def is_available() -> bool:
    """False."""
    return False


def is_acl_available() -> bool:
    """False."""
    return False


def set_flags(
    _enabled: bool | None = None, _deterministic: bool | None = None, _allow_tf32: bool | None = None, _fp32_precision: str = "none"
) -> tuple[Any, ...]:
    """Set switches, None leaves one; returns what they were."""
    global enabled, deterministic, allow_tf32, fp32_precision
    before = (enabled, deterministic, allow_tf32, fp32_precision)
    enabled = enabled if _enabled is None else _enabled
    deterministic = deterministic if _deterministic is None else _deterministic
    allow_tf32 = allow_tf32 if _allow_tf32 is None else _allow_tf32
    fp32_precision = checked_precision(_fp32_precision, "mkldnn")
    return before


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> AbstractContextManager[None]:
    """A context with other switches."""
    precision = checked_precision(fp32_precision, "mkldnn")
    return switched(globals(), enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32, fp32_precision=precision)
