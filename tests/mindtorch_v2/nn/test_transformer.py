"""Attention and transformers: what holds between their ways of computing, without another library to compare with."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn


def close(a: Any, b: Any) -> bool:
    return bool(torch.allclose(a, b, atol=1e-5))


def operators(call: Any) -> set[str]:
    with torch.profiler.profile() as prof:
        call()
    return {event.name for event in prof.events()}


def masks() -> tuple[Any, Any]:
    padding = torch.zeros(2, 5, dtype=torch.bool)
    padding[1, 3:] = True
    return torch.ones(5, 5).triu(1).bool(), padding


def test_attention_without_gradients_is_one_operator_with_the_same_result() -> None:
    net, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(2, 5, 8)
    mask, padding = masks()
    for options in ({}, {"attn_mask": mask}, {"key_padding_mask": padding}, {"attn_mask": mask, "key_padding_mask": padding}):
        out, weights = net(x, x, x, **options)
        with torch.no_grad():
            fast, fast_weights = net(x, x, x, **options)
            assert "aten::_native_multi_head_attention" in operators(lambda options=options: net(x, x, x, **options))
        assert close(out, fast)
        assert close(weights, fast_weights)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", nn.GELU()])
def test_a_layer_without_gradients_is_one_operator_with_the_same_result(norm_first: bool, activation: Any) -> None:
    net = nn.TransformerEncoderLayer(8, 2, 16, activation=activation, batch_first=True, norm_first=norm_first).eval()
    x, (mask, padding) = torch.randn(2, 5, 8), masks()
    for options in ({}, {"src_mask": mask}, {"src_key_padding_mask": padding}):
        plain = net(x, **options)
        with torch.no_grad():
            assert close(net(x, **options), plain)
            assert "aten::_transformer_encoder_layer_fwd" in operators(lambda options=options: net(x, **options))
        assert "aten::_transformer_encoder_layer_fwd" not in operators(lambda options=options: net(x, **options))


def test_hooks_and_odd_heads_go_the_plain_way() -> None:
    hooked = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    hooked.linear1.register_forward_hook(lambda module, args, out: out * 0)
    odd = nn.TransformerEncoderLayer(9, 3, 16, batch_first=True).eval()
    with torch.no_grad():
        assert "aten::_transformer_encoder_layer_fwd" not in operators(lambda: hooked(torch.ones(1, 2, 8)))
        assert "aten::_transformer_encoder_layer_fwd" not in operators(lambda: odd(torch.ones(1, 2, 9)))


def test_an_encoder_gives_zeros_for_padding_at_the_end() -> None:
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    x, (_, padding) = torch.randn(2, 5, 8), masks()
    with torch.no_grad():
        out = net(x, src_key_padding_mask=padding)
        assert not out[1, 3:].any()
        assert close(out[1, :3], net(x[1:, :3])[0])
        assert net(x, src_key_padding_mask=padding.flip(1))[1, :2].any()


def test_a_causal_mask_is_recognised() -> None:
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 1)
    x, mask = torch.randn(2, 5, 8), nn.Transformer.generate_square_subsequent_mask(5)
    assert close(net(x, mask), net(x, mask, is_causal=True))
    assert close(net(x, mask)[:, :2], net(x[:, :2], mask[:2, :2]))


def test_copies_and_pickles() -> None:
    net = nn.Transformer(8, 2, 1, 1, 16, 0.0, activation="gelu", batch_first=True)
    x = torch.randn(2, 3, 8)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert close(other(x, x), net(x, x))
        assert other.encoder.layers[0].activation is nn.functional.gelu
