"""torch.__config__: what the package is built on."""

from __future__ import annotations

import platform

import numpy

from ._launch.finder import API_VERSION
from ._threads import parallel_info

__all__ = ["parallel_info", "show"]


def show() -> str:
    """The versions below the package, for people to read."""
    return f"mindtorch_v2 with the API of PyTorch {API_VERSION}, on:\n  - Python {platform.python_version()}\n  - NumPy {numpy.__version__}\n"
