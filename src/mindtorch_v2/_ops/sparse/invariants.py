"""Whether the parts of a sparse tensor fit each other."""

from __future__ import annotations

from collections.abc import Sequence

from ..._tensor import Tensor

__all__ = ["check_parts", "invariants_wanted", "is_enabled", "set_enabled"]

# None until a program says what it wants: parts are checked then, since a wrong index would be found later and at another place.
_wanted: bool | None = None


def is_enabled() -> bool:
    return _wanted is True


def set_enabled(enabled: bool | None) -> bool | None:
    """Say whether parts are checked; return what was said before."""
    global _wanted
    before, _wanted = _wanted, enabled
    return before


def invariants_wanted(argument: bool | None) -> bool:
    """Whether a constructor with this `check_invariants` checks."""
    return (_wanted is not False) if argument is None else argument


def check_parts(indices: Tensor, values: Tensor, size: Sequence[int]) -> None:
    """Raise unless a sparse tensor of this size can be made of these parts."""
    check_counts(indices, values)
    sparse_dim = indices._array.shape[0]
    dense_dim = values._array.ndim - 1
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(size)}")
    expected = [values._array.shape[0], *size[sparse_dim:]]
    if list(values._array.shape) != expected:
        raise RuntimeError(f"values has incorrect size, expected {expected}, got {list(values._array.shape)}")
    for d in range(sparse_dim):
        row = indices._array[d]
        if row.size and row.min() < 0:
            raise RuntimeError(f"found negative index {int(row.min())} for dim {d}")
        if row.size and row.max() >= size[d]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {int(row.max())}"
            )


def check_counts(indices: Tensor, values: Tensor) -> None:
    """Raise unless there is one column of coordinates for each value."""
    if indices._array.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices._array.shape)}")
    count = indices._array.shape[1]
    if values._array.ndim == 0 or values._array.shape[0] != count:
        have = values._array.shape[0] if values._array.ndim else 0
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {count}, nnz from values: {have}")
