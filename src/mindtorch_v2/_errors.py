"""torch's exceptions, for programs that catch them. Memory that cannot be had raises here what allocating raises elsewhere."""

from __future__ import annotations

__all__ = ["AcceleratorError", "OutOfMemoryError"]


class OutOfMemoryError(RuntimeError):
    """A device has no memory left; never raised, for there is no device beside the CPU."""


class AcceleratorError(RuntimeError):
    """An error of a device; never raised, for there is no device beside the CPU."""


OutOfMemoryError.__module__ = AcceleratorError.__module__ = "torch"
