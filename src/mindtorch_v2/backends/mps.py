"""torch.backends.mps: Apple's GPUs, which are not used."""

from __future__ import annotations

__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built() -> bool:
    """False."""
    return False


def is_available() -> bool:
    """False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Needs the device."""
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Needs the device."""
    return is_macos_or_newer(13, minor)
