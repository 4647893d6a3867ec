"""Samples for gradcheck that PyTorch's operator database does not reach, or reaches only at poles and kinks."""

from __future__ import annotations

from typing import Any

import numpy as np

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import registry

__all__ = ["HAND"]

_rng = np.random.default_rng(0)


def r(*shape: int, low: float = 0.2, high: float = 0.8) -> Any:
    """A tensor to differentiate, with elements well inside (0, 1) unless told otherwise."""
    t = torch.from_numpy(np.asarray(_rng.uniform(low, high, shape)))
    t.__dict__["wants_grad"] = True
    return t


def ints(*values: int) -> Any:
    return torch.tensor(values)


_PROBABILITIES = torch.tensor([[[0.2, 0.3, 0.5]], [[0.6, 0.3, 0.1]], [[0.1, 0.2, 0.7]]], dtype=torch.float64).log()
_PROBABILITIES.__dict__["wants_grad"] = True

_COMPLEX = torch.complex(r(3), r(3))
_COMPLEX.__dict__["wants_grad"] = True

# operator → its arguments; those left out have the schema's defaults
HAND: dict[str, tuple[Any, ...]] = {
    "aten::_masked_softmax.default": (r(2, 3), torch.tensor([[False, True, False], [False, False, True]]), 1, 2),
    "aten::_pack_padded_sequence.default": (r(3, 2, 2), torch.tensor([3, 1]), False),
    "aten::conv_tbc.default": (r(4, 1, 2), r(2, 2, 3), r(3), 1),
    "aten::_neg_view.default": (r(3),),
    "aten::add.Scalar": (r(3), 2.0, 3),
    "aten::sub.Scalar": (r(3), 2.0, 3),
    "aten::_convolution.default": (
        r(1, 2, 3, 3), r(2, 2, 2, 2), r(2), [1, 1], [0, 0], [1, 1], False, [0, 0], 1, False, False, False, False,
    ),
    "aten::_ctc_loss.default": (_PROBABILITIES, torch.tensor([[1, 2]]), [3], [2]),
    "aten::_euclidean_dist.default": (r(3, 2), r(4, 2, low=2, high=3)),
    "aten::_scaled_dot_product_flash_attention_for_cpu.default": (r(1, 1, 3, 4), r(1, 1, 3, 4), r(1, 1, 3, 4)),
    "aten::_slow_conv2d_backward.output_mask": (
        r(1, 2, 2, 2), r(1, 2, 3, 3), r(2, 2, 2, 2), [2, 2], [1, 1], [0, 0], [True, True, True],
    ),
    "aten::_standard_gamma.default": (r(2, 3),),
    "aten::_to_copy.default": (r(2, 3),),
    "aten::_upsample_bicubic2d_aa.default": (r(1, 1, 4, 4), [3, 2], False),
    "aten::_upsample_bicubic2d_aa_backward.default": (r(1, 1, 3, 2), [3, 2], [1, 1, 4, 4], False),
    "aten::_upsample_bilinear2d_aa.default": (r(1, 1, 4, 4), [3, 2], False),
    "aten::_upsample_bilinear2d_aa_backward.default": (r(1, 1, 3, 2), [3, 2], [1, 1, 4, 4], False),
    "aten::_upsample_lanczos2d_aa.default": (r(1, 1, 4, 4), [3, 2], False),
    "aten::_upsample_lanczos2d_aa_backward.default": (r(1, 1, 3, 2), [3, 2], [1, 1, 4, 4], False),
    "aten::_upsample_nearest_exact1d_backward.default": (r(1, 2, 5), [5], [1, 2, 3]),
    "aten::_upsample_nearest_exact2d_backward.default": (r(1, 1, 4, 5), [4, 5], [1, 1, 2, 3]),
    "aten::_upsample_nearest_exact3d_backward.default": (r(1, 1, 2, 4, 3), [2, 4, 3], [1, 1, 1, 2, 2]),
    "aten::_weight_norm_interface.default": (r(3, 2), r(3, 1)),
    "aten::affine_grid_generator.default": (r(1, 2, 3), [1, 1, 2, 3], False),
    "aten::clamp_max.default": (r(5), 0.5),
    "aten::clone.default": (r(2, 3),),
    "aten::col2im.default": (r(1, 4, 4), [3, 3], [2, 2], [1, 1], [0, 0], [1, 1]),
    "aten::div.Scalar": (r(2, 3), 0.7),
    "aten::embedding_dense_backward.default": (r(3, 2), ints(0, 2, 2), 4, -1, False),
    "aten::fill.Tensor": (r(2, 3), r()),
    "aten::fmod.Scalar": (r(4), 0.9),
    "aten::igamma.default": (torch.tensor([1.5, 2.5], dtype=torch.float64), r(2)),
    "aten::igammac.default": (torch.tensor([1.5, 2.5], dtype=torch.float64), r(2)),
    "aten::im2col.default": (r(1, 1, 3, 3), [2, 2], [1, 1], [0, 0], [1, 1]),
    "aten::masked_scatter_backward.default": (r(2, 3), torch.tensor([[True, False, True], [False, True, True]]), [2, 3]),
    "aten::mul.Scalar": (r(2, 3), 0.7),
    "aten::native_dropout_backward.default": (r(3), torch.tensor([True, False, True]), 2.0),
    "aten::norm.Scalar": (r(2, 3), 3),
    "aten::remainder.Scalar": (r(4), 0.9),
    "aten::select_backward.default": (r(3), [2, 3], 0, 1),
    "aten::select_copy.int": (r(2, 3), 0, 1),
    "aten::slice_copy.Tensor": (r(4, 2), 0, 1, 3),
    "aten::slice_scatter.default": (r(4, 2), r(2, 2), 0, 1, 3),
    "aten::special_xlog1py.other_scalar": (r(3), 0.5),
    "aten::special_xlog1py.self_scalar": (0.5, r(3)),
    "aten::special_zeta.default": (torch.tensor([2.5, 3.5], dtype=torch.float64), r(2, low=1, high=2)),
    "aten::special_zeta.self_scalar": (2.5, r(2, low=1, high=2)),
    "aten::split_copy.Tensor": (r(4, 2), 2),
    "aten::squeeze_copy.dims": (r(1, 2, 1), [0, 2]),
    "aten::threshold_backward.default": (r(4), torch.tensor([0.1, 0.9, 0.2, 0.8], dtype=torch.float64), 0.5),
    "aten::unfold_backward.default": (r(3, 2), [4], 0, 2, 1),
    "aten::unsafe_split_with_sizes.default": (r(4, 2), [1, 3]),
    "aten::upsample_bicubic2d_backward.default": (r(1, 1, 4, 5), [4, 5], [1, 1, 2, 3], False),
    "aten::upsample_bilinear2d_backward.default": (r(1, 1, 4, 5), [4, 5], [1, 1, 2, 3], False),
    "aten::upsample_linear1d_backward.default": (r(1, 2, 5), [5], [1, 2, 3], False),
    "aten::upsample_nearest1d_backward.default": (r(1, 2, 5), [5], [1, 2, 3]),
    "aten::upsample_nearest2d_backward.default": (r(1, 1, 4, 5), [4, 5], [1, 1, 2, 3]),
    "aten::upsample_nearest3d_backward.default": (r(1, 1, 2, 4, 3), [2, 4, 3], [1, 1, 1, 2, 2]),
    "aten::upsample_trilinear3d_backward.default": (r(1, 1, 2, 4, 3), [2, 4, 3], [1, 1, 1, 2, 2], False),
    "aten::view_as_real_copy.default": (_COMPLEX,),
    "aten::xlogy.Scalar_Other": (r(3), 0.5),
    "aten::xlogy.Scalar_Self": (0.5, r(3)),
}  # fmt: skip


def _for_lists(op: Any) -> tuple[Any, ...]:
    """Arguments of a `_foreach_*` operator: lists of two matrices, and numbers."""
    made = {
        "Tensor[]": lambda: [r(2, 2), r(3, 3)],
        "Tensor": lambda: r(),
        "Scalar": lambda: 0.55,
        "Scalar[]": lambda: [0.45, 0.6],
    }
    return tuple(a.default if a.type not in made else made[a.type]() for a in op.schema.arguments)


HAND |= {
    f"{op.qualified_name}.{op.overload_name}": _for_lists(op)
    for op in registry.all_ops()
    if op.name.startswith("_foreach_") and op.formulas and not op.schema.is_inplace
}
