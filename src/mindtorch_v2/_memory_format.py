"""Memory formats and layouts: names for the order in which a tensor's dimensions lie in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._checks import contiguous_strides

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "empty_strides",
    "is_contiguous_as",
    "layout",
    "memory_format",
    "preserve_format",
    "strided",
]


class _Named:
    """One of a few named objects, compared by identity."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return (by_name, (self.name,))


class memory_format(_Named):  # noqa: N801 - torch's spelling
    """The order of a new tensor's dimensions in memory."""

    __slots__ = ()


class layout(_Named):  # noqa: N801 - torch's spelling
    """The form of a tensor's elements: strided, coordinates and values, or compressed rows or columns. Others are names that are refused."""

    __slots__ = ()


contiguous_format = memory_format("contiguous_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
preserve_format = memory_format("preserve_format")

strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
jagged = layout("jagged")
_mkldnn = layout("_mkldnn")

FORMATS = (contiguous_format, channels_last, channels_last_3d, preserve_format)
LAYOUTS = (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged, _mkldnn)
_BY_NAME: dict[str, _Named] = {named.name: named for named in (*FORMATS, *LAYOUTS)}


def by_name(name: str) -> _Named:
    return _BY_NAME[name]


def empty_strides(shape: Sequence[int], wanted: memory_format, like: Sequence[int] | None = None) -> tuple[int, ...]:
    """The strides, in elements, of a new tensor in this format; `like` are those of the tensor to preserve."""
    if wanted is contiguous_format or (wanted is preserve_format and like is None):
        return contiguous_strides(shape)
    if wanted is preserve_format:
        assert like is not None
        return _preserved(shape, like)
    if wanted is channels_last or wanted is channels_last_3d:
        ndim = 4 if wanted is channels_last else 5
        if len(shape) != ndim:
            raise RuntimeError(f"required rank {ndim} tensor to use {wanted.name} format")
        return _in_order(shape, (0, *range(2, ndim), 1))
    raise RuntimeError(f"Unsupported memory format: {wanted}")


def _in_order(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Strides of a dense tensor whose dimensions lie in this order, outermost first."""
    strides, step = [0] * len(shape), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill their memory without gaps or overlaps, in whatever order of dimensions."""
    expected = 1
    for stride, n in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n != 1):
        if n == 0:
            return True
        if stride != expected:
            return False
        expected *= n
    return True


def _preserved(shape: Sequence[int], like: Sequence[int]) -> tuple[int, ...]:
    if is_dense(shape, like):
        return tuple(like)
    # dimensions sorted by stride; an expanded one (stride 0) stays where it is, as torch's iterator leaves it
    order = list(range(len(shape)))
    for i in range(1, len(order)):
        at = i
        for j in range(i - 1, -1, -1):
            outer, inner = like[order[j]], like[order[at]]
            if outer == 0 or inner == 0:
                continue
            if outer < inner:
                order[j], order[at] = order[at], order[j]
                at = j
            elif outer > inner:
                break
    return _in_order(shape, order)


def is_contiguous_as(shape: Sequence[int], strides: Sequence[int], wanted: memory_format) -> bool:
    """Whether the elements lie in memory as this format has them."""
    if wanted is contiguous_format or wanted is preserve_format:
        order: Sequence[int] = range(len(shape))
    elif wanted is channels_last or wanted is channels_last_3d:
        ndim = 4 if wanted is channels_last else 5
        if len(shape) != ndim:
            return False
        order = (0, *range(2, ndim), 1)
    else:
        raise TypeError(f"is_contiguous(): argument 'memory_format' must be torch.memory_format, not {type(wanted).__name__}")
    if 0 in shape:
        return wanted is contiguous_format or wanted is preserve_format or True
    expected = 1
    for dim in reversed(order):
        if shape[dim] != 1:
            if strides[dim] != expected:
                return False
            expected *= shape[dim]
    return True
