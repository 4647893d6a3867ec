"""Where single operators differ from torch's overload of the same name, and why. A test fails when an entry is no longer true."""

from __future__ import annotations

__all__ = ["KNOWN"]

LAYOUT = "torch's kernel refuses arguments in this memory layout; these kernels take any"
NUMBERS = "torch has overloads for numbers, whose nodes are numbered apart; here a number takes the overload for tensors"
ORDER = "the order of dimensions in which MKL transforms shows in torch's strides"
PRESERVED = "torch keeps the gaps between the elements of `self`; the result here is dense"
TORCH_THIRD = "third derivatives: torch takes the saved statistics for constants, and finite differences confirm these values"
TORCH_NORMS = "torch takes the norms for constants in second derivatives; finite differences confirm these values"
TORCH_LISTS = "torch loses count of the gradients of a list and a tensor that both require grad"
UNSAFE = "the parts are copies here: views that do not know of each other's writes would break saved tensors"
MASK = "torch computes the first gradient whether the mask asks for it or not"
BEYOND = "strides of the caller's, over memory that a copied sample does not have"
BAGS = "torch leaves parts of what is kept for backward empty"
BLOCKED = "torch's blocked kernel for the CPU answers in an order of dimensions of its own"
RESIZED = "torch resizes what is written in place, with a warning that it will not do so any more; here that is refused"
THIRD_GRID = "the second gradients are a kernel here, and cannot be differentiated again"

# kind of comparison → operator → reason
KNOWN: dict[str, dict[str, str]] = {
    "value": {
        "aten::addbmm_.default": RESIZED,
        "aten::_convolution_double_backward.default": MASK,
        "aten::_reshape_alias.default": BEYOND,
        "aten::_linalg_check_errors.default": LAYOUT,
        "aten::_embedding_bag_backward.default": LAYOUT,
        "aten::_embedding_bag_per_sample_weights_backward.default": LAYOUT,
        "aten::_pdist_backward.default": LAYOUT,
        "aten::_weight_norm_interface_backward.default": LAYOUT,
        "aten::conv_tbc.default": LAYOUT,
        "aten::gru.data": LAYOUT,
        "aten::isin.Scalar_Tensor": LAYOUT,
        "aten::lstm.data": LAYOUT,
        "aten::native_group_norm.default": LAYOUT,
        "aten::nll_loss2d_backward.default": LAYOUT,
        "aten::rnn_relu.data": LAYOUT,
        "aten::rnn_tanh.data": LAYOUT,
        "aten::take_along_dim.default": LAYOUT,
    },
    "strides": {
        **dict.fromkeys(
            [f"aten::_fft_{kind}.default" for kind in ("c2c", "r2c", "c2r")]
            + [
                f"aten::fft_{inverse}{kind}fft{dims}.default"
                for inverse in ("", "i")
                for kind in ("", "r", "h")
                for dims in ("", "2", "n")
            ],
            ORDER,
        ),
        "aten::stft.default": ORDER,
        "aten::_cdist_backward.default": "a gradient of zeros, which torch makes in the layout of the argument",
        "aten::_convolution_double_backward.default": MASK,
        "aten::_embedding_bag.default": BAGS,
        "aten::embedding_bag.padding_idx": BAGS,
        "aten::_reshape_alias.default": BEYOND,
        "aten::_scaled_dot_product_flash_attention_for_cpu.default": BLOCKED,
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward.default": BLOCKED,
        "aten::_weight_norm_interface.default": PRESERVED,
        "aten::addr.default": "torch follows the broadcast layout of three operands, NumPy writes rows",
        "aten::as_strided_scatter.default": PRESERVED,
        "aten::diagonal_scatter.default": PRESERVED,
        "aten::gru_cell.default": "sums of products in two layouts, of which NumPy falls back to rows",
        "aten::index.Tensor": "the rows that were picked are laid out anew",
        "aten::isin.Tensor_Scalar": "torch answers in rows, the comparison here in the layout of its argument",
        "aten::kron.default": "torch's product of two expanded matrices keeps their layout, this one is made of rows",
        "aten::select_scatter.default": PRESERVED,
        "aten::slice_scatter.default": PRESERVED,
        "aten::unique_dim.default": "torch sorts the slices along the first dimension of a transposed copy, and returns it so",
    },
    "sharing": {
        "aten::_convolution_double_backward.default": MASK,
        "aten::unsafe_chunk.default": UNSAFE,
        "aten::unsafe_split.Tensor": UNSAFE,
        "aten::unsafe_split_with_sizes.default": UNSAFE,
    },
    "graph": {
        "aten::_standard_gamma_grad.default": "the result requires grad where only the variate does, which has no derivative",
        "aten::addbmm_.default": RESIZED,
        "aten::_embedding_bag_forward_only.default": "torch fails on the integer results of an operator without a derivative",
        "aten::_convolution_double_backward.default": MASK,
        **dict.fromkeys(
            [f"aten::_foreach_{n}_.{kind}" for n in ("add", "sub", "div") for kind in ("Scalar", "ScalarList")], NUMBERS
        ),
        "aten::_foreach_maximum_.List": "computed, and differentiated, by `clamp_min_`; torch differentiates it as `maximum`",
        "aten::_foreach_minimum_.List": "computed, and differentiated, by `clamp_max_`; torch differentiates it as `minimum`",
        "aten::randint_like.default": "torch marks what the bare overload returns; `torch.randint_like` does not require grad either",
        "aten::randint_like.low_dtype": "torch marks what the bare overload returns; `torch.randint_like` does not require grad either",
        "aten::scaled_dot_product_attention.default": "computed by operators; torch picks a blocked kernel for some shapes",
    },
    "gradient": {
        "aten::_foreach_add.Tensor": TORCH_LISTS,
        "aten::_foreach_div.Tensor": TORCH_LISTS,
        "aten::_foreach_mul.Tensor": TORCH_LISTS,
        "aten::grid_sampler_2d_backward.default": THIRD_GRID,
        "aten::grid_sampler_3d_backward.default": THIRD_GRID,
        "aten::linalg_cond.p_str": "torch overwrites the inverse that its own derivative needs",
    },
    "second": {
        "aten::_embedding_bag.default": "both refuse: two operators cannot be differentiated, and each meets another one first",
        "aten::_weight_norm.default": TORCH_NORMS,
        "aten::_weight_norm_interface.default": TORCH_NORMS,
        "aten::convolution_backward.default": "torch passes output_padding on to a convolution that is not transposed",
        "aten::embedding_bag.padding_idx": "both refuse: two operators cannot be differentiated, and each meets another one first",
        "aten::grid_sampler_2d_backward.default": THIRD_GRID,
        "aten::grid_sampler_3d_backward.default": THIRD_GRID,
        "aten::native_batch_norm_backward.default": TORCH_THIRD,
        "aten::native_layer_norm.default": "torch cannot differentiate twice without a weight and with a bias",
        "aten::native_layer_norm_backward.default": TORCH_THIRD,
        "aten::scaled_dot_product_attention.default": "computed by operators; torch's blocked kernel has no second derivative",
    },
}
