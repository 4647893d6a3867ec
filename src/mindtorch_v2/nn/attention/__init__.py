"""`torch.nn.attention`: which ways of computing attention may be taken."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator

from ..._ops.nn import attention
from ..._refusals import refuse

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS",
    "SDPBackend",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """The ways of computing scaled dot product attention. On the CPU there are two: as operators, and in blocks."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[None]:
    """Allow only these ways inside. The CPU has one way besides plain operators, so `set_priority` has nothing to order."""
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(chosen, list) or not all(isinstance(b, SDPBackend) for b in chosen):
        raise AssertionError(
            f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}"
        )
    before = set(attention.allowed)
    attention.allowed.clear()
    attention.allowed.update(int(b) for b in chosen)
    try:
        yield
    finally:
        attention.allowed.clear()
        attention.allowed.update(before)


def list_flash_attention_impls() -> list[str]:
    """None: other ways of computing attention in blocks are for GPUs."""
    return []


def current_flash_attention_impl() -> None:
    """None: the runtime's own."""


def restore_flash_attention_impl() -> None:
    """Nothing to restore."""


def activate_flash_attention_impl(impl: str) -> None:
    """Refused: there is no other way."""
    refuse(f"activate_flash_attention_impl({impl!r})", "other ways of computing attention in blocks are for GPUs")


def register_flash_attention_impl(impl: str, *, register_fn: object = None) -> None:
    """Refused: there is no other way."""
    refuse(f"register_flash_attention_impl({impl!r})", "other ways of computing attention in blocks are for GPUs")
