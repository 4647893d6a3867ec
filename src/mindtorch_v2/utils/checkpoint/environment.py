"""The state of a thread in which a function was called, to call it again in: random numbers, autocast, default device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..._dispatch.tls import state
from ..._random import get_rng_state, set_rng_state
from ...amp.autocast_mode import autocast
from ...amp.autocast_state import get_autocast_dtype, is_autocast_cache_enabled, is_autocast_enabled
from .settings import forked_rng

__all__ = ["Environment"]


class Environment:
    """The state of this thread when it is made."""

    def __init__(self, *, preserve_rng_state: bool) -> None:
        self._rng_state = get_rng_state() if preserve_rng_state else None
        self._autocast: dict[str, Any] = {
            "enabled": is_autocast_enabled("cpu"),
            "dtype": get_autocast_dtype("cpu"),
            "cache_enabled": is_autocast_cache_enabled(),
        }
        self._device = state.default_devices[-1] if state.default_devices else contextlib.nullcontext()

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """A context in that state. Random numbers that are drawn in it count for nobody else."""
        with forked_rng(enabled=self._rng_state is not None):
            if self._rng_state is not None:
                set_rng_state(self._rng_state)
            with autocast("cpu", **self._autocast), self._device:
                yield
