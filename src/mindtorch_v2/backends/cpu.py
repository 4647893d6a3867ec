"""torch.backends.cpu."""

from __future__ import annotations

from numpy._core._multiarray_umath import __cpu_features__ as _features  # type: ignore[import-not-found]

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The widest instructions that NumPy's loops use here: "AVX512", "AVX2" or "DEFAULT"."""
    if _features.get("AVX512_SKX"):
        return "AVX512"
    return "AVX2" if _features.get("AVX2") and _features.get("FMA3") else "DEFAULT"
