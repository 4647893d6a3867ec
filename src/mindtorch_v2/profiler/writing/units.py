"""Times, shares, sizes and operations as text."""

from __future__ import annotations

import math

__all__ = ["check_time_unit", "flops_unit", "memory", "share", "time", "time_text"]

_US_PER = {"s": 1_000_000.0, "ms": 1000.0, "us": 1.0}
_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_SIZES = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"))


def time(time_us: float, unit: str | None = None) -> str:
    """`12.345ms`, in the largest unit that leaves a whole part, or in the given one."""
    if unit not in _US_PER:  # torch: any other unit means none
        unit = "s" if time_us >= _US_PER["s"] else "ms" if time_us >= _US_PER["ms"] else "us"
    return f"{time_us / _US_PER[unit]:.3f}{unit}"


def check_time_unit(unit: str | None) -> None:
    if unit is not None and unit not in _US_PER:
        raise ValueError(f"time_unit takes {', '.join(map(repr, _US_PER))} or None for what suits each time; got {unit!r}")


def share(part: float, whole: float) -> str:
    """`12.34%`."""
    if whole == 0:
        if part != 0:
            raise AssertionError(f"Expected time_us == 0 but got {part}")
        return "NaN"
    return f"{part * 100.0 / whole:.2f}%"


def memory(size_bytes: int) -> str:
    """`12.34 MB`; sizes freed are negative."""
    for size, unit in _SIZES:
        if abs(size_bytes) >= size:
            return f"{size_bytes * 1.0 / size:.2f} {unit}"
    return f"{size_bytes} B"


def flops_unit(flops: float) -> tuple[float, str]:
    """The factor and the name of the unit that suits a number of operations."""
    if flops <= 0:
        raise AssertionError(f"Expected flops to be positive, but got {flops}")
    power = int(max(0.0, min(math.log10(flops) / 3, len(_FLOPS) - 1)))
    return pow(10, power * -3.0), _FLOPS[power]


def time_text(name: str) -> property:
    """A property that gives the time of another attribute as text."""
    return property(lambda self: time(getattr(self, name)))
