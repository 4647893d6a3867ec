"""Large kernels on one thread and on two, ours and torch's. Two threads mean something on an idle machine only, so the load is printed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .timing import compare

__all__ = ["kernels"]

SIZES = {"1M": (1024, 1024), "4M": (2048, 2048)}
KERNELS: dict[str, Callable[[Any, Any], object]] = {
    "x + x": lambda lib, x: x + x,
    "exp": lambda lib, x: x.exp(),
    "gelu": lambda lib, x: lib.nn.functional.gelu(x),
    "clone": lambda lib, x: x.clone(),
    "to float64": lambda lib, x: x.to(lib.float64),
    "sum": lambda lib, x: x.sum(),
    "sum of columns": lambda lib, x: x.sum(0),
    "softmax": lambda lib, x: x.softmax(1),
    "layer_norm": lambda lib, x: lib.nn.functional.layer_norm(x, x.shape[1:]),
    "x @ x": lambda lib, x: x @ x,
}


@dataclass(frozen=True)
class Scaling:
    """Microseconds on one thread and on two."""

    name: str
    ours: tuple[float, float]
    theirs: tuple[float, float]

    def cells(self) -> dict[str, str]:
        return {
            "": self.name,
            "ours, 1": f"{self.ours[0]:.0f}",
            "ours, 2": f"{self.ours[1]:.0f}",
            "torch, 1": f"{self.theirs[0]:.0f}",
            "torch, 2": f"{self.theirs[1]:.0f}",
            " ": "µs",
            "gain": f"{self.ours[0] / self.ours[1]:.2f}",
            "torch's gain": f"{self.theirs[0] / self.theirs[1]:.2f}",
            "ratio of 2": f"{self.ours[1] / self.theirs[1]:.2f}",
        }


def _on(
    threads: int, name: str, run: Callable[[Any, Any], object], ours: tuple[Any, Any], torch: tuple[Any, Any]
) -> tuple[float, float]:
    for lib, _ in (ours, torch):
        lib.set_num_threads(threads)
    found = compare(name, lambda: run(*ours), lambda: run(*torch), chunks=20)
    return found.ours, found.theirs


def kernels(ours: Any, torch: Any) -> list[Scaling]:
    print(f"\nload of the machine: {os.getloadavg()[0]:.2f} on {os.cpu_count()} processors")
    before = ours.get_num_threads(), torch.get_num_threads()
    rows = []
    for size, shape in SIZES.items():
        x, y = ours.randn(shape), torch.randn(shape)
        for kernel, run in KERNELS.items():
            name = f"{kernel}, {size}"
            one, two = (_on(n, name, run, (ours, x), (torch, y)) for n in (1, 2))
            rows.append(Scaling(name, (one[0], two[0]), (one[1], two[1])))
    ours.set_num_threads(before[0])
    torch.set_num_threads(before[1])
    return rows
