"""torch.backends.mkl."""

from __future__ import annotations

from typing import Any

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Whether the BLAS behind NumPy or SciPy is MKL."""
    from threadpoolctl import threadpool_info  # costly: looks at the loaded libraries

    return any(library["internal_api"] == "mkl" for library in threadpool_info())


class verbose:  # noqa: N801 - torch's spelling
    """A context in which MKL would print its calls; it is not asked to."""

    def __init__(self, enable: Any) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exception: object) -> None:
        pass
