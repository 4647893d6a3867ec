"""Decorators that tell a logger of failed operations."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from .logging_handlers import _log_handlers

__all__: list[str] = []

F = TypeVar("F", bound=Callable[..., Any])
_c10d_logger = logging.getLogger("c10d-default")
_c10d_logger.addHandler(_log_handlers["default"])
_c10d_logger.propagate = False


def _exception_logger(function: F) -> F:
    """Have what a function raises told to the logger, too."""

    @functools.wraps(function)
    def logged(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            _c10d_logger.debug("%s failed: %r", function.__name__, error)
            raise

    return logged  # type: ignore[return-value]


def _time_logger(function: F) -> F:
    """The function as it is: the profiler has its time."""
    return function
