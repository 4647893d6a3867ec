"""`torch.nn.functional`: the operators of neural networks with torch's signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._ops.lookup import aten
from ._functional.activations import (
    celu,
    elu,
    glu,
    gumbel_softmax,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    mish,
    relu,
    relu6,
    rrelu,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from ._functional.attention import multi_head_attention_forward
from ._functional.layers import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    embedding,
    embedding_bag,
    feature_alpha_dropout,
)
from ._functional.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cross_entropy,
    ctc_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    linear_cross_entropy,
    margin_ranking_loss,
    mse_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from ._functional.normalizations import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)
from ._functional.products import grouped_mm
from ._functional.spatial import (
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    affine_grid,
    fold,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    grid_sample,
    interpolate,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
    pad,
    unfold,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)

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
    if name not in _OPERATORS:
        raise AttributeError(f"module 'torch.nn.functional' has no attribute '{name}'")
    function = getattr(aten, _OPERATORS[name])
    globals()[name] = function
    return function  # type: ignore[no-any-return]


def __dir__() -> list[str]:
    return sorted({*globals(), *_OPERATORS})
