"""torch.cuda.profiler, which starts and stops CUDA's own profiler: each of these raises, as in a PyTorch without CUDA."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._absent_device import without_device

__all__ = ["profile", "start", "stop"]

globals().update(without_device("Torch not compiled with CUDA enabled", "start stop"))


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Record with CUDA's profiler inside of the block."""
    try:
        start()
        yield
    finally:
        stop()


if TYPE_CHECKING:

    def start(*args: Any, **kwargs: Any) -> Any: ...
    def stop(*args: Any, **kwargs: Any) -> Any: ...
