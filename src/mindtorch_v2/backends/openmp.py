"""torch.backends.openmp."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether a library that is loaded runs its threads with OpenMP."""
    from threadpoolctl import threadpool_info  # costly: looks at the loaded libraries

    return any(library["user_api"] == "openmp" for library in threadpool_info())
