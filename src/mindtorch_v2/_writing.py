"""Arrays that NumPy marks read-only, and torch may write to: diagonals, and views of expanded tensors."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ._types import Array

__all__ = ["check_no_overlap", "check_partial_overlap", "make_writable", "warn_if_expanded", "writing_to_expanded"]


def make_writable(array: Array) -> None:
    """Allow writing to a view of an expanded tensor unless some of its own elements share memory.

    Expanded arrays are read-only and so are NumPy's views of them; asking here, on the first failing write, costs views nothing.
    """
    if _has_repeats(array):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    try:
        _set_writable(array)
    except ValueError:
        raise RuntimeError("unsupported operation: the tensor's memory is read-only; clone() it before writing in place") from None


def _set_writable(array: Array) -> None:
    """Set the flag, by way of read-only views in between; those keep theirs, which says that they were not asked for yet."""
    base = array.base
    if not isinstance(base, np.ndarray) or base.flags.writeable:
        array.setflags(write=True)
        return
    _set_writable(base)
    try:
        array.setflags(write=True)
    finally:
        base.setflags(write=False)


def _has_repeats(array: Array) -> bool:
    return bool(array.size) and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True))


def warn_if_expanded(array: Array, name: str, written_as: str) -> None:
    """torch: some operators write to expanded tensors, and say that they should not be asked to."""
    if not array.flags.writeable and _has_repeats(array):
        warnings.warn(
            f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. This "
            f"also applies to advanced indexing e.g. {written_as}",
            UserWarning,
            stacklevel=5,
        )


@contextmanager
def writing_to_expanded(array: Array) -> Iterator[None]:
    """Allow writing to an array inside of the block, even if some of its elements share memory."""
    if array.flags.writeable or not _has_repeats(array):
        if not array.flags.writeable:
            make_writable(array)
        yield
        return
    _set_writable(array)
    try:
        yield
    finally:
        array.setflags(write=False)


def check_partial_overlap(target: Array, source: Array) -> None:
    """Refuse to write to elements of which some are also read, at other places. torch: where either array has gaps, nothing is said."""
    if _overlap(target, source) == "partial":
        raise _overlap_error()


def check_no_overlap(target: Array, source: Array) -> None:
    """Refuse to write to elements that are also read."""
    if _overlap(target, source):
        raise _overlap_error()


def _overlap(target: Array, source: Array) -> str:
    """Whether two dense arrays have elements in common: "partial", "full" where they are the same, or ""."""
    if not (target.size and source.size and _is_dense(target) and _is_dense(source)):
        return ""
    first, second = (np.lib.array_utils.byte_bounds(x) for x in (target, source))
    if first == second:
        return "full" if target.strides == source.strides and target.itemsize == source.itemsize else "partial"
    return "" if first[0] >= second[1] or second[0] >= first[1] else "partial"


def _overlap_error() -> RuntimeError:
    return RuntimeError(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
        "Please clone() the tensor before performing the operation."
    )


def _is_dense(x: Array) -> bool:
    """Whether the elements fill their memory, each place once, in whatever order of dimensions."""
    if x.flags.forc:
        return True
    step = x.itemsize
    for stride, n in sorted((s, n) for s, n in zip(x.strides, x.shape, strict=True) if n != 1):
        if stride != step:
            return False
        step *= n
    return True
