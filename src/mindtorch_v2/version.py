"""torch.version: the version of the API, and of the device libraries that this build has: none."""

from __future__ import annotations

from ._launch.finder import API_VERSION

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__ = API_VERSION
debug = False
git_version = "unknown"
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
