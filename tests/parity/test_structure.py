"""Composites are made of the operators ATen makes them of, because profiles show it."""

import pytest
import structure_cases

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def linear(*shape, bias=True):
    def make(lib):
        x, w, b = lib.randn(*shape), lib.randn(7, shape[-1]), lib.randn(7)
        return lambda: lib.nn.functional.linear(x, w, b if bias else None)

    return make


def matmul(a, b):
    def make(lib):
        x, y = lib.randn(*a), lib.randn(*b)
        return lambda: x @ y

    return make


def on(shape, function):
    def make(lib):
        x = lib.randn(*shape)
        return lambda: function(lib, x)

    return make


def training(shape, function):
    def make(lib):
        x = lib.randn(*shape, requires_grad=True)
        return lambda: function(lib, x).sum().backward()

    return make


def F(name, *args, **kwargs):
    return lambda lib, x: getattr(lib.nn.functional, name)(x, *args, **kwargs)


CASES = {
    "linear 2d": linear(3, 5),
    "linear 2d without bias": linear(3, 5, bias=False),
    "linear 3d": linear(2, 3, 5),
    "linear 3d without bias": linear(2, 3, 5, bias=False),
    "linear 1d": linear(5),
    **{
        f"matmul {a} {b}": matmul(a, b)
        for a, b in [
            ((5,), (5,)),
            ((3, 5), (5,)),
            ((5,), (5, 4)),
            ((3, 5), (5, 4)),
            ((2, 3, 5), (2, 5, 4)),
            ((2, 3, 5), (5, 4)),
            ((3, 5), (2, 5, 4)),
            ((2, 2, 3, 5), (5, 4)),
        ]
    },
    "relu": on((3, 4), F("relu")),
    "leaky_relu": on((3, 4), F("leaky_relu")),
    "gelu": on((3, 4), F("gelu")),
    "silu": on((3, 4), F("silu")),
    "elu": on((3, 4), F("elu")),
    "softplus": on((3, 4), F("softplus")),
    "softmax": on((3, 4), F("softmax", dim=-1)),
    "log_softmax": on((3, 4), F("log_softmax", dim=-1)),
    "sigmoid": on((3, 4), lambda lib, x: x.sigmoid()),
    "cross_entropy": on((3, 4), lambda lib, x: lib.nn.functional.cross_entropy(x, lib.tensor([0, 1, 2]))),
    "cross_entropy smoothed": on(
        (3, 4), lambda lib, x: lib.nn.functional.cross_entropy(x, lib.tensor([0, 1, 2]), label_smoothing=0.1)
    ),
    "nll_loss": on((3, 4), lambda lib, x: lib.nn.functional.nll_loss(x, lib.tensor([0, 1, 2]))),
    "mse_loss": on((3, 4), lambda lib, x: lib.nn.functional.mse_loss(x, x)),
    "l1_loss": on((3, 4), lambda lib, x: lib.nn.functional.l1_loss(x, x)),
    "smooth_l1_loss": on((3, 4), lambda lib, x: lib.nn.functional.smooth_l1_loss(x, x)),
    "bce": on((3, 4), lambda lib, x: lib.nn.functional.binary_cross_entropy(x.sigmoid(), x.sigmoid())),
    "bce with logits": on((3, 4), lambda lib, x: lib.nn.functional.binary_cross_entropy_with_logits(x, x.sigmoid())),
    "conv1d": on((2, 3, 8), lambda lib, x: lib.nn.functional.conv1d(x, x[:, :, :3], padding=1)),
    "conv2d": on((2, 3, 8, 8), lambda lib, x: lib.nn.functional.conv2d(x, x[:, :, :3, :3], padding=1)),
    "conv2d dilated": on((2, 3, 8, 8), lambda lib, x: lib.nn.functional.conv2d(x, x[:, :, :3, :3], dilation=2)),
    "conv3d": on((2, 3, 4, 4, 4), lambda lib, x: lib.nn.functional.conv3d(x, x[:, :, :3, :3, :3])),
    "conv_transpose2d": on((2, 3, 8, 8), lambda lib, x: lib.nn.functional.conv_transpose2d(x, x[:1, :, :3, :3].transpose(0, 1))),
    "max_pool2d": on((2, 3, 8, 8), F("max_pool2d", 2)),
    "avg_pool2d": on((2, 3, 8, 8), F("avg_pool2d", 2)),
    "adaptive_avg_pool2d": on((2, 3, 8, 8), F("adaptive_avg_pool2d", 2)),
    "batch_norm training": on(
        (4, 3, 2, 2), lambda lib, x: lib.nn.functional.batch_norm(x, lib.zeros(3), lib.ones(3), training=True)
    ),
    "batch_norm evaluation": on((4, 3, 2, 2), lambda lib, x: lib.nn.functional.batch_norm(x, lib.zeros(3), lib.ones(3))),
    "layer_norm": on((4, 3), F("layer_norm", (3,))),
    "group_norm": on((4, 6, 2), F("group_norm", 3)),
    "dropout": on((4, 3), F("dropout", 0.5)),
    "dropout evaluation": on((4, 3), F("dropout", 0.5, training=False)),
    "embedding": on((4, 3), lambda lib, x: lib.nn.functional.embedding(lib.tensor([0, 2]), x)),
    "interpolate nearest": on((1, 2, 4, 4), F("interpolate", scale_factor=2)),
    "interpolate bilinear": on((1, 2, 4, 4), F("interpolate", scale_factor=2, mode="bilinear")),
    "pad": on((2, 3), F("pad", (1, 1))),
    "mean": on((2, 3), lambda lib, x: x.mean()),
    "mean dim": on((2, 3), lambda lib, x: x.mean(1)),
    "std": on((2, 3), lambda lib, x: x.std()),
    "var": on((2, 3), lambda lib, x: x.var(1)),
    "norm": on((2, 3), lambda lib, x: x.norm()),
    "max dim": on((2, 3), lambda lib, x: x.max(1)),
    "argmax": on((2, 3), lambda lib, x: x.argmax(1)),
    "topk": on((2, 3), lambda lib, x: x.topk(2)),
    "sort": on((2, 3), lambda lib, x: x.sort()),
    "cumsum": on((2, 3), lambda lib, x: x.cumsum(1)),
    "where": on((2, 3), lambda lib, x: lib.where(x > 0, x, x)),
    "masked_fill": on((2, 3), lambda lib, x: x.masked_fill(x > 0, 0.0)),
    "index": on((4, 3), lambda lib, x: x[lib.tensor([0, 1])]),
    "mask": on((4, 3), lambda lib, x: x[x > 0]),
    "index_put": on((4, 3), lambda lib, x: x.__setitem__(lib.tensor([0, 1]), 1.0)),
    "gather": on((4, 3), lambda lib, x: x.gather(1, lib.tensor([[0], [1]]))),
    "cat": on((4, 3), lambda lib, x: lib.cat([x, x])),
    "stack": on((4, 3), lambda lib, x: lib.stack([x, x])),
    "split": on((4, 3), lambda lib, x: x.split(2)),
    "chunk": on((4, 3), lambda lib, x: x.chunk(2)),
    "einsum": on((4, 3), lambda lib, x: lib.einsum("ij,kj->ik", x, x)),
    "arithmetic": on((4, 3), lambda lib, x: 1 - (x * 2 + x / 3) ** 2),
    "reflected division": on((4, 3), lambda lib, x: 1 / x),
    "clamp": on((4, 3), lambda lib, x: x.clamp(-1, 1)),
    "tril": on((3, 3), lambda lib, x: x.tril()),
    "one_hot": on((3, 3), lambda lib, x: lib.nn.functional.one_hot(lib.tensor([0, 1, 2]), 4)),
    "attention": on((2, 4, 3, 8), lambda lib, x: math_attention(lib, x)),
    "flip": on((3, 3), lambda lib, x: x.flip(0)),
    "roll": on((3, 3), lambda lib, x: x.roll(1, 0)),
    "allclose": on((3, 3), lambda lib, x: lib.allclose(x, x)),
    "cholesky": on((3, 3), lambda lib, x: lib.linalg.cholesky(x @ x.T + 3 * lib.eye(3))),
    "inverse": on((3, 3), lambda lib, x: lib.linalg.inv(x + 3 * lib.eye(3))),
    "solve": on((3, 3), lambda lib, x: lib.linalg.solve(x + 3 * lib.eye(3), x)),
    "svd": on((3, 3), lambda lib, x: lib.linalg.svd(x)),
    "qr": on((3, 3), lambda lib, x: lib.linalg.qr(x)),
    "fft": on((8,), lambda lib, x: lib.fft.rfft(x)),
    "multinomial": on((3, 3), lambda lib, x: lib.multinomial(x.abs(), 2)),
    "rand": on((1,), lambda lib, x: lib.rand(3)),
    "randint": on((1,), lambda lib, x: lib.randint(0, 5, (3,))),
    "randperm": on((1,), lambda lib, x: lib.randperm(5)),
    "arange": on((1,), lambda lib, x: lib.arange(5)),
    **{
        f"backward of {name}": training(shape, function)
        for name, shape, function in [
            ("relu", (3, 4), F("relu")),
            ("tanh", (3, 4), lambda lib, x: x.tanh()),
            ("sigmoid", (3, 4), lambda lib, x: x.sigmoid()),
            ("gelu", (3, 4), F("gelu")),
            ("softmax", (3, 4), F("softmax", dim=-1)),
            ("mean", (3, 4), lambda lib, x: x.mean()),
            ("pow", (3, 4), lambda lib, x: x**3),
            ("div", (3, 4), lambda lib, x: x / (x + 10)),
            ("exp", (3, 4), lambda lib, x: x.exp()),
            ("matmul", (4, 4), lambda lib, x: x @ x),
            ("bmm", (2, 4, 4), lambda lib, x: x @ x),
            ("linear", (4, 4), lambda lib, x: lib.nn.functional.linear(x, x, x[0])),
            ("layer_norm", (4, 4), F("layer_norm", (4,))),
            ("batch_norm", (4, 3, 2, 2), lambda lib, x: lib.nn.functional.batch_norm(x, None, None, training=True)),
            ("conv2d", (2, 3, 8, 8), lambda lib, x: lib.nn.functional.conv2d(x, x[:, :, :3, :3])),
            ("max_pool2d", (2, 3, 8, 8), F("max_pool2d", 2)),
            ("avg_pool2d", (2, 3, 8, 8), F("avg_pool2d", 2)),
            ("embedding", (4, 3), lambda lib, x: lib.nn.functional.embedding(lib.tensor([0, 2]), x)),
            ("cross_entropy", (3, 4), lambda lib, x: lib.nn.functional.cross_entropy(x, lib.tensor([0, 1, 2]))),
            ("mse_loss", (3, 4), lambda lib, x: lib.nn.functional.mse_loss(x, x.detach() + 1)),
            ("index", (4, 3), lambda lib, x: x[lib.tensor([0, 1])]),
            ("select", (4, 3), lambda lib, x: x[0]),
            ("slice", (4, 3), lambda lib, x: x[1:3]),
            ("cat", (4, 3), lambda lib, x: lib.cat([x, x])),
            ("var", (4, 3), lambda lib, x: x.var(1)),
            ("max", (4, 3), lambda lib, x: x.max(1)[0]),
            ("gather", (4, 3), lambda lib, x: x.gather(1, lib.tensor([[0], [1]]))),
            ("dropout", (4, 3), F("dropout", 0.5)),
            ("attention", (2, 4, 3, 8), lambda lib, x: math_attention(lib, x)),
        ]
    },
}


def math_attention(lib, x):
    if lib.__name__ == "torch":
        with lib.nn.attention.sdpa_kernel(lib.nn.attention.SDPBackend.MATH):
            return lib.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    return lib.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)


CASES |= {name: on(shape, function) for name, (shape, function) in structure_cases.FORWARD.items()}
CASES |= {f"backward of {name}": training(shape, function) for name, (shape, function) in structure_cases.BACKWARD.items()}
CASES |= {f"training {name}": structure_cases.module(name) for name in structure_cases.MODULES}
CASES |= {name: structure_cases.recurrent(name, gates) for name, gates in structure_cases.RECURRENT.items()}
CASES |= {f"step of {name}": structure_cases.optimizer(name) for name in structure_cases.OPTIMIZERS}


@pytest.mark.parametrize("name", CASES)
def test_same_operators_inside(name):
    import structure

    import mindtorch_v2 as mt

    missing, extra = structure.compare(CASES[name], mt)
    assert not missing, f"missing {dict(missing)}, extra {dict(extra)}"
    assert not extra, f"extra {dict(extra)}"
