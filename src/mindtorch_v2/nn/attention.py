"""`torch.nn.attention`: which ways of computing attention may be taken."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator

from .._ops.nn import attention

__all__ = ["SDPBackend", "sdpa_kernel"]


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
