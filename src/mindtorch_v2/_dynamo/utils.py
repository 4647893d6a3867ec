"""torch._dynamo.utils: what libraries ask before they compile."""

from __future__ import annotations

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """False: nothing is compiled."""
    return False
