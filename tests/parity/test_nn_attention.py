"""Multi-head attention and transformers against torch's."""

import numpy as np
import pytest

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

MODULES = {
    "plain": {},
    "batch first": {"batch_first": True},
    "no bias": {"bias": False},
    "bias of keys": {"add_bias_kv": True, "add_zero_attn": True},
    "other widths": {"kdim": 3, "vdim": 5, "batch_first": True},
    "dropout": {"dropout": 0.4},
}


def causal(n):
    return np.triu(np.ones((n, n), bool), 1)


@pytest.mark.parametrize("options", MODULES.values(), ids=MODULES)
@pytest.mark.parametrize("eval_mode", [False, True])
def test_attention(options, eval_mode):
    from module_comparison import compare

    widths = options.get("kdim", 8), options.get("vdim", 8)
    shapes = [(4, 4, 8), (4, 4, widths[0]), (4, 4, widths[1])]
    training = {} if eval_mode or "dropout" not in options else {"eval_mode": True}
    compare(lambda lib: lib.nn.MultiheadAttention(8, 2, **options), shapes, **{"eval_mode": eval_mode, **training})
    compare(lambda lib: lib.nn.MultiheadAttention(8, 2, **options), [(4, 8), (3, widths[0]), (3, widths[1])], eval_mode=True)


CALLS = {
    "self": lambda lib, m, x, mask, padding: m(x, x, x),
    "no weights": lambda lib, m, x, mask, padding: m(x, x, x, need_weights=False)[0],
    "weights of heads": lambda lib, m, x, mask, padding: m(x, x, x, average_attn_weights=False),
    "mask": lambda lib, m, x, mask, padding: m(x, x, x, attn_mask=mask),
    "padding": lambda lib, m, x, mask, padding: m(x, x, x, key_padding_mask=padding, need_weights=False)[0],
    "both": lambda lib, m, x, mask, padding: m(x, x, x, attn_mask=mask, key_padding_mask=padding),
    "causal": lambda lib, m, x, mask, padding: m(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0],
    "causal, padded": lambda lib, m, x, mask, padding: m(x, x, x, padding, False, mask, is_causal=True)[0],
    "floating mask": lambda lib, m, x, mask, padding: m(x, x, x, attn_mask=mask.to(x.dtype) * -2),
    "mask for each head": lambda lib, m, x, mask, padding: m(x, x, x, attn_mask=mask.expand(6, -1, -1).clone()),
    "keys and values": lambda lib, m, x, mask, padding: m(x, x * 2, x * 3),
    "memory": lambda lib, m, x, mask, padding: m(x, y := x * 2, y),
}


@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True}, {"add_zero_attn": True}], ids=str)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls(call, options):
    """By the plain way and, without gradients, by the operator for evaluation."""
    from module_comparison import compare

    padding = np.zeros((3, 4), bool)
    padding[1, 2:] = True

    def make(lib):
        return lib.nn.MultiheadAttention(8, 2, batch_first=True, **options)

    def evaluated(lib, module, *inputs):
        with lib.no_grad():
            return call(lib, module, *inputs)

    inputs = [(3, 4, 8), causal(4), padding]
    compare(make, inputs, call)
    compare(make, inputs, evaluated, eval_mode=True)


LAYERS = {
    "plain": {},
    "batch first": {"batch_first": True},
    "gelu, norm first": {"activation": "gelu", "norm_first": True, "batch_first": True},
    "no bias": {"bias": False},
    "callable": {"activation": "tanh"},
}


def built(lib, name, options):
    if options.get("activation") == "tanh":
        options = {**options, "activation": lib.tanh}
    return getattr(lib.nn, name)(8, 2, 12, 0.0, **options)


@pytest.mark.parametrize("options", LAYERS.values(), ids=LAYERS)
def test_layers(options):
    from module_comparison import compare

    pickled = "tanh" not in options.values()
    padding = np.zeros((3, 3), bool)
    padding[1, 2:] = True

    def encode(lib, module, x, mask, padding):
        with lib.no_grad():
            evaluated = [module.eval()(x), module(x, mask), module(x, None, padding), module(x, mask, padding)]
        return [*evaluated, module(x, mask, padding), module.train()(x, mask, padding), module(x[0], mask)]

    def decode(lib, module, x, y, mask, padding):
        return [
            module(x, y),
            module(x, y, mask, None, padding, padding),
            module(x, y, memory_mask=mask, tgt_mask=mask, tgt_is_causal=True),
            module(x[0], y[0]),
        ]

    compare(lambda lib: built(lib, "TransformerEncoderLayer", options), [(3, 3, 8), causal(3), padding], encode, pickled=pickled)
    compare(
        lambda lib: built(lib, "TransformerDecoderLayer", options),
        [(3, 3, 8), (3, 3, 8), causal(3), padding],
        decode,
        pickled=pickled,
    )


@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"batch_first": True, "norm_first": True}], ids=str)
def test_the_whole(options):
    from module_comparison import compare

    padding = np.zeros((3, 3), bool)
    padding[1, 2:] = True

    def make(lib):
        return lib.nn.Transformer(8, 2, 2, 2, 12, 0.0, **options)

    def call(lib, module, x, y, padding):
        mask = module.generate_square_subsequent_mask(3).double()
        with lib.no_grad():
            module.eval()
            evaluated = [
                module(x, y),
                module.encoder(x, src_key_padding_mask=padding),
                module.encoder(x, mask, padding),
                module.encoder(x, src_key_padding_mask=padding.flip(1)),
                module(x, y, mask, mask),
            ]
            module.train()
        return [
            *evaluated,
            module(x, y),
            module(x, y, mask, mask, None, padding, padding, padding),
            module(x, y, tgt_mask=mask, tgt_is_causal=True),
        ]

    compare(make, [(3, 3, 8), (3, 3, 8), padding], call)


ERRORS = {
    "sizes": lambda lib: lib.nn.MultiheadAttention(0, 2),
    "heads": lambda lib: lib.nn.MultiheadAttention(8, 3),
    "dims of query": lambda lib: lib.nn.MultiheadAttention(8, 2)(*[lib.zeros(1, 1, 1, 8)] * 3),
    "dims of key": lambda lib: lib.nn.MultiheadAttention(8, 2)(lib.zeros(2, 2, 8), lib.zeros(2, 8), lib.zeros(2, 8)),
    "dims of padding": lambda lib: lib.nn.MultiheadAttention(8, 2)(*[lib.zeros(2, 2, 8)] * 3, key_padding_mask=lib.zeros(2)),
    "shape of mask": lambda lib: lib.nn.MultiheadAttention(8, 2)(*[lib.zeros(2, 2, 8)] * 3, attn_mask=lib.zeros(3, 2)),
    "shape of mask of heads": lambda lib: lib.nn.MultiheadAttention(8, 2)(*[lib.zeros(2, 2, 8)] * 3, attn_mask=lib.zeros(3, 2, 2)),
    "dtype of mask": lambda lib: lib.nn.MultiheadAttention(8, 2)(*[lib.zeros(2, 2, 8)] * 3, attn_mask=lib.zeros(2, 2).int()),
    "causal without mask": lambda lib: lib.nn.MultiheadAttention(8, 2)(*[lib.zeros(2, 2, 8)] * 3, is_causal=True),
    "width": lambda lib: lib.nn.MultiheadAttention(8, 2)(*[lib.zeros(2, 2, 6)] * 3),
    "key and value": lambda lib: lib.nn.MultiheadAttention(8, 2)(lib.zeros(2, 2, 8), lib.zeros(3, 2, 8), lib.zeros(2, 2, 8)),
    "activation": lambda lib: lib.nn.TransformerEncoderLayer(8, 2, activation="tanh"),
    "batches": lambda lib: lib.nn.Transformer(8, 2, 1, 1, 8)(lib.zeros(3, 2, 8), lib.zeros(3, 1, 8)),
    "features": lambda lib: lib.nn.Transformer(8, 2, 1, 1, 8)(lib.zeros(3, 2, 6), lib.zeros(3, 2, 8)),
}


@pytest.mark.parametrize("action", ERRORS.values(), ids=ERRORS)
def test_errors(action):
    from module_comparison import compare_errors

    compare_errors(action)


@pytest.mark.parametrize(
    "action",
    [
        lambda lib: lib.nn.TransformerEncoder(lib.nn.TransformerEncoderLayer(8, 2), 1),
        lambda lib: lib.nn.TransformerEncoder(lib.nn.TransformerEncoderLayer(8, 2, batch_first=True, norm_first=True), 1),
        lambda lib: lib.nn.TransformerEncoder(lib.nn.TransformerEncoderLayer(8, 2, batch_first=True, bias=False), 1),
        lambda lib: lib.nn.TransformerEncoder(lib.nn.TransformerEncoderLayer(9, 3, batch_first=True), 1),
        lambda lib: lib.nn.TransformerEncoder(lib.nn.TransformerDecoderLayer(8, 2), 1),
        lambda lib: lib.nn.MultiheadAttention(8, 2)(
            *[lib.zeros(2, 2, 8)] * 3, attn_mask=lib.zeros(2, 2), key_padding_mask=lib.zeros(2, 2).bool()
        ),
    ],
)
def test_warnings(action):
    from module_comparison import compare_warnings

    compare_warnings(action)


# what ATen's kernels do to get a gradient of one repeated number ready
COPIES = {("aten::mm", "aten::clone"), ("aten::native_layer_norm_backward", "aten::clone")}


@pytest.mark.parametrize(
    "kind", ["attention", "attention with weights", "encoder layer", "evaluated attention", "evaluated layer", "decoder"]
)
def test_a_step_has_the_same_operators(kind):
    from profile_comparison import compare_step

    def make(lib):
        nn, x = lib.nn, lib.randn(2, 5, 8)
        mask = nn.Transformer.generate_square_subsequent_mask(5)
        if "attention" in kind:
            net = nn.MultiheadAttention(8, 2, 0.1, batch_first=True)
        elif kind == "decoder":
            net = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2)
        else:
            net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        net.train("evaluated" not in kind)
        call = {
            "attention": lambda: net(x, x, x, attn_mask=mask, need_weights=False)[0],
            "attention with weights": lambda: net(x, x, x)[0],
            "encoder layer": lambda: net(x),
            "evaluated attention": lambda: net(x, x, x, attn_mask=mask < 0)[0],
            "evaluated layer": lambda: net(x, mask),
            "decoder": lambda: net(x, x * 2, tgt_mask=lib.triu(lib.ones(2, 2), 1).log()),
        }[kind]

        def step():
            if "evaluated" in kind:
                with lib.no_grad():
                    return call()
            net.zero_grad()
            return call().sum().backward()

        return step

    compared = compare_step(make)
    assert compared.misses("arrows") == []
    assert [miss for miss in compared.misses("parents apart") if miss[1] not in COPIES] == []
