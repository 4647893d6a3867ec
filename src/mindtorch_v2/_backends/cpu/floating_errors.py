"""How NumPy's floating-point warnings (division by zero, overflow, invalid values) are kept from users, as torch has none.

`np.seterr` would silence the user's own NumPy too, and `np.errstate` costs 1.3 µs, more than a small operator. Two cheaper ways:

- A ufunc called straight from a generated function needs nothing. CPython drops a warning whose module is None before it
  looks at any filter, and generated functions have `__name__ = None` in their globals (see `dispatcher._compile`).
- Kernels written in Python have frames of their own. Around them the context variable behind `errstate` is set and reset
  directly, for 0.1 µs. It belongs to the current context, so other threads and tasks do not notice.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["IGNORED", "quiet", "state_variable"]


def _ignoring_state() -> tuple[contextvars.ContextVar[Any], Any]:
    """NumPy's context variable, and its value while everything is ignored. The variable has no public name."""
    np.seterr(all="ignore")
    context = contextvars.copy_context()
    for variable, value in context.items():
        if variable.name == "numpy.ufunc.extobj":
            return variable, value
    raise ImportError(f"NumPy {np.__version__} keeps its floating-point error state elsewhere; use NumPy 2")


state_variable, IGNORED = contextvars.copy_context().run(_ignoring_state)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No floating-point warnings inside: `np.errstate(all="ignore")`, for code off the hot path."""
    token = state_variable.set(IGNORED)
    try:
        yield
    finally:
        state_variable.reset(token)
