"""Calls that reach operators which the calls of PyTorch's database do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mindtorch_v2 as mt

__all__ = ["EXTRA"]

F = mt.nn.functional
aten = mt.ops.aten


def _x(*shape: int, grad: bool = False) -> Any:
    return mt.randn(*(shape or (3, 4)), generator=mt.Generator().manual_seed(1)).requires_grad_(grad)


def _lists(n: int, positive: bool = False) -> Iterator[list[Any]]:
    for i in range(n):
        yield [(_x(2, 3) + i).abs() if positive else _x(2, 3) + i, (_x(4) - i).abs() if positive else _x(4) - i]


def _trained(call: Callable[..., Any], *shapes: tuple[int, ...]) -> Callable[[], Any]:
    """Forward and backward, so that the backward operator is reached too."""
    return lambda: call(*[_x(*s, grad=True) for s in shapes]).sum().backward()


def _conv(name: str, shape: tuple[int, ...], weight: tuple[int, ...], **options: Any) -> Callable[[], Any]:
    return _trained(lambda x, w: getattr(F, name)(x, w, stride=[2] * (len(shape) - 2), **options), shape, weight)


def _recurrent(name: str, gates: int, packed: bool) -> Callable[[], Any]:
    def call() -> Any:
        weights = [_x(gates * 3, 4), _x(gates * 3, 3), _x(gates * 3), _x(gates * 3)]
        h = mt.zeros(1, 2, 3)
        state = [h, h] if name == "lstm" else h
        if packed:
            return getattr(aten, name)(_x(5, 4), mt.tensor([2, 2, 1]), state, weights, True, 1, 0.0, False, False)
        return getattr(aten, name)(_x(3, 2, 4), state, weights, True, 1, 0.0, False, False, False)

    return call


_MASKS: tuple[tuple[Any, ...], ...] = ((), (mt.tensor([[False, True, False]] * 2), True, False, 1))


def _cell(name: str, gates: int) -> Callable[[], Any]:
    def call() -> Any:
        h = _x(2, 3)
        weights = [_x(gates * 3, 4), _x(gates * 3, 3), _x(gates * 3), _x(gates * 3)]
        return getattr(aten, name)(_x(2, 4), [h, h] if name == "lstm_cell" else h, *weights)

    return call


def _fused(name: str, lr: Any) -> Callable[[], Any]:
    def call() -> Any:
        if name == "_fused_sgd_":
            options = {
                "weight_decay": 0.1,
                "momentum": 0.9,
                "dampening": 0.0,
                "nesterov": False,
                "maximize": False,
                "is_first_step": False,
            }
            return aten._fused_sgd_(*_lists(3), lr=lr, **options)
        steps = [mt.tensor(3.0), mt.tensor(3.0)]
        if name == "_fused_adagrad_":
            options = {"lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-8, "maximize": False}
            return aten._fused_adagrad_(*_lists(3, positive=True), steps, lr=lr, **options)
        moments = list(_lists(5, positive=True))
        options = {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8, "amsgrad": True, "maximize": False}
        return getattr(aten, name)(*moments, steps, lr=lr, **options)

    return call


def _attention_in_blocks() -> None:
    with mt.nn.attention.sdpa_kernel(mt.nn.attention.SDPBackend.FLASH_ATTENTION):
        _trained(F.scaled_dot_product_attention, (1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4))()


def _resized(mode: str, antialias: bool) -> Callable[[], Any]:
    return _trained(lambda x: F.interpolate(x, size=(3, 3), mode=mode, antialias=antialias), (1, 2, 5, 5))


EXTRA: list[Callable[[], Any]] = [
    lambda: [mt.quasirandom.SobolEngine(3, scramble=scramble, seed=1).fast_forward(4).draw(5) for scramble in (False, True)],
    lambda: [mt._standard_gamma(_x(2, 3, grad=True).exp()), mt._standard_gamma_grad(_x(2, 3, grad=True).exp(), _x(2, 3).exp())],
    _trained(lambda x: mt.distributions.Dirichlet(x.exp()).rsample(), (2, 3)),
    lambda: [_x().double().float_power_(2), _x().double().float_power_(_x())],
    lambda: [aten.remainder.Scalar(_x(), 0.7), aten.remainder_.Scalar(_x(), 0.7), aten.fmod_.Scalar(_x(), 0.7)],
    lambda: [_x().divide(_x(), rounding_mode="floor"), _x().divide_(_x(), rounding_mode="trunc")],
    _attention_in_blocks,
    lambda: [_x().view(mt.int32), aten.view_copy(_x(), dtype=mt.int32), aten.narrow.Tensor(_x(), 0, mt.tensor(1), 2)],
    lambda: [aten.view_as_real_copy(mt.complex(_x(), _x())), aten.view_as_complex_copy(_x(3, 2))],
    lambda: [_x().split([1, 2]), aten.split.sizes(_x(), [1, 2]), mt.unsafe_split_with_sizes(_x(), [1, 2])],
    _conv("conv1d", (2, 3, 8), (4, 3, 3)),
    _conv("conv2d", (2, 3, 8, 8), (4, 3, 3, 3)),
    lambda: F.conv2d(_x(2, 3, 8, 8), _x(4, 3, 3, 3), padding="same", stride=[1, 1]),
    _conv("conv_transpose1d", (2, 3, 8), (3, 4, 3)),
    _conv("conv_transpose2d", (2, 3, 8, 8), (3, 4, 3, 3)),
    _conv("conv_transpose3d", (2, 3, 4, 4, 4), (3, 4, 2, 2, 2)),
    *(
        _trained(lambda x, lengths=lengths: F.ctc_loss(x.log_softmax(2), mt.tensor([[1, 2], [2, 1]]), *lengths), (5, 2, 4))
        for lengths in (([5, 5], [2, 2]), (mt.tensor([5, 5]), mt.tensor([2, 2])))
    ),
    lambda: [mt.concat([_x(), _x()]), mt.concatenate([_x(), _x()]), mt.row_stack([_x(), _x()]), aten._stack([_x(), _x()])],
    lambda: mt.gradient(_x(), spacing=(mt.arange(4.0),), dim=1),
    lambda: F.embedding(mt.tensor([0, 2]), _x() * 9, max_norm=1.0),
    lambda: aten.embedding_bag(_x(), mt.tensor([0, 1, 2]), mt.tensor([0, 2]), False, 1),
    *(
        lambda name=name, suffix=suffix: getattr(mt, f"_foreach_{name}{suffix}")(next(_lists(1)), mt.tensor(2.0))
        for name in ("add", "mul", "div")
        for suffix in ("", "_")
    ),
    *(
        lambda name=name: getattr(mt, f"_foreach_{name}")(*_lists(3, positive=True), mt.tensor([0.5, 2.0]))
        for name in ("addcmul", "addcmul_", "addcdiv", "addcdiv_")
    ),
    lambda: aten._foreach_mm([_x(2, 3)], [_x(3, 2)]),
    *(_fused(name, lr) for name in ("_fused_sgd_", "_fused_adam_", "_fused_adamw_", "_fused_adagrad_") for lr in (0.1, mt.tensor(0.1))),
    lambda: [aten.meshgrid([_x(2), _x(3)]), mt.bincount(mt.tensor([0, 1, 1])), mt.orgqr(_x(4, 3), _x(3))],
    lambda: [mt.vander(_x(3)), aten.linalg_norm(_x(), "fro"), aten.linalg_cond(_x(3, 3), "fro"), mt.chain_matmul(_x(), _x(4, 2))],
    *(
        _trained(lambda x, w, b, dtype=dtype: F.layer_norm(x.to(dtype), (4,), w.to(dtype), b.to(dtype)), (3, 4), (4,), (4,))
        for dtype in (mt.float64, mt.float32)
    ),
    _trained(lambda x, w, b: F.group_norm(x, 2, w, b), (3, 4, 2), (4,), (4,)),
    _trained(lambda x: (x * 1).relu_(), (3, 4)),
    *(
        _trained(
            lambda x, w, b, dtype=dtype: F.batch_norm(x.to(dtype), None, None, w.to(dtype), b.to(dtype), training=True),
            (3, 4, 2), (4,), (4,),
        )
        for dtype in (mt.float64, mt.float32)
    ),
    lambda: [mt.quantile(_x(), mt.tensor([0.2, 0.7]), 1), mt.nanquantile(_x(), mt.tensor([0.2, 0.7]), 1)],
    lambda: [mt.randperm(5), mt.rand_like(_x()), mt.rand(3), mt.randn(3), mt.range(0, 4), mt.ops.aten.range.default(0, 4)],
    *(_recurrent(name, gates, packed) for name, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)) for packed in (False, True)),
    *(_cell(name, gates) for name, gates in (("lstm_cell", 4), ("gru_cell", 3))),
    _trained(lambda x, w, b: aten.conv_tbc(x, w, b, 1), (5, 2, 3), (2, 3, 4), (4,)),
    lambda: aten._transform_bias_rescale_qkv(_x(2, 3, 24), _x(24), 2),
    lambda: aten._masked_softmax(_x(2, 2, 3, 3), mt.tensor([[False, True, False], [False, False, True]]), 3, 1),
    _trained(lambda x: aten._masked_softmax(x, x.detach() > 0.8, 2, 2), (2, 3, 4)),
    lambda: aten._addmm_activation(_x(5), _x(3, 4), _x(4, 5), use_gelu=True),
    *(lambda mask=mask: aten._native_multi_head_attention(*[_x(2, 3, 4)] * 3, 4, 2, _x(12, 4), _x(12), _x(4, 4), _x(4), *mask) for mask in _MASKS),
    *(
        lambda mask=mask, first=first: aten._transformer_encoder_layer_fwd(
            _x(2, 3, 4), 4, 2, _x(12, 4), _x(12), _x(4, 4), _x(4), first, first, 1e-5, _x(4), _x(4), _x(4), _x(4), _x(6, 4), _x(6), _x(4, 6), _x(4), *mask
        )
        for mask, first in (((), True), ((mt.tensor([[False, True, False]] * 2), 1), False))
    ),
    _trained(lambda x: aten._pack_padded_sequence(x, mt.tensor([4, 2]), False)[0], (4, 2, 3)),
    _trained(lambda x: aten._pack_padded_sequence(x, mt.tensor([4, 2]), True)[0], (2, 4, 3)),
    lambda: aten._pad_packed_sequence(_x(5, 4), mt.tensor([2, 2, 1]), True, 0.5, 4),
    lambda: aten.pad_sequence([_x(2, 3), _x(4, 3)], True, 0.5, "left"),
    _trained(lambda t: F.affine_grid(t, [2, 1, 3, 3], align_corners=False), (2, 2, 3)),
    *(
        lambda suffix=suffix: [
            getattr(_x(), "scatter" + suffix)(1, mt.tensor([[0], [1]]), _x(2, 1), reduce="add"),
            getattr(_x(), "scatter" + suffix)(1, mt.tensor([[0], [1]]), 2.0, reduce="multiply"),
        ]
        for suffix in ("", "_")
    ),
    lambda: mt.istft(aten.stft.center(_x(40), 8, None, None, mt.hann_window(8), True, "reflect", False, True, True), 8, window=mt.hann_window(8)),
    lambda: [mt.searchsorted(mt.arange(3.0), 1.5), mt.bucketize(1.5, mt.arange(3.0))],
    *(_resized(mode, True) for mode in ("bilinear", "bicubic")),
    lambda: aten._upsample_lanczos2d_aa.default(_x(1, 2, 5, 5), [3, 3], False),
    lambda: aten._upsample_lanczos2d_aa.vec(_x(1, 2, 5, 5), [3, 3], False, None),
    lambda: aten._upsample_lanczos2d_aa_backward(_x(1, 2, 3, 3), [3, 3], [1, 2, 5, 5], False),
    *(lambda dim=dim: aten._weight_norm_interface(_x(), _x(*((3, 1), (1, 4))[dim]), dim) for dim in (0, 1)),
    lambda: aten._weight_norm_interface_backward(_x(), _x(), _x(3, 1), _x(3, 1).abs(), 0),
    lambda: aten._weight_norm(_x(), _x(3, 1), 0),
    _trained(lambda x: mt.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 20), (3, 4)),
    _trained(lambda x: mt.fake_quantize_per_tensor_affine(x, mt.tensor([0.1]), mt.tensor([3]), 0, 20), (3, 4)),
    _trained(lambda x: mt.fake_quantize_per_channel_affine(x, mt.tensor([0.1, 0.2, 0.3]), mt.zeros(3, dtype=mt.int32), 0, -9, 9), (3, 4)),
    _trained(lambda x: x[1:3].slice_inverse(x, 0, 1, 3), (4, 2)),
    lambda: [mt.dequantize(_x().double()), mt.sym_constrain_range(5, min=1, max=9), mt.sym_constrain_range_for_size(5, max=9)],
]  # fmt: skip
