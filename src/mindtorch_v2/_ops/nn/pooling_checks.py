"""Arguments of pooling operators: one value a dimension, the result's extents, and torch's complaints."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._checks import dimension_error, no_dimensions

if TYPE_CHECKING:
    from ..._types import Ints

__all__ = [
    "Window",
    "adaptive_size",
    "check_adaptive",
    "check_average_gradient",
    "check_extents",
    "check_maximum_gradient",
    "check_one",
    "check_window_gradient",
    "expand",
    "window",
]

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]
_WORDS = {1: "one int", 2: "two ints", 3: "three ints"}
_AXES = {2: "HW", 3: "THW"}


def expand(value: Ints, n: int, name: str, argument: str, *, omitted: str = "") -> Sizes:
    """One value for each of the n dimensions."""
    if isinstance(value, int):
        return (value,) * n
    value = tuple(int(v) for v in value)
    if len(value) == 1 and not name.startswith("fractional"):
        return value * n
    if len(value) != n:
        if name.startswith("fractional"):
            raise RuntimeError(f"{name}: {argument} must either be a single Int or tuple of {'three ' if n == 3 else ''}Ints")
        either = "either be" if argument != "dilation" else "be either"
        if name == "avg_pool3d" and argument == "kernel_size":
            either = "be"  # torch: this one text differs
        raise RuntimeError(f"{name}: {argument} must {either} {omitted}a single int, or a tuple of {_WORDS[n]}")
    return value


def check_one(value: Ints, name: str, argument: str) -> int:
    """The one int of an `int[1]` argument."""
    if isinstance(value, int):
        return value
    if len(value) != 1:
        raise RuntimeError(f"{name}() argument '{argument}' should contain one int (got {len(value)})")
    return int(value[0])


class Window:
    """A pooling window, checked against the input."""

    __slots__ = ("dilation", "kernel", "out", "padding", "stride")

    def __init__(self, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes) -> None:
        self.kernel, self.stride, self.padding, self.dilation, self.out = kernel, stride, padding, dilation, out


def _extent(size: int, kernel: int, stride: int, padding: int, dilation: int, *, ceil_mode: bool) -> int:
    if stride == 0:
        raise RuntimeError("stride should not be zero")
    if padding < 0:
        raise RuntimeError(f"pad must be non-negative, but got pad: {padding}")
    if padding > ((kernel - 1) * dilation + 1) // 2:
        raise RuntimeError(
            f"pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel} and dilation={dilation}"
        )
    out = (size + 2 * padding - dilation * (kernel - 1) - 1 + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (out - 1) * stride >= size + padding:
        out -= 1  # the last window must start inside the image or its left padding
    return out


def window(
    name: str,
    shape: Sizes,
    kernel: Ints,
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    *,
    ceil_mode: bool,
    n: int,
) -> Window:
    """The window's parameters for each dimension and the result's extents."""
    return _window(name, shape, _hashable(kernel), _hashable(stride), _hashable(padding), _hashable(dilation), ceil_mode, n)


def _hashable(value: Any) -> Any:
    return tuple(value) if value.__class__ is list else value


@lru_cache(maxsize=256)
def _window(
    name: str,
    shape: Sizes,
    kernel: Ints,
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    ceil_mode: bool,
    n: int,
) -> Window:
    kernel = expand(kernel, n, name, "kernel_size")
    stride = kernel if not isinstance(stride, int) and not len(stride) else expand(stride, n, name, "stride", omitted="omitted, ")
    padding = expand(padding, n, name, "padding")
    dilation = expand(dilation, n, name, "dilation")
    if len(shape) not in (n + 1, n + 2):
        if name == "avg_pool2d" and len(shape) in (0, 2):
            raise dimension_error(-3, 2) if shape else no_dimensions(-3)
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
    if min(dilation) <= 0:
        told = " ".join(f"dilation{a}: {d}" for a, d in zip(_AXES[n], dilation, strict=True))
        raise RuntimeError(f"dilation should be greater than zero, but got {told}")
    if min(stride) < 0:
        told = " ".join(f"d{a}: {s}" for a, s in zip(_AXES[n], stride, strict=True))
        raise RuntimeError(f"stride should be greater than zero, but got {told}")
    size = shape[-n:]
    out = tuple(_extent(*each, ceil_mode=ceil_mode) for each in zip(size, kernel, stride, padding, dilation, strict=True))
    if 0 in kernel:
        told = " ".join(f"k{a}: {k}" for a, k in zip(_AXES[n], kernel, strict=True))
        raise RuntimeError(f"kernel size should be greater than zero, but got {told}")
    if 0 in shape[-n - 1 :] and n == 3:
        raise RuntimeError(
            f"{name}_with_indices_out_cpu_template(): Expected input's non-batch dimensions to have positive length, but input has "
            f"a shape of {list(shape)} and non-batch dimension 0 has length zero!"  # torch: always names dimension 0
        )
    if 0 in shape[-n - 1 :]:
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(shape)}"
        )
    if min(out) < 1:
        _raise_small(name, shape, kernel, out, n)
    return Window(kernel, stride, padding, dilation, out)


def _raise_small(name: str, shape: Sizes, kernel: Sizes, out: Sizes, n: int) -> None:
    if name == "avg_pool3d":
        image = " ".join(f"{a}: {v}" for a, v in zip("THW", shape[-3:], strict=True))
        told = " ".join(f"k{a}: {v}" for a, v in zip("THW", kernel, strict=True))
        raise RuntimeError(f"input image ({image}) smaller than kernel size ({told})")
    channels = shape[-n - 1]
    before = "x".join(map(str, shape[-n - 1 :]))
    after = "x".join(map(str, (channels, *out)))
    raise RuntimeError(f"Given input size: ({before}). Calculated output size: ({after}). Output size is too small")


def adaptive_size(value: Sequence[int], n: int, name: str) -> Sizes:
    value = (value,) * n if isinstance(value, int) else tuple(value)
    if len(value) != n:
        internal = "(): internal error: output_size.size()" if "max" in name else ": output_size"
        raise RuntimeError(f"{name}{internal} must be {n}")
    if any(v < 0 for v in value) and "max" not in name:
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {{{', '.join(map(str, value))}}}"
        )
    return value


def check_adaptive(shape: Sizes, n: int, name: str) -> None:
    if len(shape) not in (n + 1, n + 2):
        colon = ":" if "max" in name else ""
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{colon} {list(shape)}")
    for i in range(len(shape) - n - (1 if "max" in name else 0), len(shape)):
        if i > 0 and shape[i] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(shape)} "
                f"with dimension {i} being empty"
            )


def check_not_empty(grad: Sizes, name: str) -> None:
    """Raise for a gradient without elements in other dimensions than the first."""
    for i, size in enumerate(grad[1:], 1):
        if size == 0:
            raise RuntimeError(
                f"{name}_backward(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes "
                f"{list(grad)} with dimension {i} being empty"
            )


def check_average_gradient(grad: Sizes, shape: Sizes, n: int) -> None:
    """Raise when a gradient cannot be that of an adaptive average over images of this shape."""
    check_not_empty(grad, f"adaptive_avg_pool{n}d")
    if len(grad) != len(shape):
        what = "grad_output" if n == 2 else "gradOutput_"
        raise RuntimeError(
            f"adaptive_avg_pool{n}d_backward_out_cpu_template: Expected dimensions {len(shape)} for `{what}` but got dimensions {len(grad)}"
        )


def check_maximum_gradient(grad: Sizes, shape: Sizes, indices: Sizes, name: str) -> None:
    """Raise when a gradient does not belong to the positions of adaptive or fractional maxima."""
    if name.startswith("adaptive"):
        check_not_empty(grad, name)
        if len(indices) != len(shape):
            raise RuntimeError(f"expected dimensions {len(shape)} for `indices` but got dimensions {len(indices)}")
        if grad != indices:
            raise RuntimeError(f"expected sizes {list(indices)} for `grad_output` but got sizes {list(grad)}")
    elif grad != indices:
        if "2d" in name:
            raise RuntimeError(f"{name}_backward(): gradOutput sizes unexpected")
        at = next((i for i in (-3, -2, -1) if len(grad) == len(indices) and grad[i] != indices[i]), -3)
        raise RuntimeError(f"{name}_backward_out(): gradOutput {('time', 'height', 'width')[at]} unexpected")


def check_window_gradient(sizes: Sequence[Sizes], shape: Sizes, out: Sizes) -> None:
    """Raise when the gradient of maxima, or their positions, have another shape than these maxima."""
    expected = (*shape[: len(shape) - len(out)], *out)
    for given in sizes:
        if given == expected:
            continue
        n = len(expected)
        at = next(i for i in range(n - len(out) - 1, n) if len(given) != n or given[i] != expected[i])
        found = given[at] if at < len(given) else 0
        raise RuntimeError(
            f"Expected a tensor of dimension {n} and tensor.size[{at}] == {expected[at]} but got: dimension {len(given)} and "
            f"tensor.size[{at}] = {found}"
        )


def check_extents(lead: Sizes, out: Sizes) -> None:
    """Raise the error that making a result of negative extents would."""
    if any(v < 0 for v in out):
        raise RuntimeError(f"Trying to create tensor with negative dimension {next(v for v in out if v < 0)}: {[*lead, *out]}")
