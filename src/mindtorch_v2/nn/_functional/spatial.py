"""Pooling, padding, resampling and folding."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor

if TYPE_CHECKING:
    from ..._types import Ints

__all__ = [
    "GRID_SAMPLE_INTERPOLATION_MODES", "GRID_SAMPLE_PADDING_MODES",
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices",
    "affine_grid", "fold", "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices", "grid_sample", "interpolate", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d",
    "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d",
    "max_unpool2d", "max_unpool3d", "pad", "unfold", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

Sizes = int | Sequence[int]


def _spread(value: Any, n: int) -> list[Any]:
    """One value for each of n dimensions."""
    return list(value) if isinstance(value, list | tuple) else [value] * n


# --- maxima ---------------------------------------------------------------------------------------------------------


def _max_pool(dims: int) -> Callable[..., Any]:
    def pool(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        name = f"max_pool{dims}d_with_indices" if return_indices else f"max_pool{dims}d"
        step = [] if stride is None else stride
        return getattr(aten, name)(input, kernel_size, step, padding, dilation, ceil_mode)

    return _named(pool, f"max_pool{dims}d", "The maximum of every window; with `return_indices`, also where it is.")


def _named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _with_indices(pool: Callable[..., Any]) -> Callable[..., Any]:
    """The variant of a pooling function that always returns indices."""

    signature = inspect.signature(pool)

    @functools.wraps(pool)
    def with_indices(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        bound = signature.bind(*args, **kwargs)
        bound.arguments["return_indices"] = True
        return pool(*bound.args, **bound.kwargs)

    return _named(with_indices, pool.__name__ + "_with_indices", f"{pool.__name__} with the positions of the maxima.")


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)
max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = map(_with_indices, (max_pool1d, max_pool2d, max_pool3d))


def _output_size(size: int | Sequence[int | None], input: Tensor, dims: int) -> list[int]:
    """The output's extents; None stands for the input's own."""
    if isinstance(size, int):
        return [size] * dims
    extents = list(size)
    if len(input.shape) <= len(extents):
        raise ValueError(f"Input dimension should be at least {len(extents) + 1}")
    own = input.shape[len(input.shape) - len(extents) :]
    return [n if s is None else s for s, n in zip(extents, own, strict=True)]


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """Means over windows that cover the input in this many steps."""
    return aten.adaptive_avg_pool2d(input, _output_size(output_size, input, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    return aten.adaptive_avg_pool3d(input, _output_size(output_size, input, 3))


def _adaptive_max_pool(dims: int) -> Callable[..., Any]:
    def pool(
        input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        size = output_size if dims == 1 else _output_size(output_size, input, dims)
        made = getattr(aten, f"adaptive_max_pool{dims}d")(input, size)
        return made if return_indices else made[0]

    return _named(pool, f"adaptive_max_pool{dims}d", "Maxima over windows that cover the input in this many steps.")


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(_adaptive_max_pool, (1, 2, 3))
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = map(
    _with_indices, (adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d)
)


def _fractional_max_pool(dims: int) -> Callable[..., Any]:
    name = f"fractional_max_pool{dims}d"

    def pool(
        input: Tensor,
        kernel_size: Sizes,
        output_size: Ints | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratios = _spread(output_ratio, dims)
            output_size = [int(n * r) for n, r in zip(input.shape[-dims:], ratios, strict=True)]
        if _random_samples is None:
            batch = 1 if input.dim() == dims + 1 else input.size(0)
            shape = [batch, input.size(-dims - 1), dims]
            _random_samples = aten.rand(shape, dtype=input.dtype, device=input.device)
        made = getattr(aten, name)(input, _spread(kernel_size, dims), _spread(output_size, dims), _random_samples)
        return made if return_indices else made[0]

    return _named(pool, name, "Maxima over windows of randomly chosen steps.")


fractional_max_pool2d, fractional_max_pool3d = map(_fractional_max_pool, (2, 3))
fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = map(
    _with_indices, (fractional_max_pool2d, fractional_max_pool3d)
)


def _unpooled_size(
    input: Tensor, kernel: list[int], stride: list[int], padding: list[int], size: Sequence[int] | None
) -> list[int]:
    """The extents before pooling: as given, or the smallest that give the input's."""
    dims = len(kernel)
    own = input.shape[-dims:]
    default = [(own[d] - 1) * stride[d] + kernel[d] - 2 * padding[d] for d in range(dims)]
    if size is None:
        return default
    size = list(size)
    if len(size) == dims + 2:
        size = size[2:]
    if len(size) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of '{len(size)}'"
        )
    for d in range(dims):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < size[d] < high:
            raise ValueError(f"invalid output_size {size} (dim {d} must be between {low} and {high})")
    return size


def _max_unpool(dims: int) -> Callable[..., Tensor]:
    def unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        kernel = _spread(kernel_size, dims)
        step = kernel if stride is None else _spread(stride, dims)
        pads = _spread(padding, dims)
        size = _unpooled_size(input, kernel, step, pads, output_size)
        if dims == 1:
            return aten.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)
        if dims == 2:
            return aten.max_unpool2d(input, indices, size)
        return aten.max_unpool3d(input, indices, size, step, pads)

    return _named(unpool, f"max_unpool{dims}d", "Maxima put back where they were, with zeros elsewhere.")


max_unpool1d, max_unpool2d, max_unpool3d = map(_max_unpool, (1, 2, 3))


# --- power means ----------------------------------------------------------------------------------------------------


def _lp_pool(dims: int) -> Callable[..., Tensor]:
    average, maximum = f"avg_pool{dims}d", (max_pool1d, max_pool2d, max_pool3d)[dims - 1]

    def pool(input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> Tensor:
        if isinstance(norm_type, int | float) and math.isinf(norm_type):
            if norm_type > 0:
                return maximum(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
            return -maximum(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
        step = [] if stride is None else stride
        mean = getattr(aten, average)(input.pow(norm_type), kernel_size, step, 0, ceil_mode)
        count = math.prod(_spread(kernel_size, dims))
        return (mean.sign() * aten.relu(mean.abs())).mul(count).pow(1.0 / norm_type)

    return _named(pool, f"lp_pool{dims}d", "The p-norm of every window.")


lp_pool1d, lp_pool2d, lp_pool3d = map(_lp_pool, (1, 2, 3))


# --- padding and folding --------------------------------------------------------------------------------------------


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """The input with margins, the last dimension's first: constant, reflected, replicated or circular."""
    return aten.pad(input, pad, mode, value)


def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """Every window of an image as a column."""
    return aten.im2col(input, _spread(kernel_size, 2), _spread(dilation, 2), _spread(padding, 2), _spread(stride, 2))


def fold(
    input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """Columns added back to the windows they came from."""
    return aten.col2im(
        input,
        _spread(output_size, 2),
        _spread(kernel_size, 2),
        _spread(dilation, 2),
        _spread(padding, 2),
        _spread(stride, 2),
    )


# --- resampling -----------------------------------------------------------------------------------------------------

# mode → operators by number of spatial dimensions
_NEAREST = {"nearest": "upsample_nearest{}d", "nearest-exact": "_upsample_nearest_exact{}d"}
_LINEAR = {
    (1, "linear"): "upsample_linear1d",
    (2, "bilinear"): "upsample_bilinear2d",
    (3, "trilinear"): "upsample_trilinear3d",
    (2, "bicubic"): "upsample_bicubic2d",
}
_SMOOTH = {"bilinear": "_upsample_bilinear2d_aa", "bicubic": "_upsample_bicubic2d_aa", "lanczos": "_upsample_lanczos2d_aa"}
_NAMES = {1: "3D", 2: "4D", 3: "5D"}


def _sizes_and_scales(
    input: Tensor, size: int | list[int] | tuple[int, ...] | None, scale_factor: float | Sequence[float] | None
) -> tuple[list[int] | None, list[float] | None]:
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        if isinstance(size, list | tuple):
            if len(size) != dims:
                raise ValueError(
                    f"Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of "
                    f"{list(input.shape[2:])} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
                    "format and output size in (o1, o2, ...,oK) format."
                )
            return list(size), None
        return [size] * dims, None
    if isinstance(scale_factor, list | tuple) and len(scale_factor) != dims:
        raise ValueError(
            f"Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of "
            f"{list(input.shape[2:])} and scale_factor of shape {scale_factor}. Please provide input tensor in (N, C, d1, d2, "
            "...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    return None, [float(s) for s in _spread(scale_factor, dims)]


def interpolate(
    input: Tensor,
    size: int | list[int] | tuple[int, ...] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The input resampled to another size."""
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    dims = input.dim() - 2
    sizes, scales = _sizes_and_scales(input, size, scale_factor)
    if recompute_scale_factor is not None and recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if (mode == "area" or recompute_scale_factor) and scales is not None:
        sizes = [math.floor(float(n) * s) for n, s in zip(input.shape[2:], scales, strict=True)]
        scales = None
    if antialias and not (mode in _SMOOTH and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    return _resampled(input, dims, mode, sizes, scales, align_corners, antialias)


def _resampled(
    input: Tensor,
    dims: int,
    mode: str,
    sizes: list[int] | None,
    scales: list[float] | None,
    align_corners: bool | None,
    antialias: bool,
) -> Tensor:
    if dims in (1, 2, 3) and mode in _NEAREST:
        return getattr(aten, _NEAREST[mode].format(dims))(input, sizes, scales)
    if dims in (1, 2, 3) and mode == "area":
        assert sizes is not None
        return getattr(aten, f"adaptive_avg_pool{dims}d")(input, sizes)
    if antialias:
        return getattr(aten, _SMOOTH[mode])(input, sizes, align_corners, scales)
    if (dims, mode) in _LINEAR:
        return getattr(aten, _LINEAR[dims, mode])(input, sizes, align_corners, scales)
    fitting = {m: n for n, m in _LINEAR}
    if mode in fitting and dims in _NAMES:
        raise NotImplementedError(f"Got {_NAMES[dims]} input, but {mode} mode needs {_NAMES[fitting[mode]]} input")
    raise NotImplementedError(
        "Input Error: Only 3D, 4D and 5D input Tensors supported "
        f"(got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact "
        f"(got {mode})"
    )


def upsample(
    input: Tensor,
    size: int | list[int] | tuple[int, ...] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` under its former name."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: int | list[int] | tuple[int, ...] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` by the nearest element."""
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor, size: int | list[int] | tuple[int, ...] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` between the nearest elements, with the corners aligned."""
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """The input read at the grid's positions, which run from -1 to 1."""
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    aligned = _unaligned_with_warning() if align_corners is None else align_corners
    return aten.grid_sampler(input, grid, GRID_SAMPLE_INTERPOLATION_MODES[mode], GRID_SAMPLE_PADDING_MODES[padding_mode], aligned)


def _unaligned_with_warning() -> bool:
    """Return `align_corners`, or its default when it is not given."""
    warnings.warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
        stacklevel=4,
    )
    return False


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The positions that `grid_sample` reads for an affine map of an image or a volume."""
    aligned = _unaligned_with_warning() if align_corners is None else align_corners
    if not theta.dtype.inexact:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    shapes = {4: (2, 3), 5: (3, 4)}
    if len(size) not in shapes:
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {size}."
        )
    rows, columns = shapes[len(size)]
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (rows, columns):
        raise ValueError(
            f"Expected a batch of {rows}D affine matrices of shape Nx{rows}x{columns} for size {size}. Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return aten.affine_grid_generator(theta, size, aligned)
