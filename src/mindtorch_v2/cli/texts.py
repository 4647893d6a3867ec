"""Numbers as commands print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..profiler.writing import units

if TYPE_CHECKING:
    from ..profiler.device import Device

__all__ = ["flops", "idle_line", "share", "size", "time"]


def time(ns: float) -> str:
    """`12.345ms`."""
    return units.time(ns / 1000)


def share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else ""


def size(size_bytes: int) -> str:
    return units.memory(size_bytes)


def flops(count: int) -> str:
    if count <= 0:
        return ""
    factor, unit = units.flops_unit(count)
    return f"{count * factor:.3f} {unit}"


def idle_line(device: Device) -> str:
    """How much of the time a device was busy, and why it was not, in one line."""
    causes = sorted(((ns, cause) for cause, ns in device.idle_causes.items() if ns), reverse=True)
    why = ", ".join(f"{cause} {share(ns, device.span_ns)}" for ns, cause in causes)
    name = f" ({device.name})" if device.name else ""
    return f"{device.type}:{device.index}{name}: busy {device.busy_share:.1%} of {time(device.span_ns)}" + (
        f"; idle: {why}" if why else ""
    )
