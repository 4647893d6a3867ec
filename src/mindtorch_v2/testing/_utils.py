"""torch.testing._utils: random numbers of a test that others do not notice."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .._random import get_rng_state, manual_seed, set_rng_state

__all__ = ["freeze_rng_state", "wrapper_set_seed"]


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """A context after which the default generator goes on as if nothing had been drawn in it."""
    kept = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(kept)


def wrapper_set_seed(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a call with the seed 42, after which the default generator goes on as before."""
    with freeze_rng_state():
        manual_seed(42)
        return op(*args, **kwargs)
