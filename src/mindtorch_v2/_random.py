"""Random numbers: MT19937 as torch's CPU generator draws from it."""

from __future__ import annotations

from typing import Any

__all__ = ["manual_seed"]


def manual_seed(seed: int) -> Any:
    """Seed the default generator."""
