"""How much arithmetic an operator does, from the shapes of its arguments: the formulas that profiles and `FlopCounterMode` share.

Each formula takes the arguments in the order of the operator's schema; anything with a `shape` is a tensor. A multiplication with its
addition is two operations. Elsewhere one is counted for each sum, product, quotient, root or function of mathematics in the operator's
definition. Comparing, choosing, rounding, moving and drawing numbers is no arithmetic. Like torch, the formulas do not look at dtypes
and leave the bias of products and convolutions out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .session import TensorInput

__all__ = ["FORMULAS", "attention", "attention_backward", "convolution", "convolution_backward", "matrix_product"]

Formula = Callable[..., int]
Shape = Sequence[int]


# --- products, convolutions, attention: over shapes -----------------------------------------------------------------------------


def matrix_product(left: Shape, right: Shape) -> int:
    """Operations of the product of two matrices, or of two batches of them."""
    return 2 * prod(left) * right[-1]


def convolution(positions: Shape, weight: Shape, batch: int) -> int:
    """A kernel that is laid over so many positions of each image: of the result, or of the input when transposed."""
    return 2 * batch * prod(positions) * prod(weight)


def convolution_backward(
    grad_output: Shape, input: Shape, weight: Shape, transposed: bool, groups: int, output_mask: Sequence[bool]
) -> int:
    positions = (input if transposed else grad_output)[2:]
    count = 0
    if output_mask[0]:
        count += convolution(positions, weight, input[0])
    if output_mask[1]:
        count += convolution(positions, (grad_output[1], input[1], *weight[2:]), input[0]) // groups
    return count


def attention(query: Shape, key: Shape, value: Shape) -> int:
    """The scores and the sum of values; a causal mask halves neither, as in torch."""
    batch, heads, rows, _ = query
    return 2 * batch * heads * rows * key[2] * (query[3] + value[3])


def attention_backward(query: Shape, key: Shape, value: Shape) -> int:
    """The scores once more, and a product for each of the gradients: of scores, values, queries and keys."""
    batch, heads, rows, _ = query
    return 2 * batch * heads * rows * key[2] * (3 * query[3] + 2 * value[3])


def lstm_layer(input: Shape, w_ih: Shape, w_hh: Shape) -> int:
    """The products of inputs and states with their weights, for each step and sequence; as many for the gradients of the weights, and of the rest."""
    return 2 * prod(input[:2]) * (prod(w_ih) + prod(w_hh))


# --- the same, over the arguments of operators ----------------------------------------------------------------------------------


def _product_at(place: int) -> Formula:
    """Operations of the product of the two matrices that begin at this place among the arguments."""

    def count(*inputs: Any) -> int:
        left, right = inputs[place].shape, inputs[place + 1].shape
        return matrix_product(left, right) if len(left) >= 2 and left[-1] == right[-2] else 0

    return count


def _matrix_vector(place: int) -> Formula:
    """Operations of the product of the matrix, or vector, at this place with a vector."""
    return lambda *inputs: 2 * prod(inputs[place].shape)


def _spread(value: Any, n: int) -> list[int]:
    """One number for each dimension, of one for all."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    return values * n if len(values) == 1 else values


def _result_sizes(
    size: Shape, kernel: Shape, stride: int | Sequence[int], padding: int | Sequence[int] | str, dilation: int | Sequence[int]
) -> list[int]:
    n = len(kernel)
    stride, dilation = _spread(stride, n), _spread(dilation, n)
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    pads = reach if padding == "same" else [0] * n if padding == "valid" else [2 * p for p in _spread(padding, n)]
    return [(s + p - r - 1) // t + 1 for s, p, r, t in zip(size, pads, reach, stride, strict=True)]


def _convolved(
    input: TensorInput,
    weight: TensorInput,
    stride: int | Sequence[int],
    padding: int | Sequence[int] | str,
    dilation: int | Sequence[int],
    transposed: bool,
) -> int:
    n = len(weight.shape) - 2
    size = input.shape[-n:]
    batch = input.shape[0] if len(input.shape) == n + 2 else 1
    return convolution(
        size if transposed else _result_sizes(size, weight.shape[2:], stride, padding, dilation), weight.shape, batch
    )


def _conv(
    input: TensorInput,
    weight: TensorInput,
    bias: TensorInput | None,
    stride: int | Sequence[int],
    padding: int | Sequence[int] | str,
    dilation: int | Sequence[int],
    *_: Any,
) -> int:
    return _convolved(input, weight, stride, padding, dilation, False)


def _conv_tbc(input: TensorInput, weight: TensorInput, bias: TensorInput | None, pad: int = 0) -> int:
    """The input is (time, batch, channels) here, the weight (width, channels in, channels out)."""
    steps = input.shape[0] + 2 * pad - weight.shape[0] + 1
    return int(2 * steps * input.shape[1] * prod(weight.shape))


def _conv_transpose(input: TensorInput, weight: TensorInput, *_: Any) -> int:
    return _convolved(input, weight, 1, 0, 1, True)


def _convolution(
    input: TensorInput,
    weight: TensorInput,
    bias: TensorInput | None,
    stride: int | Sequence[int],
    padding: int | Sequence[int] | str,
    dilation: int | Sequence[int],
    transposed: bool,
    *_: Any,
) -> int:
    return _convolved(input, weight, stride, padding, dilation, transposed)


def _slow_conv(
    input: TensorInput,
    weight: TensorInput,
    kernel: int | Sequence[int],
    bias: TensorInput | None,
    stride: int | Sequence[int],
    padding: int | Sequence[int] | str,
    dilation: int | Sequence[int] = 1,
) -> int:
    return _convolved(input, weight, stride, padding, dilation, False)


def _convolution_backward(grad: TensorInput, input: TensorInput, weight: TensorInput, *rest: Any) -> int:
    _, _, _, _, transposed, _, groups, mask = rest
    return convolution_backward(grad.shape, input.shape, weight.shape, transposed, groups, mask)


def _slow_conv_backward(grad: TensorInput, input: TensorInput, weight: TensorInput, *rest: Any) -> int:
    return convolution_backward(grad.shape, input.shape, weight.shape, False, 1, rest[-1])


PRODUCTS: dict[str, Formula] = {
    "mm": _product_at(0),
    "bmm": _product_at(0),
    "_addmm_activation": _product_at(1),
    **dict.fromkeys(("addmm", "addmm_", "baddbmm", "baddbmm_", "addbmm", "addbmm_"), _product_at(1)),
    "mv": _matrix_vector(0),
    **dict.fromkeys(("addmv", "addmv_"), _matrix_vector(1)),
    **dict.fromkeys(("dot", "vdot"), _matrix_vector(0)),
    **dict.fromkeys(("addr", "addr_"), lambda self, left, right, *_: 2 * prod(left.shape) * prod(right.shape)),
    "conv_tbc": _conv_tbc,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _conv),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _conv_transpose),
    **dict.fromkeys(("convolution", "_convolution"), _convolution),
    "_convolution_mode": _conv,
    **dict.fromkeys(("thnn_conv2d", "_slow_conv2d_forward", "slow_conv3d", "slow_conv3d_forward"), _slow_conv),
    **dict.fromkeys(("slow_conv_dilated2d", "slow_conv_dilated3d"), _slow_conv),
    **dict.fromkeys(("slow_conv_transpose2d", "slow_conv_transpose3d"), _conv_transpose),
    "convolution_backward": _convolution_backward,
    "_slow_conv2d_backward": _slow_conv_backward,
    "_scaled_dot_product_flash_attention_for_cpu": lambda query, key, value, *_: attention(query.shape, key.shape, value.shape),
    "_scaled_dot_product_flash_attention_for_cpu_backward": lambda grad, query, key, value, *_: attention_backward(
        query.shape, key.shape, value.shape
    ),
    "mkldnn_rnn_layer": lambda input, w_ih, w_hh, *_: lstm_layer(input.shape, w_ih.shape, w_hh.shape),
    "mkldnn_rnn_layer_backward": lambda input, w_ih, w_hh, *_: 2 * lstm_layer(input.shape, w_ih.shape, w_hh.shape),
}


# --- so many for each element ---------------------------------------------------------------------------------------------------


def _shapes(inputs: Sequence[Any]) -> Iterator[Shape]:
    return (value.shape for value in inputs if hasattr(value, "shape"))


def _broadcast(shapes: Sequence[Shape]) -> int:
    """Elements of what tensors of these shapes are broadcast to."""
    dims = itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return prod(next((size for size in sizes if size != 1), 1) for sizes in dims)


def _broadcast_elements(inputs: Sequence[Any]) -> int:
    shapes = list(_shapes(inputs))
    return _broadcast(shapes) if shapes else 0


def _per_element(times: int) -> Formula:
    return lambda *inputs: times * _broadcast_elements(inputs)


def _of_first(times: int) -> Formula:
    return lambda first, *_: times * prod(first.shape)


def _first_operand(first: TensorInput, *_: Any) -> int:
    # torch: counts the first operand of `add` and `mul`, even where the second is the larger one
    return prod(first.shape)


def _gelu(self: TensorInput, approximate: str = "none", *_: Any) -> int:
    return (9 if approximate == "tanh" else 5) * prod(self.shape)


def _gelu_backward(grad: TensorInput, self: TensorInput, approximate: str = "none", *_: Any) -> int:
    return (18 if approximate == "tanh" else 11) * prod(self.shape)


# The definition's operations for an element of the result: `lerp` is `a + w * (b - a)`, so three.
POINTWISE = {
    1: "add_ sub sub_ mul_ div div_ floor_divide floor_divide_ fmod fmod_ remainder remainder_ frac frac_ reciprocal reciprocal_ "
    "sqrt sqrt_ rsqrt rsqrt_ pow pow_ exp exp_ exp2 exp2_ expm1 expm1_ log log_ log2 log2_ log10 log10_ log1p log1p_ "
    "sin sin_ cos cos_ tan tan_ asin asin_ acos acos_ atan atan_ atan2 atan2_ sinh sinh_ cosh cosh_ tanh tanh_ asinh asinh_ "
    "acosh acosh_ atanh atanh_ hypot hypot_ sigmoid sigmoid_ erf erf_ erfc erfc_ erfinv erfinv_ lgamma lgamma_ digamma digamma_ "
    "polygamma igamma igamma_ igammac igammac_ i0 i0_ special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 "
    "special_bessel_y1 special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v "
    "special_chebyshev_polynomial_w special_erfcx special_hermite_polynomial_h special_hermite_polynomial_he special_i0e special_i1 "
    "special_i1e special_laguerre_polynomial_l special_legendre_polynomial_p special_log_ndtr special_modified_bessel_i0 "
    "special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 special_ndtri "
    "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_shifted_chebyshev_polynomial_t "
    "special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w "
    "special_spherical_bessel_j0 special_zeta leaky_relu leaky_relu_ leaky_relu_backward _prelu_kernel softshrink "
    "hardsigmoid_backward angle rrelu_with_noise rrelu_with_noise_ _standard_gamma_grad _dirichlet_grad",
    2: "xlogy xlogy_ special_xlog1py special_entr silu silu_ elu elu_ elu_backward hardsigmoid hardsigmoid_ _prelu_kernel_backward "
    "polar",
    3: "addcmul addcmul_ addcdiv addcdiv_ lerp lerp_ sinc sinc_ logit logit_ logit_backward sigmoid_backward tanh_backward hardswish "
    "hardswish_ hardswish_backward log_sigmoid_forward mse_loss_backward huber_loss_backward smooth_l1_loss_backward linalg_cross",
    4: "logaddexp logaddexp2 mish mish_ softplus log_sigmoid_backward",
    5: "softplus_backward binary_cross_entropy_backward",
    6: "silu_backward",
    10: "mish_backward",
}  # fmt: skip
# For an element of the first argument. `_softmax` subtracts, exponentiates, sums and divides; `fake_quantize` scales, shifts, and undoes both.
OF_FIRST = {
    1: "sum nansum mean prod cumsum cumsum_ cumprod cumprod_ glu embedding_dense_backward max_pool2d_with_indices_backward "
    "max_pool3d_with_indices_backward adaptive_max_pool2d_backward adaptive_max_pool3d_backward fractional_max_pool2d_backward "
    "fractional_max_pool3d_backward reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward "
    "replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward unfold_backward col2im segment_reduce "
    "upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward _upsample_nearest_exact1d_backward "
    "_upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward _adaptive_avg_pool2d _adaptive_avg_pool3d",
    2: "linalg_vector_norm",
    3: "renorm renorm_ _weight_norm_interface",
    4: "std std_mean var var_mean _softmax _log_softmax _softmax_backward_data _log_softmax_backward_data _logcumsumexp _masked_softmax _masked_softmax_backward "
    "multi_margin_loss multilabel_margin_loss_forward multilabel_margin_loss_backward fake_quantize_per_tensor_affine_cachemask "
    "fake_quantize_per_channel_affine_cachemask _fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    5: "_weight_norm_interface_backward",
    6: "glu_backward",
}  # fmt: skip


# --- losses, normalization ------------------------------------------------------------------------------------------------------


def _loss(times: int) -> Formula:
    """So many for an element, and one to sum it up unless `reduction`, the last whole number, is 0."""

    def count(self: TensorInput, target: TensorInput, *rest: Any) -> int:
        reduction = next((value for value in rest if isinstance(value, int)), 1)
        weighted = any(hasattr(value, "shape") for value in rest)
        return (times + weighted + (reduction != 0)) * _broadcast_elements((self, target))

    return count


def _is_given(*values: Any) -> int:
    return sum(value is not None for value in values)


def _layer_norm(input: TensorInput, normalized_shape: Sequence[int], weight: TensorInput, bias: TensorInput | None, *_: Any) -> int:
    return (6 + _is_given(weight, bias)) * prod(input.shape)  # mean 1, variance 3, both applied 2


def _group_norm(input: TensorInput, weight: TensorInput, bias: TensorInput | None, *_: Any) -> int:
    return (6 + _is_given(weight, bias)) * prod(input.shape)


def _batch_norm(input: TensorInput, weight: TensorInput, bias: TensorInput | None, *rest: Any) -> int:
    training = next(value for value in rest if isinstance(value, bool))
    return ((6 if training else 2) + _is_given(weight, bias)) * prod(input.shape)


def _norm_backward(grad: TensorInput, *rest: Any) -> int:
    """The normalized input again 2; for the input 8: times weight, two sums, and what is left of the gradient scaled."""
    of_input, of_weight, of_bias = (bool(wanted) for wanted in rest[-1])
    return (2 + 8 * of_input + 2 * of_weight + of_bias) * prod(grad.shape)


def _batch_norm_backward(grad: TensorInput, *rest: Any) -> int:
    training = next(value for value in rest if isinstance(value, bool))
    of_input, of_weight, of_bias = (bool(wanted) for wanted in rest[-1])
    inputs = (8 if training else 2) * of_input
    return (2 * (training or of_weight) + inputs + 2 * of_weight + of_bias) * prod(grad.shape)


STATISTICS: dict[str, Formula] = {
    "mse_loss": _loss(2),
    **dict.fromkeys(("huber_loss", "smooth_l1_loss"), _loss(3)),
    "binary_cross_entropy": _loss(7),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), lambda self, target, *_: prod(target.shape)),
    **dict.fromkeys(("nll_loss_backward", "nll_loss2d_backward"), lambda grad, self, target, *_: prod(target.shape)),
    "multi_margin_loss_backward": lambda grad, self, *_: 4 * prod(self.shape),
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    **dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit"), _batch_norm),
    **dict.fromkeys(("native_layer_norm_backward", "native_group_norm_backward"), _norm_backward),
    "native_batch_norm_backward": _batch_norm_backward,
    "trace": lambda self, *_: min(self.shape),
}


# --- pooling, interpolation, scattering -----------------------------------------------------------------------------------------


def _avg_pool(n: int) -> Formula:
    """A sum over each window and a division."""

    def count(
        self: TensorInput,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int],
        padding: int | Sequence[int] | str,
        ceil_mode: bool,
        *_: Any,
    ) -> int:
        kernel = _spread(kernel_size, n)
        out = prod(self.shape[:-n])
        for size, k, s, p in zip(self.shape[-n:], kernel, _spread(stride or kernel, n), _spread(padding, n), strict=True):
            windows = (size + 2 * p - k + (s - 1 if ceil_mode else 0)) // s + 1
            out *= windows - (ceil_mode and (windows - 1) * s >= size + p)  # the last window begins inside the image
        return (prod(kernel) + 1) * out

    return count


def _avg_pool_backward(n: int) -> Formula:
    return lambda grad, self, kernel_size, *_: (prod(_spread(kernel_size, n)) + 1) * prod(grad.shape)


def _interpolated(points: int) -> Formula:
    """A weighted sum of so many points for each element of the result."""

    def count(self: TensorInput, output_size: Sequence[int], *rest: Any) -> int:
        return (2 * points - 1) * prod(self.shape[:2]) * prod(_new_sizes(self, output_size, rest))

    return count


def _new_sizes(self: TensorInput, output_size: Sequence[int], rest: Sequence[Any]) -> Shape:
    if output_size is not None:
        return output_size
    scales = next(value for value in rest if isinstance(value, list | tuple))
    return [math.floor(size * scale) for size, scale in zip(self.shape[2:], scales, strict=True)]


def _antialiased(radius: int) -> Formula:
    """A weighted sum along each row, then along each column, of the points that the filter reaches; it grows as images shrink."""

    def count(self: TensorInput, output_size: Sequence[int], *rest: Any) -> int:
        return _two_passes(self.shape, _new_sizes(self, output_size, rest), radius)

    return count


def _two_passes(shape: Shape, output_size: Shape, radius: int) -> int:
    (*_, height, width), (new_height, new_width) = shape, output_size
    tall, wide = (min(math.ceil(2 * radius * max(old / new, 1)), old) for old, new in ((height, new_height), (width, new_width)))
    return prod(shape[:2]) * new_width * (height * (2 * wide - 1) + new_height * (2 * tall - 1))


def _antialiased_backward(radius: int) -> Formula:
    """The same weights, spread over the points that they came from."""
    return lambda grad, output_size, input_size, *_: _two_passes(input_size, output_size, radius)


def _combined(at: int) -> Formula:
    """One for each element of the argument at this place, unless they are combined by comparing."""

    def count(*inputs: Any) -> int:
        return 0 if any(value in ("amax", "amin") for value in inputs if isinstance(value, str)) else prod(inputs[at].shape)

    return count


def _sampled(points: dict[int, int]) -> Formula:
    """`grid_sample`: by interpolation mode, how many points are weighed for each element."""

    def count(input: TensorInput, grid: TensorInput, mode: int, *_: Any) -> int:
        return (2 * points[mode] - 1) * input.shape[1] * prod(grid.shape[:-1]) if mode != 1 else 0

    return count


def _sampled_backward(points: dict[int, int]) -> Formula:
    def count(grad: TensorInput, input: TensorInput, grid: TensorInput, mode: int, *_: Any) -> int:
        return 2 * points[mode] * prod(grad.shape)

    return count


def _embedding_bag(
    weight: TensorInput, indices: TensorInput, offsets: TensorInput, by_frequency: bool, mode: int, sparse: bool, *rest: Any
) -> int:
    """A sum of the rows in each bag, weighted if asked for; the third mode compares."""
    weighted = bool(rest) and rest[0] is not None
    return (1 + weighted) * prod(indices.shape) * weight.shape[1] if mode != 2 else 0


def _distances(left: TensorInput, right: TensorInput, *_: Any) -> int:
    """A difference, its power and a sum for each pair of points and each coordinate."""
    batch = _broadcast([left.shape[:-2], right.shape[:-2]])
    return 3 * batch * left.shape[-2] * right.shape[-2] * left.shape[-1]


ANTIALIASED = {"bilinear": 1, "bicubic": 2, "lanczos": 3}  # how far the filters reach
PLACES: dict[str, Formula] = {
    "avg_pool2d": _avg_pool(2),
    "avg_pool3d": _avg_pool(3),
    "avg_pool2d_backward": _avg_pool_backward(2),
    "avg_pool3d_backward": _avg_pool_backward(3),
    **dict.fromkeys(("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward"), lambda grad, self, *_: prod(self.shape)),
    "upsample_linear1d": _interpolated(2),
    "upsample_bilinear2d": _interpolated(4),
    "upsample_trilinear3d": _interpolated(8),
    "upsample_bicubic2d": _interpolated(16),
    "upsample_linear1d_backward": _of_first(2 * 2),
    "upsample_bilinear2d_backward": _of_first(2 * 4),
    "upsample_trilinear3d_backward": _of_first(2 * 8),
    "upsample_bicubic2d_backward": _of_first(2 * 16),
    "grid_sampler_2d": _sampled({0: 4, 2: 16}),
    "grid_sampler_3d": _sampled({0: 8}),
    "grid_sampler_2d_backward": _sampled_backward({0: 4, 1: 1, 2: 16}),
    "grid_sampler_3d_backward": _sampled_backward({0: 8, 1: 1}),
    **{f"_upsample_{name}2d_aa": _antialiased(radius) for name, radius in ANTIALIASED.items()},
    **{f"_upsample_{name}2d_aa_backward": _antialiased_backward(radius) for name, radius in ANTIALIASED.items()},
    **dict.fromkeys(("index_add", "index_add_", "index_reduce", "index_reduce_"), _combined(3)),
    **dict.fromkeys(("scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_"), _combined(2)),
    "put_": lambda self, index, source, accumulate, *_: prod(index.shape) if accumulate else 0,
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), _embedding_bag),
    "_segment_reduce_backward": lambda grad, output, data, *_: 2 * prod(data.shape),
    "_embedding_bag_dense_backward": lambda grad, indices, *_: prod(indices.shape) * grad.shape[1],
    "_embedding_bag_per_sample_weights_backward": lambda grad, weight, indices, *_: 2 * prod(indices.shape) * grad.shape[1],
    "_cdist_forward": _distances,
    "_cdist_backward": lambda grad, left, right, *_: _distances(left, right) * 4 // 3,
    "_transform_bias_rescale_qkv": lambda qkv, *_: prod(qkv.shape) * 4 // 3,  # a bias for all, and queries, a third of them, scaled
    "_pdist_forward": lambda self, *_: 3 * math.comb(self.shape[0], 2) * self.shape[1],
    "_pdist_backward": lambda grad, self, *_: 4 * math.comb(self.shape[0], 2) * self.shape[1],
}


# --- optimizers -----------------------------------------------------------------------------------------------------------------


def _elements_of(tensors: Any) -> int:
    return sum(prod(tensor.shape) for tensor in tensors)


UPDATES: dict[str, Formula] = {
    "_fused_sgd_": lambda self, grads, buffers, *_: 2 * _elements_of(self) + 2 * _elements_of(buffers),
    **dict.fromkeys(("_fused_adam_", "_fused_adamw_"), lambda self, *_: 13 * _elements_of(self)),  # two averages, a root, a step
    "_fused_adagrad_": lambda self, *_: 7 * _elements_of(self),  # a sum of squares, a root, a step
}

FORMULAS: dict[str, Formula] = {
    **{name: _per_element(times) for times, names in POINTWISE.items() for name in names.split()},
    **{name: _of_first(times) for times, names in OF_FIRST.items() for name in names.split()},
    "add": _first_operand,
    "mul": _first_operand,
    "gelu": _gelu,
    "gelu_": _gelu,
    "gelu_backward": _gelu_backward,
    **PRODUCTS,
    **STATISTICS,
    **PLACES,
    **UPDATES,
}
