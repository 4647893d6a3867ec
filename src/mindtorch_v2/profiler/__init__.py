"""Recording what a program does, and reading it: `torch.profiler`."""

from __future__ import annotations

__all__: list[str] = []
