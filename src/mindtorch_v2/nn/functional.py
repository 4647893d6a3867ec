"""`torch.nn.functional`: the operators of neural networks with torch's signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._ops.machinery.lookup import aten
from ._functional import *  # noqa: F403 - the names are its `__all__`
from ._functional import __all__ as __all__

# Public names that are operators as they stand: found at first use, then kept in this module.
_OPERATORS = {
    name: name
    for name in (
        "adaptive_avg_pool1d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "bilinear", "celu_", "channel_shuffle", "conv1d", "conv2d",
        "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "elu_", "gelu",
        "hardshrink", "hardtanh_", "leaky_relu_", "linear", "native_channel_shuffle", "one_hot", "pairwise_distance", "pdist",
        "pixel_shuffle", "pixel_unshuffle", "prelu", "relu_", "rrelu_", "scaled_dot_product_attention", "selu_", "softplus",
        "softshrink", "threshold_",
    )
} | {"logsigmoid": "log_sigmoid"}  # fmt: skip


def __getattr__(name: str) -> Callable[..., Any]:
    if name == "grad":
        from . import grad  # cycle with nn.grad

        return grad  # type: ignore[return-value]
    if name not in _OPERATORS:
        raise AttributeError(f"module 'torch.nn.functional' has no attribute '{name}'")
    function = getattr(aten, _OPERATORS[name])
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted({*globals(), *_OPERATORS})
