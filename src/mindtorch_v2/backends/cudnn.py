"""torch.backends.cudnn: a library for GPUs, which is not there. The switches keep what they are set to, and change nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from .. import _dtype
from ._flags import checked_precision, switched

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = [
    "allow_tf32",
    "benchmark",
    "benchmark_limit",
    "deterministic",
    "enabled",
    "flags",
    "is_acceptable",
    "is_available",
    "set_flags",
    "version",
]

CUDNN_TENSOR_DTYPES = {_dtype.float16, _dtype.float32, _dtype.float64}
enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True
fp32_precision = "none"


def is_available() -> bool:
    """False."""
    return False


def version() -> int | None:
    """None."""
    return None


def is_acceptable(tensor: Tensor) -> bool:
    """False: no tensor is computed by cuDNN."""
    return False


def set_flags(
    _enabled: bool | None = None, _benchmark: bool | None = None, _benchmark_limit: int | None = None, _deterministic: bool | None = None, _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[Any, ...]:  # fmt: skip
    """Set switches, None leaves one; returns what they were."""
    before = (enabled, benchmark, None, deterministic, allow_tf32, fp32_precision)
    given = {
        "enabled": _enabled,
        "benchmark": _benchmark,
        "deterministic": _deterministic,
        "allow_tf32": _allow_tf32,
        "fp32_precision": checked_precision(_fp32_precision, "cuda", without="bf16"),
    }
    globals().update({name: value for name, value in given.items() if value is not None})
    return before


def flags(
    enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10, deterministic: bool = False, allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> AbstractContextManager[None]:  # fmt: skip
    """A context with other switches. There is no cuDNN whose benchmarks a limit could end."""
    precision = checked_precision(fp32_precision, "cuda", without="bf16")
    return switched(
        globals(),
        enabled=enabled,
        benchmark=benchmark,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=precision,
    )
