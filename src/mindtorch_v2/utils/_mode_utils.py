"""Helpers around modes."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from .._dispatch.tls import state

__all__ = ["all_same_mode", "no_dispatch"]


class no_dispatch:  # noqa: N801 - torch's name
    """Inside, neither modes nor subclasses see operators: their kernels run."""

    def __enter__(self) -> None:
        state.dispatch_override_off += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        state.dispatch_override_off -= 1


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether these are all the same mode."""
    return all(mode is modes[0] for mode in modes)
