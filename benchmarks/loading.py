"""Loading data: an epoch of batches, in this process and with two workers, under both libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .timing import Comparison, compare

__all__ = ["epochs"]

SAMPLES, BATCH = 512, 32
IMAGES = np.random.default_rng(0).random((SAMPLES, 3, 64, 64), np.float32)


class Images:
    """Arrays with the number of their class, brightened at random as a data set of images would be."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, i: int) -> Any:
        return self.lib.from_numpy(IMAGES[i]) * (1 + 0.1 * self.lib.rand(1)), i % 10


def rows(lib: Any) -> Any:
    """A row of 16 numbers with a label, as tensors."""
    return lib.utils.data.TensorDataset(lib.arange(16.0 * SAMPLES).reshape(SAMPLES, 16), lib.arange(SAMPLES))


def epoch(lib: Any, dataset: Any, workers: int) -> Callable[[], object]:
    """A function that goes through one epoch; workers stay for the next."""
    loader = lib.utils.data.DataLoader(dataset, BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)

    def run() -> None:
        count = 0
        for samples, _ in loader:
            count += len(samples)
        assert count == SAMPLES

    return run


def epochs(ours: Any, torch: Any) -> list[Comparison]:
    """Epochs of 512 samples in batches of 32."""
    cases = [("rows", rows), ("images, 3×64×64", Images)]
    return [
        compare(
            f"{name}, {workers} workers",
            epoch(ours, data(ours), workers),
            epoch(torch, data(torch), workers),
            chunks=12,
            chunk_seconds=0.05,
        )
        for workers in (0, 2)
        for name, data in cases
    ]
