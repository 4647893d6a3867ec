"""torch.backends.cuda: libraries for GPUs, which are not there, and the ways of computing attention, which are switched here for all devices."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

from .._ops.nn import attention

__all__ = [
    "cuBLASModule",
    "cudnn_sdp_enabled",
    "cufft_plan_cache",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "sdp_kernel",
]

_MATH, _FLASH, _EFFICIENT, _CUDNN = 0, 1, 2, 3  # as in torch.nn.attention.SDPBackend


def is_built() -> bool:
    """False: there is no CUDA."""
    return False


def is_flash_attention_available() -> bool:
    """False: CUDA's is not there."""
    return False


class cuBLASModule:  # noqa: N801 - torch's spelling
    """Switches of products on a GPU. They keep what they are set to, and change nothing."""

    allow_tf32: bool
    allow_fp16_reduced_precision_reduction: bool
    allow_bf16_reduced_precision_reduction: bool
    allow_fp16_accumulation: bool
    fp32_precision: str

    def __init__(self) -> None:
        vars(self).update(
            allow_tf32=False,
            allow_fp16_reduced_precision_reduction=True,
            allow_bf16_reduced_precision_reduction=True,
            allow_fp16_accumulation=False,
            fp32_precision="none",
        )

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in vars(self):
            raise AttributeError(f"Unknown attribute {name}")
        vars(self)[name] = value


class _PlanCache:
    """The cache of Fourier transforms on a GPU: asking for anything needs one."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AssertionError("Torch not compiled with CUDA enabled")


matmul = cuBLASModule()
cufft_plan_cache = _PlanCache()


class _LinalgBackend(enum.Enum):
    """Libraries of a GPU for linear algebra."""

    Default = 0
    Cusolver = 1
    Magma = 2


def preferred_linalg_library(backend: str | _LinalgBackend | None = None) -> _LinalgBackend:
    """The library that linear algebra on a GPU would use; as in a PyTorch without CUDA, none can be chosen."""
    if backend is None:
        return _LinalgBackend.Default
    if not isinstance(backend, str | _LinalgBackend):
        raise RuntimeError("Unknown input value type.")
    names = {"default": _LinalgBackend.Default, "cusolver": _LinalgBackend.Cusolver, "magma": _LinalgBackend.Magma}
    if isinstance(backend, str) and backend not in names:
        raise RuntimeError(f"Unknown input value. Choose from: {', '.join(names)}.")
    chosen = names[backend] if isinstance(backend, str) else backend
    if chosen is not _LinalgBackend.Default:
        library = {_LinalgBackend.Cusolver: "cuSOLVER", _LinalgBackend.Magma: "MAGMA"}[chosen]
        raise RuntimeError(f"Cannot set preferred backend to {library} if PyTorch has not been compiled with {library}.")
    return chosen


class _BlasBackend(enum.Enum):
    """Libraries of a GPU for products of matrices."""

    Default = 0
    Cublas = 1
    Cublaslt = 2
    Ck = 3


def preferred_blas_library(backend: str | _BlasBackend | None = None) -> _BlasBackend:
    """The library that products on a GPU would use; of one that is not there, no other can be chosen than PyTorch's first."""
    names = {"default": _BlasBackend.Cublas, "cublas": _BlasBackend.Cublas, "hipblas": _BlasBackend.Cublas}
    if isinstance(backend, str) and backend not in names:
        raise RuntimeError(f"Unknown input value. Choose from: {', '.join(names)}; there is no GPU here")
    return _BlasBackend.Cublas


def _enable(way: int, enabled: bool) -> None:
    (attention.allowed.add if enabled else attention.allowed.discard)(way)


def enable_flash_sdp(enabled: bool) -> None:
    """Allow attention in blocks."""
    _enable(_FLASH, enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allow a way that the CPU does not have."""
    _enable(_EFFICIENT, enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Allow attention as plain operators."""
    _enable(_MATH, enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allow a way that the CPU does not have."""
    _enable(_CUDNN, enabled)


def flash_sdp_enabled() -> bool:
    """Whether attention in blocks is allowed."""
    return _FLASH in attention.allowed


def mem_efficient_sdp_enabled() -> bool:
    """Whether that way is allowed."""
    return _EFFICIENT in attention.allowed


def math_sdp_enabled() -> bool:
    """Whether attention as plain operators is allowed."""
    return _MATH in attention.allowed


def cudnn_sdp_enabled() -> bool:
    """Whether that way is allowed."""
    return _CUDNN in attention.allowed


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """A context in which only these ways are allowed; `torch.nn.attention.sdpa_kernel` is newer."""
    before = set(attention.allowed)
    for way, enabled in ((_FLASH, enable_flash), (_MATH, enable_math), (_EFFICIENT, enable_mem_efficient), (_CUDNN, enable_cudnn)):
        _enable(way, enabled)
    try:
        yield
    finally:
        attention.allowed.clear()
        attention.allowed.update(before)


_reduced_math = False


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether attention as plain operators may add in half precision."""
    return _reduced_math


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Allow that; the CPU adds in float32 all the same."""
    global _reduced_math
    _reduced_math = enabled


def is_ck_sdpa_available() -> bool:
    """False."""
    return False


def can_use_flash_attention(params: object, debug: bool = False) -> bool:
    """False: it is asked for CUDA."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention
