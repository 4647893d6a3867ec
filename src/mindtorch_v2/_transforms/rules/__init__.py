"""Batching rules, by family. An operator without one runs sample by sample (`loop`), or as what it is composed of."""

from . import (
    creation,
    dimensions,
    images,
    indexing,
    linear_algebra,
    losses,
    normalization,
    pointwise,
    products,
    random,
    reductions,
    samples,
    views,
)

__all__ = [
    "creation",
    "dimensions",
    "images",
    "indexing",
    "linear_algebra",
    "losses",
    "normalization",
    "pointwise",
    "products",
    "random",
    "reductions",
    "samples",
    "views",
]
