"""Whether and how a kernel is split over threads: the one place that decides it.

Waking a thread that sleeps takes 30 to 50 µs here, whatever it is woken for. A kernel
is split where it would take `WORTH_NS` on one thread; its parts are made from its size, its cost and the number of threads alone, never from
how busy the machine is, so that a result does not depend on chance. NumPy releases the interpreter's lock inside its loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...._thread_pool import Part, Work, run
from ...._threads import get_num_threads
from .floating_errors import IGNORED, state_variable

__all__ = ["copied", "over", "over_elements", "split_function", "split_in_place", "split_ufunc"]

Array = np.ndarray[Any, Any]

WORTH_NS = 100_000
_PART_NS = 100_000  # so that what a part costs, 2 to 5 µs with what it finds in no cache, is little beside it
# A thread that begins late leaves one to the others. Softmax of a million elements in eight parts takes a tenth longer than in four.
_PARTS_OF_A_THREAD = 2


def over(n: int, ns_each: float, work: Work) -> None:
    """Call `work(begin, end)` for ranges that make up `range(n)`, on several threads if that pays; each of the n takes so many nanoseconds.

    The ranges may be worked on at the same time and in any order. When this returns or raises, none is.
    """
    threads = get_num_threads()
    parts = parts_of(n, ns_each, threads)
    if len(parts) == 1:
        work(0, n)
        return
    before = state_variable.get()
    try:
        state_variable.set(IGNORED)  # the calling thread's; the others have it always
        run(work, parts, threads)
    finally:
        state_variable.set(before)


def parts_of(n: int, ns_each: float, threads: int) -> list[Part]:
    """The ranges that work is split into, one if it is not worth it."""
    total = n * ns_each
    if threads == 1 or n < 2 or total < WORTH_NS:
        return [(0, n)]
    step = -(-n // max(2, min(n, _PARTS_OF_A_THREAD * threads, int(total / _PART_NS))))
    return [(begin, min(begin + step, n)) for begin in range(0, n, step)]


def pays(n: int, ns_each: float) -> bool:
    return n * ns_each >= WORTH_NS and n > 1


# --- costs ------------------------------------------------------------------------------------------------------------

# Nanoseconds for an element of four bytes. Kernels that only read and write are bound by memory; others compute.
_LIGHT, _COMPUTED = 0.1, 0.45
_LIGHT_UFUNCS = frozenset(
    "absolute add bitwise_and bitwise_or bitwise_xor conjugate equal fmax fmin greater greater_equal invert less less_equal logical_and logical_not "
    "logical_or logical_xor maximum minimum multiply negative not_equal positive subtract".split()
)
_EMULATED = 8  # times as slow: half-precision numbers are converted one by one


def ns_of(kernel: Callable[..., Any]) -> float:
    """What an element costs, about."""
    if isinstance(kernel, np.ufunc):
        return _LIGHT if kernel.__name__ in _LIGHT_UFUNCS else _COMPUTED
    return _COMPUTED


def _scaled(ns: float, x: Array) -> float:
    """The cost for elements of this array's dtype."""
    return ns * _EMULATED if x.itemsize == 2 and x.dtype.kind not in "iu" else ns * max(x.itemsize, 1) / 4


# --- kernels of one element after the other ----------------------------------------------------------------------------


def split_ufunc(ufunc: np.ufunc) -> Callable[..., Array]:
    """A function that computes what the ufunc does, on several threads if that pays."""
    ns = ns_of(ufunc)

    def call(*operands: Array, out: Array | None = None, casting: Any = "same_kind") -> Array:
        shape = operands[0].shape if out is None else out.shape
        for x in operands:
            if x.shape != shape and out is None:
                shape = np.broadcast_shapes(*(x.shape for x in operands))
                break
        widest = max(operands, key=_itemsize)
        if not pays(math.prod(shape), _scaled(ns, widest)):
            return ufunc(*operands, casting=casting) if out is None else ufunc(*operands, out=out, casting=casting)
        if out is None:
            out = _result_of(ufunc, operands, shape)
        elif any(_overlaps(x, out) for x in operands) or np.broadcast_shapes(*(x.shape for x in operands), shape) != shape:
            return ufunc(*operands, out=out, casting=casting)
        pieces, n = sliced((*operands, out))
        per_piece = _scaled(ns, widest) * out.size / n

        def work(begin: int, end: int) -> None:
            *given, target = pieces(begin, end)
            ufunc(*given, out=target, casting=casting)

        over(n, per_piece, work)
        return out

    return call


def _itemsize(x: Array) -> int:
    return x.itemsize


def _overlaps(x: Array, out: Array) -> bool:
    """Whether parts of one might be written while the same memory is read elsewhere in the other."""
    same = x.shape == out.shape and x.strides == out.strides and x.ctypes.data == out.ctypes.data
    return not same and np.may_share_memory(x, out)


def _result_of(ufunc: np.ufunc, operands: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """Memory for the ufunc's result, in the dtype and the order of dimensions that it would give it."""
    dtype = ufunc.resolve_dtypes((*(x.dtype for x in operands), None))[-1]
    if all(x.flags.c_contiguous and x.shape == shape for x in operands if x.ndim):
        return np.empty(shape, dtype)
    given: list[Any] = [*operands, None]
    flags: Any = [["readonly"]] * len(operands) + [["writeonly", "allocate"]]
    return np.nditer(given, [], flags, [*(x.dtype for x in operands), dtype], order="K").operands[-1]


def sliced(arrays: Sequence[Array]) -> tuple[Callable[[int, int], list[Array]], int]:
    """A function that gives the same range of each array, and how many places there are. The last array has the full shape.

    Contiguous arrays are cut anywhere; others along one dimension, the outermost in memory that has enough places.
    """
    full = arrays[-1]
    if all(x.flags.c_contiguous and (x.shape == full.shape or x.size == 1) for x in arrays):
        flat = [x.reshape(-1) if x.shape == full.shape else x.reshape(()) for x in arrays]
        return lambda begin, end: [x[begin:end] if x.ndim else x for x in flat], full.size
    outermost_first = sorted(range(full.ndim), key=lambda d: -abs(full.strides[d]))
    enough = [d for d in outermost_first if full.shape[d] >= 16]
    axis = enough[0] if enough else max(outermost_first, key=lambda d: full.shape[d])
    return lambda begin, end: [_along(x, full.ndim, axis, begin, end) for x in arrays], full.shape[axis]


def _along(x: Array, ndim: int, axis: int, begin: int, end: int) -> Array:
    own = axis - (ndim - x.ndim)
    if own < 0 or x.shape[own] == 1:
        return x  # the same for all
    return x[(slice(None),) * own + (slice(begin, end),)]


def split_function(kernel: Callable[..., Any], *, ns: float = _COMPUTED) -> Callable[..., Any]:
    """A function that computes what a kernel of one element after the other does, on several threads if that pays."""

    def call(*arguments: Any) -> Any:
        arrays = [a for a in arguments if isinstance(a, np.ndarray) and a.ndim]
        cost = _cost_of_parallel(arrays, ns)
        if not cost:
            return kernel(*arguments)
        of = _on_ranges(kernel, arguments)
        try:
            dtype = of(0, 1).dtype
        except Exception:
            return kernel(*arguments)  # which says what is wrong with the whole
        out = np.empty(arrays[0].shape, dtype)
        written = out.reshape(-1)

        def work(begin: int, end: int) -> None:
            written[begin:end] = of(begin, end)

        over(out.size, cost, work)
        return out

    return call


def split_in_place(kernel: Callable[..., Any], *, ns: float = _LIGHT) -> Callable[..., Any]:
    """The same for a kernel that writes to its first argument."""

    def call(*arguments: Any) -> None:
        arrays = [a for a in arguments if isinstance(a, np.ndarray) and a.ndim]
        cost = _cost_of_parallel(arrays, ns)
        if not cost or any(_overlaps(x, arrays[0]) for x in arrays[1:]) or not arrays[0].flags.writeable:
            kernel(*arguments)
        else:
            over(arrays[0].size, cost, _on_ranges(kernel, arguments))

    return call


def over_elements(step: Callable[..., Any], arrays: Sequence[Array | None], ns: float) -> None:
    """Call `step(*parts)` for parts of these arrays at the same places, which it may write to; whole if that does not pay."""
    split_in_place(step, ns=ns)(*arrays)


def _cost_of_parallel(arrays: Sequence[Array], ns: float) -> float:
    """What an element of these arrays costs, if they can be cut at the same places, and it pays; else 0."""
    if not arrays or not all(a.flags.c_contiguous and a.shape == arrays[0].shape for a in arrays):
        return 0
    cost = _scaled(ns, max(arrays, key=_itemsize))
    return cost if pays(arrays[0].size, cost) else 0


def _on_ranges(kernel: Callable[..., Any], arguments: Sequence[Any]) -> Callable[[int, int], Any]:
    """The kernel on a range of all arrays; numbers, and arrays of one, are the same for all."""
    flat = [a.reshape(-1) if isinstance(a, np.ndarray) and a.ndim else a for a in arguments]
    is_cut = [isinstance(a, np.ndarray) and a.ndim > 0 for a in arguments]
    return lambda begin, end: kernel(*[a[begin:end] if cut else a for a, cut in zip(flat, is_cut, strict=True)])


def copied(source: Array, out: Array) -> Array:
    """`out`, new memory of the same shape, with the elements of another array."""
    pieces, n = sliced((source, out))

    def work(begin: int, end: int) -> None:
        given, target = pieces(begin, end)
        np.copyto(target, given, casting="unsafe")

    over(n, _scaled(_LIGHT, max(source, out, key=_itemsize)) * out.size / max(n, 1), work)
    return out
