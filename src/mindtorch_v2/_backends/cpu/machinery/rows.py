"""Kernels that compute each row by itself, and reductions: normalisations along dimensions, pooling of images, batches of products, sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...._dispatch.op import parameter_names
from .parallel import over, pays

__all__ = [
    "before_dim",
    "before_images",
    "before_matrices",
    "before_normalized",
    "before_volumes",
    "split_associative",
    "split_channels",
    "split_mean",
    "split_reduction",
    "split_rows",
    "split_samples",
]

Array = np.ndarray[Any, Any]
Kernel = Callable[..., Any]
LeadOf = Callable[[dict[str, Any], int], int]  # from the arguments by name and the number of dimensions


def before_dim(arguments: dict[str, Any], ndim: int) -> int:
    """How many dimensions come before those that a kernel goes along."""
    dims = _dims(arguments["dim"], ndim)
    return min(dims) if dims else 0


def before_images(arguments: dict[str, Any], ndim: int) -> int:
    """Channels, and samples of channels; anything else is refused by the kernel."""
    return ndim - 2 if ndim in (3, 4) else 0


def before_volumes(arguments: dict[str, Any], ndim: int) -> int:
    return ndim - 3 if ndim in (4, 5) else 0


def before_matrices(arguments: dict[str, Any], ndim: int) -> int:
    return ndim - 2


def before_normalized(arguments: dict[str, Any], ndim: int) -> int:
    return ndim - len(arguments["normalized_shape"])


def _dims(dim: Any, ndim: int) -> list[int]:
    """The dimensions as numbers from 0; none where the argument means all, or is one that the kernel refuses."""
    given = [dim] if isinstance(dim, int) else list(dim or [])
    return [d % ndim for d in given] if all(type(d) is int and -ndim <= d < ndim for d in given) and ndim else []


def split_rows(
    kernel: Kernel, arrays: Sequence[str], lead_of: LeadOf, *, ns: float, summed: Sequence[int] = (), strided: bool = False
) -> Kernel:
    """A function that computes what the kernel does, some rows on each thread if that pays.

    `arrays` are the arguments that have rows, which begin with as many dimensions as `lead_of` says; results have them, too, but for those that
    are to be `summed` over the parts. A kernel whose results are contiguous in any case may have `strided` arguments, with one leading dimension.
    """
    names = parameter_names(kernel)

    def call(*given: Any) -> Any:
        arguments = dict(zip(names, given, strict=True))
        x = arguments[arrays[0]]
        cut = [arguments[name] for name in arrays]
        if not all(isinstance(a, np.ndarray) and (strided or a.flags.c_contiguous) for a in cut) or not x.size:
            return kernel(*given)
        lead = lead_of(arguments, x.ndim)
        if lead > 0 and all(a.shape[:lead] == x.shape[:lead] for a in cut):
            return _by_rows(kernel, arguments, arrays, lead, ns, summed)
        return kernel(*given)

    return call


def _by_rows(kernel: Kernel, arguments: dict[str, Any], arrays: Sequence[str], lead: int, ns: float, summed: Sequence[int]) -> Any:
    x = arguments[arrays[0]]
    outer, rows = x.shape[:lead], math.prod(x.shape[:lead])
    cost = ns * x.itemsize / 4 * x.size / rows
    if not pays(rows, cost):
        return kernel(*arguments.values())
    flat = {name: arguments[name].reshape(rows, *arguments[name].shape[lead:]) for name in arrays}
    rest = dict(arguments)
    if "dim" in rest:
        shifted = [d - lead + 1 for d in _dims(rest["dim"], x.ndim)]
        rest["dim"] = shifted[0] if isinstance(rest["dim"], int) else shifted

    def of(begin: int, end: int) -> Any:
        return kernel(*{**rest, **{name: a[begin:end] for name, a in flat.items()}}.values())

    try:
        sample = of(0, 1)
    except Exception:
        return kernel(*arguments.values())  # which says what is wrong with the whole
    results = sample if isinstance(sample, tuple) else (sample,)
    outs = [None if r is None or i in summed else np.empty((rows, *r.shape[1:]), r.dtype) for i, r in enumerate(results)]
    sums: dict[int, dict[int, Array]] = {i: {} for i in summed if results[i] is not None}

    def work(begin: int, end: int) -> None:
        made = of(begin, end)
        for i, (r, out) in enumerate(zip(made if isinstance(made, tuple) else (made,), outs, strict=True)):
            if out is not None:
                out[begin:end] = r
            elif i in sums:
                sums[i][begin] = r

    over(rows, cost, work)
    final = [None if out is None else out.reshape(*outer, *out.shape[1:]) for out in outs]
    for i, by_begin in sums.items():
        final[i] = np.add.reduce([by_begin[begin] for begin in sorted(by_begin)])
    return tuple(final) if isinstance(sample, tuple) else final[0]


def split_channels(kernel: Kernel, arrays: Sequence[str], vectors: Sequence[str], *, ns: float) -> Kernel:
    """A kernel that computes each channel by itself, some channels on each thread if that pays.

    `arrays` have the channels second, as the first result has, `vectors` have a value for each, as the other results have.
    """
    names = parameter_names(kernel)

    def call(*given: Any) -> Any:
        arguments = dict(zip(names, given, strict=True))
        x = arguments[arrays[0]]
        if (
            x.ndim < 2
            or not x.size
            or not all(arguments[name].flags.c_contiguous and arguments[name].shape == x.shape for name in arrays)
        ):
            return kernel(*given)
        channels = x.shape[1]
        cost = ns * x.itemsize / 4 * x.size / channels
        if not pays(channels, cost) or any(
            arguments[name] is not None and arguments[name].shape != (channels,) for name in vectors
        ):
            return kernel(*given)
        whole = np.empty(x.shape, x.dtype)
        found: dict[int, tuple[Any, ...]] = {}

        def work(begin: int, end: int) -> None:
            part = {name: a[begin:end] for name in vectors if (a := arguments[name]) is not None}
            part |= {name: arguments[name][:, begin:end] for name in arrays}
            first, *rest = kernel(*{**arguments, **part}.values())
            if first is not None:
                whole[:, begin:end] = first
            found[begin] = (None if first is None else whole, *rest)

        over(channels, cost, work)
        (first, *rest), *others = (found[begin] for begin in sorted(found))
        return first, *(None if r is None else np.concatenate([r, *(o[i] for o in others)]) for i, r in enumerate(rest, 1))

    return call


def split_samples(kernel: Kernel, arrays: Sequence[str], *, count: str, ns: float, summed: bool = False) -> Kernel:
    """A kernel that computes each sample by itself, some samples on each thread if that pays.

    `arrays` have the samples first, `count` is the argument that says how many there are. The first result is as large as the first array; the others
    have a row for each sample, or are to be summed.
    """
    names = parameter_names(kernel)

    def call(*given: Any) -> Any:
        arguments = dict(zip(names, given, strict=True))
        x, samples = arguments[arrays[0]], arguments[count]
        cut = [arguments[name] for name in arrays]
        if not x.size or not all(a.ndim and len(a) == samples and a.flags.c_contiguous for a in cut):
            return kernel(*given)
        cost = ns * x.itemsize / 4 * x.size / samples
        if not pays(samples, cost):
            return kernel(*given)
        whole = np.empty(x.shape, x.dtype)
        found: dict[int, tuple[Any, ...]] = {}

        def work(begin: int, end: int) -> None:
            part = {name: arguments[name][begin:end] for name in arrays} | {count: end - begin}
            first, *rest = kernel(*{**arguments, **part}.values())
            if first is not None:
                whole[begin:end] = first
            found[begin] = (None if first is None else whole, *rest)

        try:
            over(samples, cost, work)
        except Exception:
            return kernel(*given)  # which says what is wrong with the whole
        (first, *rest), *others = (found[begin] for begin in sorted(found))
        join = np.add.reduce if summed else np.concatenate
        return first, *(None if r is None else join([r, *(o[i] for o in others)]) for i, r in enumerate(rest, 1))

    return call


def split_reduction(kernel: Kernel, combine: np.ufunc, *, ns: float) -> Kernel:
    """A reduction along dimensions: rows, or where the first dimension is among those reduced, parts of it whose results are combined."""
    by_rows = split_rows(kernel, ("self",), before_dim, ns=ns)
    names = parameter_names(kernel)

    def call(*given: Any) -> Any:
        self, dim = given[0], given[names.index("dim")]
        if self.ndim < 2 or 0 not in _dims(dim, self.ndim) or not self.flags.c_contiguous or not self.size:
            return by_rows(*given)
        cost = ns * self.itemsize / 4 * self.size / len(self)
        if not pays(len(self), cost):
            return kernel(*given)
        found: dict[int, Array] = {}

        def work(begin: int, end: int) -> None:
            found[begin] = kernel(self[begin:end], *given[1:])

        over(len(self), cost, work)
        return combine.reduce([found[begin] for begin in sorted(found)])

    return call


def split_associative(kernel: Kernel, *, ns: float) -> Kernel:
    """A reduction of all elements whose result for parts can be reduced once more by the same kernel."""

    def call(self: Array, *rest: Any) -> Any:
        found = _of_parts(kernel, self, rest, ns)
        return kernel(self, *rest) if found is None else kernel(np.asarray([value for _, value in found]), *rest)

    return call


def split_mean(kernel: Kernel, *, ns: float) -> Kernel:
    """A mean of all elements: that of the parts, by their sizes."""

    def call(self: Array, *rest: Any) -> Any:
        found = _of_parts(kernel, self, rest, ns)
        if found is None:
            return kernel(self, *rest)
        first = np.asarray(found[0][1])
        wide = np.complex128 if first.dtype.kind == "c" else np.float64
        total = np.add.reduce([np.asarray(value).astype(wide) * size for size, value in found])
        return np.asarray(total / self.size).astype(first.dtype)

    return call


def _of_parts(kernel: Kernel, self: Array, rest: Sequence[Any], ns: float) -> list[tuple[int, Any]] | None:
    """The size and the result of each part in order, None if there is one part."""
    cost = ns * self.itemsize / 4
    if not self.flags.c_contiguous or not pays(self.size, cost):
        return None
    flat = self.reshape(-1)
    found: dict[int, tuple[int, Any]] = {}

    def work(begin: int, end: int) -> None:
        found[begin] = end - begin, kernel(flat[begin:end], *rest)

    over(self.size, cost, work)
    return [found[begin] for begin in sorted(found)]
