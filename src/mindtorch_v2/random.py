"""torch.random: the default generator's functions, and `fork_rng`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from ._backends.backend import unavailable
from ._device import device
from ._random import default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


@contextlib.contextmanager
def fork_rng(devices: Iterable[Any] | None = None, enabled: bool = True, device_type: str = "cpu") -> Iterator[None]:
    """Inside, numbers are drawn as usual; afterwards the default generator continues as if nothing had been drawn."""
    device(device_type)  # an unknown type is refused; no device but the CPU has a generator here
    if devices is not None and list(devices):
        raise unavailable(device("npu"))
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


def thread_safe_generator() -> None:
    """None: workers of a `DataLoader` are processes, and no thread has a generator of its own."""
