"""torch._C._nn: operators of neural networks under the names by which PyTorch's C++ has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._ops.machinery.lookup import aten
from ..nn.modules.module import parse_to
from ..overrides import handle_torch_function, has_torch_function

_NAMES = (
    "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d avg_pool2d avg_pool3d binary_cross_entropy col2im"
    " cross_entropy_loss elu elu_ fractional_max_pool2d fractional_max_pool3d gelu gelu_ glu hardsigmoid hardsigmoid_ hardswish hardswish_"
    " hardtanh hardtanh_ huber_loss im2col l1_loss leaky_relu leaky_relu_ linear log_sigmoid max_pool2d_with_indices max_pool3d_with_indices"
    " max_unpool2d max_unpool3d mish mish_ mse_loss multi_margin_loss multilabel_margin_loss nll_loss nll_loss2d nll_loss_nd pad"
    " pad_sequence reflection_pad1d reflection_pad2d reflection_pad3d relu6 relu6_ replication_pad1d replication_pad2d replication_pad3d"
    " rrelu_with_noise rrelu_with_noise_ scaled_dot_product_attention silu silu_ smooth_l1_loss soft_margin_loss softplus softshrink"
    " upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d"
)

for _name in _NAMES.split():
    if hasattr(aten, _name):
        globals()[_name] = getattr(aten, _name)


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, `non_blocking` and memory format that arguments of `Module.to` ask for."""
    if has_torch_function(()):  # a mode sees it, as a call without tensors
        return handle_torch_function(_parse_to, (), *args, **kwargs)
    return parse_to(args, kwargs)


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
