"""Normalisation, and vectors scaled to unit length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._functions import functions
from ..._ops.machinery.lookup import aten
from ..._tensor import Size, Tensor

if TYPE_CHECKING:
    from ..._types import Shape

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize", "rms_norm"]


def layer_norm(
    input: Tensor, normalized_shape: Shape, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Zero mean and unit variance over the last dimensions."""
    return aten.layer_norm(input, normalized_shape, weight, bias, eps, True)


def rms_norm(input: Tensor, normalized_shape: Shape, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Unit mean square over the last dimensions."""
    return aten.rms_norm(input, normalized_shape, weight, eps)


def _verify_batch_size(size: Size) -> None:
    n = size[0]
    for extent in size[2:]:
        n *= extent
    if n == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Zero mean and unit variance of every channel: of this batch while training, by the running statistics otherwise."""
    if training:
        _verify_batch_size(input.shape)
    return aten.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Zero mean and unit variance of every channel of every sample."""
    if use_input_stats:
        n = 1
        for extent in input.shape[2:]:
            n *= extent
        if n == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    return aten.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Zero mean and unit variance of every group of channels of every sample."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    # torch: the check of batch_norm on the groups' sizes, whose text then shows a list
    if input.shape[0] * (input.shape[1] // num_groups) * Size(input.shape[2:]).numel() == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {[1, num_groups, *input.shape[2:]]}"
        )
    return aten.group_norm(input, num_groups, weight, bias, eps, True)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Each channel divided by the energy of its neighbours."""
    dim = input.dim()
    if dim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {dim} dimensions)")
    if input.numel() == 0:
        return input
    energy = input.mul(input)
    before, after = size // 2, (size - 1) // 2
    if dim == 3:
        padded = aten.pad(energy.unsqueeze(1), [0, 0, before, after])
        energy = aten.avg_pool2d(padded, [size, 1], [1, 1]).squeeze(1)
    else:
        shape = input.shape
        padded = aten.pad(energy.view(shape[0], 1, shape[1], shape[2], -1), [0, 0, 0, 0, before, after])
        energy = aten.avg_pool3d(padded, [size, 1, 1], [1, 1, 1]).squeeze(1).view(shape)
    return input / energy.mul(alpha).add(k).pow(beta)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Vectors along a dimension scaled to unit length."""
    dims = [dim] if isinstance(dim, int) else list(dim)
    length = aten.linalg_vector_norm(input, p, dims, True).clamp_min(eps).expand_as(input)
    if out is None:
        return input / length
    return functions["div"](input, length, out=out)
