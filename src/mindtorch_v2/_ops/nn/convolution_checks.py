"""Checks of a convolution's arguments, with torch's error texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..._backends.cpu.machinery.dtype_rules import refuse
from ..._checks import no_dimensions
from ..._dtype import FROM_NUMPY
from ..._tensor import Tensor

if TYPE_CHECKING:
    from ..._types import Array

__all__ = [
    "check_bias_dtype",
    "check_dtypes",
    "check_grouped_bias",
    "check_groups",
    "check_kernel",
    "check_shapes",
    "check_transposed",
    "check_unbatched",
    "check_weight_kind",
    "expand_sizes",
    "hashable",
]

Sizes = tuple[int, ...]
MOST_PADDING = (1 << 62) - 1  # twice as much has no int64


def expand_sizes(value: Any, n: int, name: str) -> Sizes:
    """One value for each spatial dimension."""
    if isinstance(value, int):
        return (value,) * n
    value = tuple(value)
    if len(value) == 1:
        return value * n
    if len(value) != n:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {n} values to match the convolution dimensions, "
            f"but got {name}={list(value)}"
        )
    return value


def hashable(value: Any) -> Any:
    """A list of sizes as a tuple, by which the checks below are remembered."""
    return tuple(value) if value.__class__ is list else value


def check_unbatched(n: int, name: str, x: Tensor) -> None:
    if x.dim() != n + 2:
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: {list(x._array.shape)}"
        )


def check_bias_dtype(x: Tensor, bias: Tensor | None) -> None:
    if bias is not None and bias.dtype is not x.dtype:
        raise RuntimeError(f"Input type ({x.dtype.cpp_name}) and bias type ({bias.dtype.cpp_name}) should be the same")


def check_weight_kind(x: Tensor, weight: Tensor) -> None:
    """Check that both are complex or neither is."""
    if x.dtype.is_complex != weight.dtype.is_complex:
        raise RuntimeError(f"Input type ({_type_name(x)}) and weight type ({_type_name(weight)}) should be the same")


def check_grouped_bias(x: Tensor, bias: Tensor | None) -> None:
    """torch: groups go to another library's kernels, which take a bias of the input's dtype only."""
    if bias is not None and bias.dtype is not x.dtype and x.dtype.is_floating_point and x.dtype.itemsize <= 4:
        raise RuntimeError(
            f"Input type ({_type_name(x)}) and bias type ({_type_name(bias)}) should be the same or input should be a MKLDNN tensor "
            "and bias is a dense tensor"
        )


def _type_name(x: Tensor) -> str:
    name = x.dtype.scalar_name
    return f"CPU{name}Type" if name == "Bool" or x.dtype.is_complex else f"torch.{name}Tensor"


def check_transposed(size: Sizes, w: Sizes, bias: Sizes | None, n: int) -> None:
    """Check what the kernels of transposed convolutions need of a bias, and of the input's elements."""
    if bias is not None and len(w) == n + 2:
        if not bias:
            raise no_dimensions(0)
        if bias != w[1:2]:
            raise RuntimeError(
                f"Expected a tensor of dimension 1 and tensor.size[0] == {w[1]} but got: dimension {len(bias)} and tensor.size[0] = "
                f"{bias[0]}"
            )
    if len(size) == n + 2 and 0 in size:
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D input tensor expected but got a tensor with size {list(size)}")


def check_dtypes(name: str, x: Array, weight: Array) -> None:
    """Bools and complex numbers are refused, and weights of another dtype."""
    if x.dtype == weight.dtype and x.dtype.kind not in "bc":
        return
    refuse(name, x, "bc")
    wanted, found = (FROM_NUMPY[a.dtype].scalar_name for a in (x, weight))
    raise RuntimeError(f"expected scalar type {wanted} but found {found}")


@lru_cache(maxsize=256)
def check_kernel(
    size: Sizes,
    w: Sizes,
    kernel: Sequence[int],
    bias: Sizes | None,
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
    dilation: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
) -> None:
    """Check what the kernels need of their arguments: sizes for each dimension, positive steps, and a weight of the kernel's size."""
    n = len(w) - 2
    if (not size or not w) and dilation is None and isinstance(kernel, tuple) and len(kernel) == 3:
        raise no_dimensions(1)  # torch: the volume's kernel asks for channels first
    if n < 1 or not w[0]:
        raise RuntimeError(f"non-empty weight tensor of a convolution expected, but got: {list(w)}")
    if bias is not None and not bias and dilation is None:
        raise no_dimensions(0)
    if len(size) != len(w):
        raise RuntimeError(f"Expected {n + 2}D input tensor, but got: {list(size)}")
    given = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation, "output_padding": output_padding}
    for name, values in given.items():
        expanded = (1,) * n if values is None else expand_sizes(values, n, name)
        if name not in ("padding", "output_padding") and min(expanded) <= 0:
            raise RuntimeError(f"{name} should be greater than zero, but got {list(expanded)}")
    if expand_sizes(kernel, n, "kernel_size") != w[2:]:
        raise RuntimeError(f"weight[2:] shape {list(w[2:])} must be equal to kernel_size {list(kernel)}")
    transposed = output_padding is not None
    if not transposed:
        steps = [expand_sizes(given[name] or 1, n, name) for name in ("stride", "dilation")]
        _check_extents(size, w, steps[0], expand_sizes(padding, n, "padding"), steps[1], dilated=dilation is not None)
    channels, outputs = (w[0], w[1]) if transposed else (w[1], w[0])
    volume = n == 3 and dilation is None  # torch: its kernel finds the groups by itself
    if size[1] != channels and not (
        volume and size[1] and channels and size[1] % channels == 0 and outputs % (size[1] // channels) == 0
    ):
        raise RuntimeError(f"Expected {channels} channels of the input, but got: {list(size)}")
    if transposed:
        _check_output_padding(*(expand_sizes(given[name], n, name) for name in ("output_padding", "stride", "dilation")))
    if bias is not None and bias != (outputs,):
        raise RuntimeError(f"expected bias of shape [{outputs}], but got {list(bias)}")


def _check_extents(size: Sizes, w: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, *, dilated: bool) -> None:
    """Check that the kernel fits into the padded input."""
    padded = [n + 2 * p for n, p in zip(size[2:], padding, strict=True)]
    out = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(padded, w[2:], stride, dilation, strict=True)]
    if dilated and min(out) < 0:
        raise RuntimeError(f"calculated output size {' '.join(map(str, out))} is too small (all sizes must be non-negative)")
    if not dilated and min(out) < 1:
        given, kernel = (" x ".join(map(str, sizes)) for sizes in (padded, w[2:]))
        raise RuntimeError(
            f"Calculated padded input size per channel: ({given}). Kernel size: ({kernel}). Kernel size can't be greater than actual "
            "input size"
        )


def check_groups(size: Sizes, w: Sizes, groups: int) -> None:
    """Raise when the weight cannot be shared out among the groups, or has another number of dimensions than the input."""
    if len(w) < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if len(size) != len(w):
        raise RuntimeError(
            f"Expected {len(w)}-dimensional input for {len(w)}-dimensional weight {list(w)}, but got {len(size)}-dimensional "
            f"input of size {list(size)} instead"
        )
    if w[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {list(w)} instead"
        )
    if w[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size {list(w)} instead"
        )


@lru_cache(maxsize=256)
def check_shapes(
    size: Sizes,
    w: Sizes,
    bias: Sizes | None,
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    transposed: bool,
    output_padding: int | Sequence[int],
    groups: int,
) -> tuple[Sizes, Sizes, Sizes, Sizes]:
    """Stride, padding, dilation and output padding for each dimension; raises what torch raises about shapes that do not fit."""
    check_groups(size, w, groups)
    n = len(w) - 2
    stride, padding = expand_sizes(stride, n, "stride"), expand_sizes(padding, n, "padding")
    dilation, output_padding = expand_sizes(dilation, n, "dilation"), expand_sizes(output_padding, n, "output_padding")
    _check_forward(size, w, bias, stride, padding, dilation, transposed, output_padding, groups)
    return stride, padding, dilation, output_padding


def _check_forward(
    size: Sizes, w: Sizes, bias: Sizes | None, stride: Sizes, padding: Sizes, dilation: Sizes, transposed: bool,
    output_padding: Sizes, groups: int,
) -> None:  # fmt: skip
    """Raise what torch raises about shapes that do not go together."""
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    for d, p in enumerate(padding):
        if p > MOST_PADDING:
            raise RuntimeError(f"Given padding={p} at dimension {d} , expected padding to be at most {MOST_PADDING}")
    if any(p < 0 for p in output_padding):
        raise RuntimeError("negative output_padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError("dilation should be greater than zero")
    if transposed:
        _check_transposed(size, w, bias, groups)
        _check_output_padding(output_padding, stride, dilation)
    else:
        _check_plain(size, w, bias, padding, dilation, groups)


def _check_transposed(size: Sizes, w: Sizes, bias: Sizes | None, groups: int) -> None:
    if size[1] != w[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(w)}, expected input{list(size)} to have {w[0]} channels, "
            f"but got {size[1]} channels instead"
        )
    if bias is not None and bias != (w[1] * groups,):
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(w)}, expected bias to be 1-dimensional with {w[1] * groups} elements, "
            f"but got bias of size {list(bias)} instead"
        )


def _check_output_padding(output_padding: Sizes, stride: Sizes, dilation: Sizes) -> None:
    if all(e < s or e < d for e, s, d in zip(output_padding, stride, dilation, strict=True)):
        return
    if len(stride) == 1:  # torch: computed in two dimensions, of which the first is one
        output_padding, stride, dilation = (0, *output_padding), (1, *stride), (1, *dilation)
    names = ("depth", "height", "width")[-len(stride) :]
    told = [
        " ".join(f"{what}_{name}: {v}" for name, v in zip(names, values, strict=True))
        for what, values in (("output_padding", output_padding), ("stride", stride), ("dilation", dilation))
    ]
    raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {' '.join(told)}")


def _check_plain(size: Sizes, w: Sizes, bias: Sizes | None, padding: Sizes, dilation: Sizes, groups: int) -> None:
    if size[1] != w[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(w)}, expected input{list(size)} to have {w[1] * groups} channels, "
            f"but got {size[1]} channels instead"
        )
    if bias is not None and bias != (w[0],):
        raise RuntimeError(
            f"Given weight of size {list(w)}, expected bias to be 1-dimensional with {w[0]} elements, "
            f"but got bias of size {list(bias)} instead"
        )
    padded = [n + 2 * p for n, p in zip(size[2:], padding, strict=True)]
    kernel = [d * (k - 1) + 1 for d, k in zip(dilation, w[2:], strict=True)]
    if any(n < k for n, k in zip(padded, kernel, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). "
            f"Kernel size: ({' x '.join(map(str, kernel))}). Kernel size can't be greater than actual input size"
        )
