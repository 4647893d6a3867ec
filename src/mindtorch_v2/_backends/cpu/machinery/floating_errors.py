"""How NumPy's floating-point warnings (division by zero, overflow, invalid values) are kept from users, as torch has none.

`np.seterr` would silence the user's own NumPy too, and `np.errstate` costs 1.3 µs, more than a small operator. Cheaper ways:

- A ufunc called straight from a generated function needs nothing. CPython drops a warning whose module is None before it
  looks at any filter, and generated functions of pointwise operators have `__name__ = None` in their globals (see
  `dispatcher._compile`).
- The same holds for kernels marked `@silent`, which get such globals of their own.
- Other kernels written in Python have frames of their own. Around them the context variable behind `errstate` is set and reset
  directly, for 0.1 µs. It belongs to the current context, so other threads and tasks do not notice.
"""

from __future__ import annotations

import contextlib
import contextvars
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["DIVISION_RAISES", "IGNORED", "quiet", "silent", "state_variable"]


def _state_with(**modes: Any) -> tuple[contextvars.ContextVar[Any], Any]:
    """NumPy's context variable, and its value in these modes. The variable has no public name."""
    np.seterr(**modes)
    context = contextvars.copy_context()
    for variable, value in context.items():
        if variable.name == "numpy.ufunc.extobj":
            return variable, value
    raise ImportError(f"NumPy {np.__version__} keeps its floating-point error state elsewhere; use NumPy 2")


state_variable, IGNORED = contextvars.copy_context().run(_state_with, all="ignore")
DIVISION_RAISES = contextvars.copy_context().run(_state_with, divide="raise", over="ignore", under="ignore", invalid="ignore")[1]
SILENT: set[Callable[..., Any]] = set()


def silent(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose warnings are dropped without a context: for hot ones that call nothing but ufuncs and methods.

    What it names must be defined above it: its globals are a copy, without the module's name.
    """
    assert isinstance(function, types.FunctionType)
    names = {**function.__globals__, "__name__": None}
    clone = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    clone.__doc__, clone.__module__ = function.__doc__, function.__module__
    SILENT.add(clone)
    return clone


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No floating-point warnings inside, for code off the hot path.

    The state is changed inside of `try`, here and elsewhere: a signal's handler may raise after any call, and `np.errstate`, which is Python too, would then leave it changed.
    """
    before = state_variable.get()
    try:
        state_variable.set(IGNORED)
        yield
    finally:
        state_variable.set(before)
