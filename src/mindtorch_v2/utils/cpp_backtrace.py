"""torch.utils.cpp_backtrace: stacks of C++, of which there is none."""

from __future__ import annotations

__all__ = ["get_cpp_backtrace"]


def get_cpp_backtrace(frames_to_skip: int = 0, maximum_number_of_frames: int = 64) -> str:
    """An empty text: the package is pure Python, and Python's own stack is in `traceback`."""
    return ""
