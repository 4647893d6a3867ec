"""The number of threads of the BLAS that NumPy and SciPy bring along, which is OpenBLAS."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy

__all__ = ["use_one_blas_thread"]


def use_one_blas_thread() -> None:
    """Have matrix products of this process run on one thread. A BLAS from elsewhere keeps its number."""
    for library, name in _setters():
        getattr(library, name)(1)


def _setters() -> Iterator[tuple[ctypes.CDLL, str]]:
    """Each library of this process, with the name of the function that sets its number of threads."""
    for package in (np, scipy):
        folder = Path(str(package.__file__)).parent
        for path in [*folder.parent.glob(f"{folder.name}.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")]:
            try:
                library = ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
            except OSError:
                continue  # not loaded
            for name in ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads"):
                if hasattr(library, name):
                    yield library, name
